/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <string>

namespace zc::migrate {

/**
 * A test does to the processes of a job what it likes while this one waits here: it makes the file
 * "waits" in @directory, and goes on when that is removed. @rest is called meanwhile, and may
 * throw.
 */
void wait_for_test(const std::string &directory, const std::function<void()> &rest);

} // namespace zc::migrate
