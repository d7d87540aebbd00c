/* SPDX-License-Identifier: BSD-3-Clause */
#include "match.h"

namespace zc::zct {

namespace {

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low)
{
    return std::uint64_t{high} << 32 | low;
}

} // namespace

void sends_in_flight::add(const file_records &part, const communicator_names &names)
{
    for (const send_record &send : part.sends)
        sends_.add({{world_rank(part, send.comm, send.peer), names.name(part.rank, send.comm),
                     part.rank, send.tag},
                    send.time_ns,
                    send.number,
                    send.bytes});
}

std::optional<sent_message> sends_in_flight::take(const message_envelope &envelope)
{
    const sent_message *first = sends_.front();
    for (; first && first->envelope < envelope; first = sends_.front()) {
        passed_ += first->envelope.dest == envelope.dest;
        sends_.next();
    }
    if (!first || first->envelope != envelope)
        return {};
    const sent_message taken = *first;
    sends_.next();
    return taken;
}

std::uint64_t sends_in_flight::pass(std::int32_t dest)
{
    std::uint64_t passed = passed_;
    passed_ = 0;
    for (const sent_message *first = sends_.front(); first && first->envelope.dest <= dest;
         first = sends_.front()) {
        passed += first->envelope.dest == dest;
        sends_.next();
    }
    return passed;
}

void collective_calls::add(const file_records &part, const communicator_names &names)
{
    for (const collective_record &call : part.collectives)
        calls_[pair_of(static_cast<std::uint32_t>(part.rank), names.name(part.rank, call.comm))]
            .push_back({call.begin_ns, call.end_ns, call.kind, call.ended});
}

const call_times *collective_calls::at(std::int32_t rank, std::uint32_t comm, std::size_t nth) const
{
    const auto found = calls_.find(pair_of(static_cast<std::uint32_t>(rank), comm));
    return found == calls_.end() || nth >= found->second.size() ? nullptr : &found->second[nth];
}

bool result_from_first(zct_kind kind)
{
    return kind == ZCT_ALLREDUCE || kind == ZCT_REDUCE_SCATTER || kind == ZCT_REDUCE_SCATTER_BLOCK;
}

} // namespace zc::zct
