/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_CUT_H_INCLUDED
#define ZCP_GROUPING_CUT_H_INCLUDED

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "flow.h"

namespace zc::groups {

/** Two ranks (or groups of them), a < b, and the traffic between them both ways. */
struct edge {
    uint32_t a;
    uint32_t b;
    double weight;
};

/** Undirected traffic: sorted by (a, b), each pair once; what is outside the world is left out. */
std::pmr::vector<edge> edges_of(std::span<const flow> flows, uint32_t ranks,
                                std::pmr::memory_resource *memory);

/**
 * Groups of at most @max_size by the rule of zcp_flows_cut(). Returns how many.
 * From three beginnings (agglomeration, the same packed full, groups grown one by
 * one), each refined by moves and exchanges; the one that keeps most inside.
 */
uint32_t cut(std::span<const flow> flows, uint32_t ranks, uint32_t max_size,
             std::span<uint32_t> group_of, std::pmr::memory_resource *memory);

/** The group of one rank by the rule of zcp_flows_around(). Returns its size. */
uint32_t around(std::span<const flow> flows, uint32_t ranks, uint32_t rank, std::span<uint32_t> out,
                std::pmr::memory_resource *memory);

/** Memory of either, bytes, at most. */
size_t cut_bytes_needed(size_t nr_flows, uint32_t ranks);

} // namespace zc::groups

#endif
