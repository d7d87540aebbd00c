/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_rows.h"

#include "runs.h"

namespace zc::zct {

void rank_rows::each(const std::function<void(const receive &)> &see)
{
    match_receives();
    make_rows();
    places done(kBudget);
    places arrived(kBudget);
    rows_.each([&](const ordered_row &r) {
        done.add(static_cast<std::int64_t>(r.what.done_order));
        arrived.add(r.what.sent_ns);
    });
    done.find();
    arrived.find();
    rows_.each([&](const ordered_row &r) {
        receive what = r.what;
        what.done_order = done.take();
        what.arrival_order = arrived.take();
        see(what);
    });
}

void rank_rows::find_takers(sorter<taker> &takers)
{
    each_block(file_.path, file_.counted, [&](const file_records &part) {
        const auto add = [&](const auto &receive, std::uint64_t order, bool lost,
                             std::uint64_t number) {
            takers.add({{rank_, names_.name(rank_, receive.comm),
                         world_rank(part, receive.comm, receive.peer), receive.tag},
                        order,
                        lost,
                        number});
        };
        for (const receive_record &r : part.receives)
            add(r, r.matched, false, nr_receives_++);
        for (const lost_record &lost : part.lost)
            if (lost.peer >= 0)
                add(lost, lost.order, true, nr_lost_++);
    });
    nr_receives_ = 0;
}

void rank_rows::match_receives()
{
    sorter<taker> takers(kBudget);
    find_takers(takers);
    takers.each([&](const taker &t) {
        const auto sent = in_flight_.take(t.envelope);
        if (sent && !t.lost)
            matches_.add({t.number, *sent});
    });
    matches_.rewind();
}

void rank_rows::make_rows()
{
    each_block(file_.path, file_.counted, [&](const file_records &part) {
        for (const receive_record &r : part.receives)
            add_receive(part, r);
        for (const collective_record &call : part.collectives)
            add_collective(part, call);
    });
}

void rank_rows::add_receive(const file_records &part, const receive_record &r)
{
    const std::uint64_t number = nr_receives_++;
    const match *found = matches_.front();
    const sent_message *sent = found && found->receive == number ? &found->sent : nullptr;
    receive row{};
    row.comm = names_.name(rank_, r.comm);
    row.source = world_rank(part, r.comm, r.peer);
    row.tag = r.tag;
    row.bytes = r.bytes;
    row.addr = r.addr;
    row.kind = ZCT_P2P;
    row.collective = -1;
    row.posted_ns = r.posted_ns;
    row.done_ns = r.done_ns;
    row.sent_known = sent;
    row.sent_ns = sent ? sent->time_ns : r.done_ns;
    row.done_order = r.done_order;
    row.site = r.site;
    row.send_number = sent ? static_cast<std::int64_t>(sent->number) : -1;
    if (!sent && is_present(row.source))
        run_.unmatched_receives++;
    if (sent && sent->bytes != r.bytes)
        run_.size_mismatches++;
    if (sent)
        matches_.next();
    rows_.add({r.order, false, number, row});
}

void rank_rows::add_collective(const file_records &part, const collective_record &call)
{
    const auto idx = static_cast<std::int64_t>(nr_collectives_++);
    nr_calls_.resize(part.communicators.size());
    const std::size_t nth = nr_calls_[call.comm]++;
    if (!call.ended)
        return;
    receive row{};
    row.comm = names_.name(rank_, call.comm);
    row.tag = -1;
    row.kind = call.kind;
    row.collective = idx;
    row.posted_ns = call.begin_ns;
    row.done_ns = call.end_ns;
    row.done_order = call.done_order;
    row.site = call.site;
    for_each_run(part, call, [&](const run_record &run) {
        for (std::uint32_t i = 0; run.direction == ZCT_RUN_RECEIVE && i < run.count; i++) {
            row.source = world_rank(part, call.comm, run.first + static_cast<std::int32_t>(i));
            row.bytes = run.bytes;
            row.addr = run.addr + i * run.stride;
            add_collective_row(part, call, nth, row);
        }
    });
}

/** @row: without what its sender knows. */
void rank_rows::add_collective_row(const file_records &part, const collective_record &call,
                                   std::size_t nth, receive row)
{
    const call_times *sender = calls_.at(row.source, row.comm, nth);
    std::optional<std::int64_t> sent;
    if (sender && sender->kind == call.kind)
        sent = collective_sent_ns(*sender, result_from_first(call.kind) &&
                                               !part.communicators[call.comm].inter &&
                                               row.source != rank_);
    row.sent_known = sent.has_value();
    row.sent_ns = sent.value_or(call.end_ns);
    rows_.add({call.order, true, nr_collective_rows_++, row});
}

bool rank_rows::is_present(std::int32_t rank) const
{
    return static_cast<std::size_t>(rank) < present_.size() &&
           present_[static_cast<std::size_t>(rank)];
}

} // namespace zc::zct
