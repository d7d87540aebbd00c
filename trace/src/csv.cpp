/* SPDX-License-Identifier: BSD-3-Clause */
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

double share_of(std::uint64_t some, std::uint64_t all)
{
    return all ? static_cast<double>(some) / static_cast<double>(all) : 0;
}

/** {"rank": value, ...} over all ranks; @value is asked by their places. */
template <typename F>
void write_by_rank(std::ostream &out, const run &run, const char *name, F value)
{
    out << " \"" << name << "\": {";
    for (std::size_t i = 0; i < run.ranks.size(); i++)
        out << (i ? ", " : "") << '"' << run.ranks[i].rank << "\": " << value(i);
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

csv_writer::csv_writer(std::ostream &out) : out_(out)
{
    out_ << "i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,t_sent,done_order,arrival_order\n";
}

void csv_writer::add(const receive &r)
{
    out_ << rows_++ << ',' << r.comm << ',' << r.source << ',' << r.tag << ',' << r.bytes << ','
         << std::hex << r.addr << std::dec << ',' << kind_name(r.kind) << ',' << r.collective << ','
         << us(r.posted_ns) << ',' << us(r.done_ns) << ',' << us(r.sent_ns) << ',' << r.done_order
         << ',' << r.arrival_order << '\n';
}

void write_csv(std::ostream &out, const rank_trace &rank)
{
    csv_writer csv(out);
    for (const receive &r : rank.receives)
        csv.add(r);
}

void write_events_csv(std::ostream &out, run_in_turn &run)
{
    out << "t,src,dst,bytes,kind\n";
    run.each_send([&](std::int32_t source, const send &s) {
        out << us(s.sent_ns) << ',' << source << ',' << s.dest << ',' << s.bytes << ','
            << kind_name(s.kind) << '\n';
    });
}

void rank_figures::add(const receive &r)
{
    out_of_order_ += r.arrival_order != receives_++;
    if (r.kind != ZCT_P2P)
        return;
    point_to_point_++;
    sent_before_posted_ += r.sent_ns < r.posted_ns;
}

double rank_figures::share_out_of_order() const
{
    return share_of(out_of_order_, receives_);
}

double rank_figures::share_sent_before_posted() const
{
    return share_of(sent_before_posted_, point_to_point_);
}

void write_meta_json(std::ostream &out, const run_in_turn &in_turn,
                     const std::vector<rank_figures> &figures)
{
    const run &run = in_turn.about();
    std::uint64_t receives = 0;
    std::uint64_t sends = 0;
    for (std::size_t i = 0; i < figures.size(); i++) {
        receives += figures[i].receives();
        sends += in_turn.nr_sends(i);
    }
    out << "{\n \"name\": " << quoted(run.name) << ",\n \"processes\": " << run.processes
        << ",\n \"program\": " << quoted(run.command.empty() ? run.program : run.command)
        << ",\n \"mpi\": " << quoted(run.mpi) << ",\n";
    write_by_rank(out, run, "ranks", [&](std::size_t i) { return figures[i].receives(); });
    out << " \"total_messages_all_ranks\": " << receives << ",\n \"send_events_total\": " << sends
        << ",\n \"send_events_stored\": " << sends
        << ",\n \"unmatched_or_size_mismatch\": " << run.unmatched_receives + run.size_mismatches
        << ",\n \"unreceived_sends\": " << run.unmatched_sends << ",\n"
        << std::fixed << std::setprecision(4);
    write_by_rank(out, run, "arrival_not_in_post_order",
                  [&](std::size_t i) { return figures[i].share_out_of_order(); });
    write_by_rank(out, run, "p2p_sent_before_posted",
                  [&](std::size_t i) { return figures[i].share_sent_before_posted(); });
    write_by_rank(out, run, "complete",
                  [&](std::size_t i) { return run.ranks[i].complete ? "true" : "false"; });
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
