/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_reader.h"

#include <algorithm>
#include <tuple>

#include "rank_rows.h"
#include "runs.h"

namespace zc::zct {

namespace {

constexpr std::size_t kSendBudget = std::size_t{32} << 20;

/** A send, to be put in order of time; those of one time in order of ranks. */
struct timed_send {
    send what;
    std::int32_t source;
    bool collective; /* behind the others of its rank and time */
    std::uint64_t number;
    bool operator<(const timed_send &other) const
    {
        return std::tie(what.sent_ns, source, collective, number) <
               std::tie(other.what.sent_ns, other.source, other.collective, other.number);
    }
};

} // namespace

run_reader::run_reader(const std::filesystem::path &path, std::vector<std::string> *unreadable)
    : files_(count_files(path, unreadable)), names_(files_.front().counted.processes)
{
    const file_records &first = files_.front().counted;
    run_.name = run_name(path);
    run_.program = first.program;
    run_.command = first.command;
    run_.mpi = first.mpi;
    run_.processes = first.processes;
    run_.id = first.run;
    run_.start_ns = first.start_ns;
    present_.resize(static_cast<std::size_t>(first.processes));
    for (const run_file &file : files_) {
        const file_records &counted = file.counted;
        names_.add(counted);
        present_[static_cast<std::size_t>(counted.rank)] = true;
        rank_trace rank{};
        rank.rank = counted.rank;
        rank.complete = counted.complete;
        rank.cut_bytes = counted.cut_bytes;
        rank.host = counted.host;
        rank.has_calls = counted.has_calls;
        for (const clock_record &clock : counted.clocks)
            rank.clock_error_ns = std::max(rank.clock_error_ns, clock.error_ns);
        run_.ranks.push_back(std::move(rank));
    }
    run_.communicators = names_.take();
}

void run_reader::read_senders()
{
    for (std::size_t i = 0; i < files_.size(); i++)
        each_block_of(i, [&](const file_records &part) {
            in_flight_.add(part, names_);
            calls_.add(part, names_);
        });
    in_flight_.begin();
    senders_read_ = true;
}

void run_reader::each_receive(std::size_t place, const std::function<void(const receive &)> &see)
{
    if (!senders_read_)
        read_senders();
    rank_rows(files_[place], names_, in_flight_, calls_, present_, run_).each(see);
    run_.unmatched_sends += in_flight_.pass(files_[place].counted.rank);
}

void run_reader::each_send(const std::function<void(std::int32_t source, const send &)> &see)
{
    sorter<timed_send> sends(kSendBudget);
    std::uint64_t number = 0; /* those of a rank are added in their order */
    for (std::size_t i = 0; i < files_.size(); i++) {
        const std::int32_t rank = files_[i].counted.rank;
        each_block_of(i, [&](const file_records &part) {
            for (const send_record &s : part.sends)
                sends.add({send_of(part, s), rank, false, number++});
            for (const collective_record &call : part.collectives)
                each_send_of(part, call, [&](const send &s) {
                    sends.add({s, rank, true, number++});
                });
        });
    }
    sends.each([&](const timed_send &s) { see(s.source, s.what); });
}

std::uint64_t run_reader::nr_sends(std::size_t place) const
{
    std::uint64_t n = files_[place].counted.counts.sends;
    each_block_of(place, [&](const file_records &part) {
        for (const collective_record &call : part.collectives)
            each_send_of(part, call, [&](const send &) { n++; });
    });
    return n;
}

send run_reader::send_of(const file_records &part, const send_record &s) const
{
    return {s.time_ns,
            names_.name(part.rank, s.comm),
            world_rank(part, s.comm, s.peer),
            s.tag,
            s.bytes,
            ZCT_P2P,
            s.site,
            static_cast<std::int64_t>(s.number),
            s.synchronous};
}

void run_reader::each_send_of(const file_records &part, const collective_record &call,
                              const std::function<void(const send &)> &see) const
{
    const members_record &members = part.communicators[call.comm];
    const bool is_first = members.local.size() > 0 && members.local[0] == part.rank;
    const auto sent =
        collective_sent_ns(call, result_from_first(call.kind) && !members.inter && is_first);
    if (!sent)
        return;
    const std::uint32_t comm = names_.name(part.rank, call.comm);
    for_each_run(part, call, [&](const run_record &run) {
        for (std::uint32_t i = 0; run.direction == ZCT_RUN_SEND && i < run.count; i++)
            see({*sent, comm, world_rank(part, call.comm, run.first + static_cast<std::int32_t>(i)),
                 -1, run.bytes, call.kind, call.site});
    });
}

} // namespace zc::zct
