/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "liveness.h"

namespace zc::instrument {

/** Something gets a value: it is assigned, or is the first one, an argument, or what is returned.
 * An array's elements are the array; what a struct begins with, its fields get. */
struct assignment {
    const function *in;    /* nullptr: in front of main() */
    std::string key;       /* of a variable or field, or "f()" for what f() returns */
    const clang::Expr *to; /* what is on the left side; nullptr: it is not an assignment */
    clang::QualType type;  /* of what gets it */
    const clang::Expr *value;
};

/** Of a compound literal, for as long as the program is in memory. */
std::string key_of_literal(const clang::CompoundLiteralExpr *literal);

/** All of the program, in the order of its functions. */
std::vector<assignment> assignments_of(const program &all);

} // namespace zc::instrument
