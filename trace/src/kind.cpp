/* SPDX-License-Identifier: BSD-3-Clause */
#include <array>

#include "zct/trace.h"

namespace zc::zct {

namespace {

/* In the order of zct_kind. */
constexpr std::array<std::string_view, ZCT_NR_KINDS> kNames = {
    "p2p",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "scan",
    "exscan",
    "reduce_scatter",
    "reduce_scatter_block",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
};

} // namespace

std::string_view kind_name(zct_kind kind)
{
    return kNames.at(kind);
}

} // namespace zc::zct
