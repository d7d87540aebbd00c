/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "state.h"

namespace zc::instrument {

/** The sources of a program with a safe point, and what has to be compiled with them. */
struct rewritten {
    std::map<std::string, std::string> sources; /* text by the path of the original */
    std::string state_c, state_h;               /* zcm_state.c, zcm_state.h */
    findings refused;                           /* what cannot be rewritten where it stands */
};

rewritten rewrite(const program &all, const loop &at, const state &of);

/** zcm_state.c with the tables of @of. @units: the functions that say where the static data is. */
std::string state_source(const state &of, const std::vector<std::string> &units);

} // namespace zc::instrument
