/* SPDX-License-Identifier: BSD-3-Clause */
#include "unrecorded.h"

#include <array>

namespace zc::forecast {

namespace {

constexpr std::array<const char *, ZCT_NR_UNRECORDED> kNames = {
    "MPI_Put",          "MPI_Get",
    "MPI_Accumulate",   "MPI_Get_accumulate",
    "MPI_Fetch_and_op", "MPI_Compare_and_swap",
    "MPI_Win_*",        "MPI_Start"};

} // namespace

const char *name_of(zct_unrecorded what)
{
    return kNames.at(what);
}

unrecorded_by_place find_unrecorded(const zct::run &run, const site_names &names)
{
    unrecorded_by_place all;
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        for (const zct::unrecorded &u : run.ranks[i].unrecorded_calls) {
            unrecorded_calls &here = all[{u.what, names(i, u.site)}];
            here.calls += u.calls;
            here.bytes += u.bytes;
            here.ns += u.ns;
        }
    }
    return all;
}

} // namespace zc::forecast
