/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "program.h"

#include <optional>

namespace zc::instrument {

/** What a variable is in one call of a function, or in one round of a loop. */
struct known_value {
    std::optional<std::int64_t> number;
    std::string text;
};

/** Of one step of a way: each call of a function has local variables of its own. */
struct known_values : std::map<const clang::VarDecl *, known_value> {
    std::string call; /* which; empty: that the walk begins with */
};

/** @value as a number, if it is one, or is computed of @known and numbers. */
std::optional<std::int64_t> number_of(const function &in, const clang::Expr *value,
                                      const known_values &known);

/** Nothing below @root can change @variable, which is a local one of @in. */
bool is_kept(const function &in, const clang::Stmt *root, const clang::VarDecl *variable);

/** What @loop gives @counter first, or nullptr. */
const clang::Expr *start_of(const clang::ForStmt *loop, const clang::VarDecl *counter);

/** A loop that counts from one number to another. Of more than kRounds, one more is told. */
constexpr std::size_t kRounds = 4096;
struct rounds {
    const clang::VarDecl *counter;
    std::vector<std::int64_t> values;
};
std::optional<rounds> rounds_of(const function &in, const clang::ForStmt *loop,
                                const known_values &known);

} // namespace zc::instrument
