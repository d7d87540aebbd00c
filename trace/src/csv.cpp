/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <iomanip>
#include <ostream>
#include <vector>

#include "zct/trace.h"

namespace zc::zct {

namespace {

/* Whole microseconds, downwards, so that the order of times stays. */
std::int64_t us(std::int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x20) {
            constexpr const char *kHex = "0123456789abcdef";
            out += "\\u00";
            out += kHex[code >> 4];
            out += kHex[code & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

/** The rows that are not where they would be if all came in order of posting. */
double share_out_of_order(const rank_trace &rank)
{
    std::size_t n = 0;
    for (std::size_t i = 0; i < rank.receives.size(); i++)
        n += rank.receives[i].arrival_order != i;
    return rank.receives.empty()
               ? 0
               : static_cast<double>(n) / static_cast<double>(rank.receives.size());
}

double share_sent_before_posted(const rank_trace &rank)
{
    std::size_t early = 0;
    std::size_t all = 0;
    for (const receive &r : rank.receives) {
        if (r.kind != ZCT_P2P)
            continue;
        all++;
        early += r.sent_ns < r.posted_ns;
    }
    return all ? static_cast<double>(early) / static_cast<double>(all) : 0;
}

/** {"rank": value, ...} over all ranks. */
template <typename F>
void write_by_rank(std::ostream &out, const run &run, const char *name, F value)
{
    out << " \"" << name << "\": {";
    const char *comma = "";
    for (const rank_trace &rank : run.ranks) {
        out << comma << '"' << rank.rank << "\": " << value(rank);
        comma = ", ";
    }
    out << "},\n";
}

void write_ranks(std::ostream &out, const std::vector<std::int32_t> &ranks)
{
    out << '[';
    for (std::size_t i = 0; i < ranks.size(); i++)
        out << (i ? ", " : "") << ranks[i];
    out << ']';
}

} // namespace

void write_csv(std::ostream &out, const rank_trace &rank)
{
    out << "i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,t_sent,done_order,arrival_order\n";
    for (std::size_t i = 0; i < rank.receives.size(); i++) {
        const receive &r = rank.receives[i];
        out << i << ',' << r.comm << ',' << r.source << ',' << r.tag << ',' << r.bytes << ','
            << std::hex << r.addr << std::dec << ',' << kind_name(r.kind) << ',' << r.collective
            << ',' << us(r.posted_ns) << ',' << us(r.done_ns) << ',' << us(r.sent_ns) << ','
            << r.done_order << ',' << r.arrival_order << '\n';
    }
}

void write_events_csv(std::ostream &out, const run &run)
{
    struct event {
        std::int32_t source;
        const send *what;
    };
    std::vector<event> events;
    for (const rank_trace &rank : run.ranks)
        for (const send &s : rank.sends)
            events.push_back({rank.rank, &s});
    std::stable_sort(events.begin(), events.end(), [](const event &a, const event &b) {
        return a.what->sent_ns < b.what->sent_ns;
    });
    out << "t,src,dst,bytes,kind\n";
    for (const event &e : events)
        out << us(e.what->sent_ns) << ',' << e.source << ',' << e.what->dest << ',' << e.what->bytes
            << ',' << kind_name(e.what->kind) << '\n';
}

void write_meta_json(std::ostream &out, const run &run)
{
    std::size_t receives = 0;
    std::size_t sends = 0;
    for (const rank_trace &rank : run.ranks) {
        receives += rank.receives.size();
        sends += rank.sends.size();
    }
    out << "{\n \"name\": " << quoted(run.name) << ",\n \"processes\": " << run.processes
        << ",\n \"program\": " << quoted(run.command.empty() ? run.program : run.command)
        << ",\n \"mpi\": " << quoted(run.mpi) << ",\n";
    write_by_rank(out, run, "ranks", [](const rank_trace &r) { return r.receives.size(); });
    out << " \"total_messages_all_ranks\": " << receives << ",\n \"send_events_total\": " << sends
        << ",\n \"send_events_stored\": " << sends
        << ",\n \"unmatched_or_size_mismatch\": " << run.unmatched_receives + run.size_mismatches
        << ",\n \"unreceived_sends\": " << run.unmatched_sends << ",\n"
        << std::fixed << std::setprecision(4);
    write_by_rank(out, run, "arrival_not_in_post_order", share_out_of_order);
    write_by_rank(out, run, "p2p_sent_before_posted", share_sent_before_posted);
    write_by_rank(out, run, "complete",
                  [](const rank_trace &r) { return r.complete ? "true" : "false"; });
    out << " \"comms\": {";
    for (std::size_t c = 0; c < run.communicators.size(); c++) {
        out << (c ? ", " : "") << '"' << c << "\": ";
        std::vector<std::int32_t> members = run.communicators[c].members;
        members.insert(members.end(), run.communicators[c].remote.begin(),
                       run.communicators[c].remote.end());
        write_ranks(out, members);
    }
    out << "}\n}\n";
}

} // namespace zc::zct
