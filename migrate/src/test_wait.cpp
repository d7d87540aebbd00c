/* SPDX-License-Identifier: BSD-3-Clause */
#include "test_wait.h"

#include <filesystem>
#include <fstream>

#include "clock.h"

namespace zc::migrate {

void wait_for_test(const std::string &directory, const std::function<void()> &rest)
{
    const std::filesystem::path sign = std::filesystem::path(directory) / "waits";
    std::filesystem::create_directories(sign.parent_path());
    std::ofstream(sign).flush();
    for (pause pause; std::filesystem::exists(sign); pause.rest())
        rest();
}

} // namespace zc::migrate
