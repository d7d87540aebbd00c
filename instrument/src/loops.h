/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "call_graph.h"
#include "findings.h"

namespace zc::instrument {

/** A loop where a safe point might lie. */
struct loop {
    const function *in;
    const clang::Stmt *statement; /* for, while, do */
    std::string place;
    std::vector<frame> way; /* from main(); the last one is @in */
    double cost = 0;        /* of all that the program does, as far as the text tells: 0 to 1 */
    unsigned depth = 0;     /* loops around it, in the functions above, too */
    bool communicates = false;
    findings refused; /* why it is not one, if it is not */
    findings assumed; /* messages that are taken to be matched, although that was not worked out */
};

const clang::Stmt *body_of(const clang::Stmt *loop);
const clang::Expr *condition_of(const clang::Stmt *loop);

/** The loops around @one, in the functions above, too; the outermost first. */
std::vector<loop> loops_around(const loop &one);

/**
 * All loops, with what they cost: the product of the statements and of the
 * accesses to variables in an iteration, relative to those of the whole program. Functions that are
 * called count where they are called, and loops inside another as so many iterations.
 */
std::vector<loop> find_loops(const program &all, const call_graph &calls);

/**
 * The innermost of those that are not refused, that communicate, and that cost @threshold of the
 * whole program or more; if there is none, the one that costs most. nullptr: all are refused.
 */
const loop *choose(const std::vector<loop> &all, double threshold);

} // namespace zc::instrument
