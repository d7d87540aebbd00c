/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "loops.h"

namespace zc::instrument {

/** Something that decides whether, or how often, a statement is run. */
struct control {
    const clang::Stmt *statement; /* if, switch, loop, ?:, &&, || or goto */
    /* Of it, the part that the statement is in: "then", "else", "case PLACE", "loop". Of a jump,
     * the part that the jump is in, and whether the statement stands behind it or before it: of the
     * last round of a loop only what is before is run. */
    std::string branch;
    bool is_jump;
    bool is_alone = false; /* a jump over the statement that nothing else decides about */
};

/** `do { } while (0)`, as macros have it: no loop, but a block. */
bool is_block(const function &in, const clang::Stmt *statement);

/** Something in @loop may end it, or one of its rounds, before its time. */
bool has_jumps(const function &in, const clang::Stmt *loop);

/** The condition of @statement, or nullptr: it is nothing that decides, or has none. */
const clang::Expr *condition_of_control(const clang::Stmt *statement);

/** FILE:LINE.COLUMN, which is another one for each statement of a line. */
std::string exact_place(const function &in, const clang::Stmt *at);

const clang::Stmt *parent_of(const function &in, const clang::Stmt *at);
bool is_below(const function &in, const clang::Stmt *at, const clang::Stmt *above);

/**
 * All that decides about @at in @root, a statement of @in; @of: the loop, if @root is one that a
 * safe point may be in.
 */
std::vector<control> controls_of(const function &in, const clang::Stmt *root, const clang::Stmt *at,
                                 const loop *of);

} // namespace zc::instrument
