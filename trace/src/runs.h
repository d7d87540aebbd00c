/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_RUNS_H_INCLUDED
#define ZCT_RUNS_H_INCLUDED

/* The point-to-point form of a collective call (zct/format.h): runs of messages to and from
 * consecutive ranks. Read records keep them as the file has them. An MPI_Alltoallv has two for each
 * rank of its communicator: decoded they would take ten times as much memory. */

#include "cursor.h"
#include "record.h"

namespace zc::zct {

struct run_record {
    zct_direction direction;
    std::int32_t first;
    std::uint32_t count;
    std::uint64_t bytes;
    std::uint64_t addr;
    std::uint64_t stride;
};

/** Takes the runs of a collective among @nr_peers off the front of @in, their end included, and
 * calls
 * @use with each. */
template <typename Use>
void take_runs(cursor &in, std::size_t nr_peers, Use use)
{
    run_record last[3] = {};
    std::int64_t next[3] = {};
    while (const unsigned direction = in.byte()) {
        if (direction > ZCT_RUN_RECEIVE)
            throw malformed{"an unknown direction"};
        run_record &run = last[direction];
        run.direction = static_cast<zct_direction>(direction);
        const std::int64_t first = plus(next[direction], in.zigzag());
        const std::uint64_t count = in.varint();
        if (first < 0 || static_cast<std::uint64_t>(first) >= nr_peers || count == 0 ||
            count > nr_peers - static_cast<std::size_t>(first))
            throw malformed{"a rank outside its communicator"};
        run.first = static_cast<std::int32_t>(first);
        run.count = static_cast<std::uint32_t>(count);
        next[direction] = first + static_cast<std::int64_t>(count);
        run.bytes = plus(run.bytes, in.zigzag());
        if (direction == ZCT_RUN_RECEIVE) {
            run.addr = plus(run.addr, in.zigzag());
            run.stride = count > 1 ? plus(run.bytes, in.zigzag()) : 0;
        }
        use(run);
        if (direction == ZCT_RUN_RECEIVE)
            run.addr += (count - 1) * run.stride + run.bytes;
    }
}

/** Calls @use with each run of a call that was read. */
template <typename Use>
void for_each_run(const file_records &file, const collective_record &call, Use use)
{
    cursor in(std::span(file.run_bytes).subspan(call.runs_at - file.runs_before));
    take_runs(in, file.communicators[call.comm].peers(), use);
}

} // namespace zc::zct

#endif
