/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_SCOTCH_CUT_H_INCLUDED
#define ZC_BENCH_SCOTCH_CUT_H_INCLUDED

#include <cstdint>
#include <span>
#include <vector>

#include "zcp/grouping.h"

/** Is the Scotch baseline built in? */
bool scotch_available();

/**
 * The baseline's cut: SCOTCH_graphPart() into as many parts as it takes for
 * @max_size ranks each, as balanced as Scotch can make them. Parts still too large
 * give up the ranks they lose least by. Empty if Scotch is not built in.
 */
std::vector<uint32_t> scotch_cut(std::span<const zcp_flow_t> flows, uint32_t ranks,
                                 uint32_t max_size);

#endif
