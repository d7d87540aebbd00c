/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "loops.h"

namespace zc::instrument {

/**
 * Calls that may be run before the body of @one is for the first time, those in functions that are
 * called there, too. A successor runs them again. If there are loops around @one they may be in
 * those: in front of @one, and behind it, too, unless @one has a round wherever it stands.
 */
std::set<const clang::CallExpr *> calls_before(const program &all, const call_graph &calls,
                                               const loop &one);

/** Why @call cannot be run again; empty if it can. */
std::string why_once(const program &all, const clang::CallExpr *call);

/** Of the calls in the loops around @one that may be run before it, those that cannot be run again.
 */
findings run_again_around(const program &all, const call_graph &calls, const loop &one);

} // namespace zc::instrument
