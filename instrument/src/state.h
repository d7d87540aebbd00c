/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "layout.h"
#include "liveness.h"
#include "loops.h"
#include "resources.h"
#include "uniformity.h"

namespace zc::instrument {

/** A variable that is live at the safe point, from which the state is reached. */
struct root {
    std::string key, name; /* @name: as it is registered */
    const clang::VarDecl *variable;
    int layout;
    std::size_t frame; /* of a local variable: whose of the way's frames */
    bool is_local;
    std::string type;
};

/** What has to be saved at the safe point of a loop. */
struct state {
    std::vector<root> roots;
    layouts types;
    findings refused;
    /** Roots that are declared const, but may have another value in each pass of a loop. */
    std::vector<const clang::VarDecl *> no_longer_const;
    /** Live variables that are not saved, and why not. */
    findings left_out;
};

/** @again: what a successor's initialisation may do otherwise. */
state find_state(const program &all, const accesses &used, const liveness &live,
                 const resources &opened, const uniformity &again, const loop &at);

/** The loop around the safe point, or around a call on the way to it, that has no other around it.
 * One that is made of gotos is the whole function: what changes in it is not worked out. */
struct region {
    const function *in;
    const clang::Stmt *statement;
    bool is_of_gotos = false;
};
region cycle_of(const loop &at);

} // namespace zc::instrument
