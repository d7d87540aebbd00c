/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_GROUP_PLAN_H_INCLUDED
#define ZCP_GROUPING_GROUP_PLAN_H_INCLUDED

#include <cstddef>
#include <memory>
#include <memory_resource>

#include "forecaster.h"

namespace zc::groups {

/**
 * Fits an engine into its budget before anything is allocated, so that no later
 * call can exceed it: tables of pairs first, histories from what is left.
 * @params: complete. Returns false if the budget is too small.
 */
bool plan(const zcp_groups_params_t &params, setting &out);

/** What an engine holds and what a query may need beside it, bytes, at most. */
size_t bytes_needed(const setting &s, zcp_groups_kind_t kind);
/** Most flows a forecast can have. */
size_t most_flows(const setting &s);

std::unique_ptr<forecaster> make_forecaster(const setting &s, zcp_groups_kind_t kind,
                                            std::pmr::memory_resource *memory);

} // namespace zc::groups

#endif
