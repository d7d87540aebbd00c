/* SPDX-License-Identifier: BSD-3-Clause */
#include "match.h"

#include <algorithm>

namespace zc::zct {

namespace {

/* The finaliser of SplitMix64. */
std::uint64_t mixed(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low)
{
    return std::uint64_t{high} << 32 | low;
}

} // namespace

std::size_t sends_in_flight::hash::operator()(const envelope &e) const
{
    const std::uint64_t ranks =
        pair_of(static_cast<std::uint32_t>(e.source), static_cast<std::uint32_t>(e.dest));
    return mixed(mixed(ranks) ^ pair_of(e.comm, static_cast<std::uint32_t>(e.tag)));
}

sends_in_flight::sends_in_flight(const std::vector<file_records> &files,
                                 const communicator_names &names)
{
    for (const file_records &file : files)
        for (const send_record &send : file.sends)
            queues_[{names.name(file.rank, send.comm), file.rank,
                     world_rank(file, send.comm, send.peer), send.tag}]
                .sends.push_back(&send);
    /* A file has them in the order in which their calls succeeded. Those of one thread began in
     * that order, too; a message of several threads overtakes by when it was begun. */
    const auto earlier = [](const send_record *a, const send_record *b) {
        return a->time_ns < b->time_ns;
    };
    for (auto &[to, sent] : queues_)
        if (!std::is_sorted(sent.sends.begin(), sent.sends.end(), earlier))
            std::stable_sort(sent.sends.begin(), sent.sends.end(), earlier);
}

const send_record *sends_in_flight::take(std::uint32_t comm, std::int32_t source, std::int32_t dest,
                                         std::int32_t tag)
{
    const auto found = queues_.find({comm, source, dest, tag});
    if (found == queues_.end() || found->second.next == found->second.sends.size())
        return nullptr;
    return found->second.sends[found->second.next++];
}

std::uint64_t sends_in_flight::left(const std::vector<bool> &present) const
{
    std::uint64_t left = 0;
    for (const auto &[to, sent] : queues_) {
        const auto dest = static_cast<std::size_t>(to.dest);
        if (dest < present.size() && present[dest])
            left += sent.sends.size() - sent.next;
    }
    return left;
}

collective_calls::collective_calls(const std::vector<file_records> &files,
                                   const communicator_names &names)
{
    for (const file_records &file : files)
        for (const collective_record &call : file.collectives)
            calls_[pair_of(static_cast<std::uint32_t>(file.rank), names.name(file.rank, call.comm))]
                .push_back(&call);
}

const collective_record *collective_calls::at(std::int32_t rank, std::uint32_t comm,
                                              std::size_t nth) const
{
    const auto found = calls_.find(pair_of(static_cast<std::uint32_t>(rank), comm));
    return found == calls_.end() || nth >= found->second.size() ? nullptr : found->second[nth];
}

bool result_from_first(zct_kind kind)
{
    return kind == ZCT_ALLREDUCE || kind == ZCT_REDUCE_SCATTER || kind == ZCT_REDUCE_SCATTER_BLOCK;
}

std::optional<std::int64_t> collective_sent_ns(const collective_record &call, bool from_first)
{
    if (!from_first)
        return call.begin_ns;
    return call.ended ? std::optional(call.end_ns) : std::nullopt;
}

} // namespace zc::zct
