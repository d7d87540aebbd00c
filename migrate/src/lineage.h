/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>

namespace zc::migrate {

/** Whose state it is: what is saved bears it, so that nobody takes it for another job's. */
struct lineage {
    std::uint64_t job = 0; /* drawn when it starts; no two have the same */
    std::uint64_t line =
        0; /* the job that was not resumed, from whose state this one descends: most often itself */
    std::string name;         /* for people; used again and again */
    std::string program = {}; /* identity of its build, as in preflight.h; "" if it is not known */
};

/** A job's number as files have it: 16 digits. */
std::string digits_of(std::uint64_t job);

} // namespace zc::migrate
