/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct/trace.h"

#include <algorithm>
#include <iterator>

#include "run_reader.h"

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

/** Of a collective, which messages become rows. */
enum class collective_rows { all, received };

/** The calls of a file as they are: what only some readers need. */
class whole_calls {
  public:
    whole_calls(const run_reader &reader, rank_trace &rank) : reader_(reader), rank_(rank) {}

    void add(file_records &part)
    {
        move_to(rank_.sites, part.sites);
        move_to(rank_.calls, part.calls);
        move_to(rank_.unrecorded_calls, part.unrecorded_calls);
        nr_calls_.resize(part.communicators.size());
        for (const collective_record &c : part.collectives) {
            const members_record &members = part.communicators[c.comm];
            const auto size = static_cast<std::int32_t>(members.local.size());
            const bool rooted = !members.inter && c.root >= 0 && c.root < size;
            rank_.collectives.push_back(
                {c.begin_ns, c.end_ns, c.ended, c.kind, reader_.names().name(rank_.rank, c.comm),
                 rooted ? world_rank(part, c.comm, c.root) : -1, nr_calls_[c.comm]++, c.site});
        }
    }

  private:
    template <typename T>
    static void move_to(std::vector<T> &all, std::vector<T> &some)
    {
        std::move(some.begin(), some.end(), std::back_inserter(all));
    }

    const run_reader &reader_;
    rank_trace &rank_;
    std::vector<std::size_t> nr_calls_; /* of collectives, on each communicator */
};

/** All but the receives. */
void add_sends_and_calls(const run_reader &reader, std::size_t place, collective_rows rows,
                         rank_trace &rank)
{
    whole_calls calls(reader, rank);
    std::vector<send> of_collectives; /* behind the others of their time */
    reader.each_block_of(place, [&](file_records &part) {
        for (const send_record &s : part.sends)
            rank.sends.push_back(reader.send_of(part, s));
        if (rows == collective_rows::all)
            for (const collective_record &call : part.collectives)
                reader.each_send_of(part, call,
                                    [&](const send &s) { of_collectives.push_back(s); });
        calls.add(part);
    });
    rank.sends.insert(rank.sends.end(), of_collectives.begin(), of_collectives.end());
    const auto earlier = [](const send &a, const send &b) { return a.sent_ns < b.sent_ns; };
    if (!std::is_sorted(rank.sends.begin(), rank.sends.end(), earlier))
        std::stable_sort(rank.sends.begin(), rank.sends.end(), earlier);
    rank.sends.shrink_to_fit();
    rank.calls.shrink_to_fit();
}

/** Frees the memory of the others. */
void leave_point_to_point(rank_trace &rank)
{
    const auto is_one = [](const receive &r) { return r.kind == ZCT_P2P; };
    std::vector<receive> left;
    left.reserve(static_cast<std::size_t>(
        std::count_if(rank.receives.begin(), rank.receives.end(), is_one)));
    std::copy_if(rank.receives.begin(), rank.receives.end(), std::back_inserter(left), is_one);
    rank.receives = std::move(left);
}

/** @finish: called with each rank before the next is made. */
run load_as(const fs::path &path, std::vector<std::string> *unreadable, collective_rows rows,
            const std::function<void(rank_trace &)> &finish)
{
    run_reader reader(path, unreadable);
    run run = reader.about();
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        rank_trace &rank = run.ranks[i];
        reader.each_receive(i, [&](const receive &r) { rank.receives.push_back(r); });
        add_sends_and_calls(reader, i, rows, rank);
        finish(rank);
    }
    run.unmatched_receives = reader.about().unmatched_receives;
    run.unmatched_sends = reader.about().unmatched_sends;
    run.size_mismatches = reader.about().size_mismatches;
    return run;
}

} // namespace

run load(const fs::path &path, std::vector<std::string> *unreadable)
{
    return load_as(path, unreadable, collective_rows::all, [](const rank_trace &) {});
}

run load_in_turn(const fs::path &path, std::vector<std::string> *unreadable,
                 const std::function<void(const rank_trace &)> &see)
{
    return load_as(path, unreadable, collective_rows::received, [&](rank_trace &rank) {
        see(rank);
        leave_point_to_point(rank);
    });
}

run_in_turn::run_in_turn(const fs::path &path, std::vector<std::string> *unreadable)
    : reader_(std::make_unique<run_reader>(path, unreadable))
{
}

run_in_turn::~run_in_turn() = default;

const run &run_in_turn::about() const
{
    return reader_->about();
}

void run_in_turn::each_receive(std::size_t place, const std::function<void(const receive &)> &see)
{
    reader_->each_receive(place, see);
}

void run_in_turn::each_send(const std::function<void(std::int32_t, const send &)> &see)
{
    reader_->each_send(see);
}

std::uint64_t run_in_turn::nr_sends(std::size_t place) const
{
    return reader_->nr_sends(place);
}

summary summarize(const fs::path &file)
{
    const file_records records = count_records(file);
    summary s{};
    s.rank = records.rank;
    s.processes = records.processes;
    s.sends = records.counts.sends;
    s.receives = records.counts.receives;
    s.collectives = records.counts.collectives;
    s.communicators = records.communicators.size();
    s.file_bytes = records.file_bytes;
    s.cut_bytes = records.cut_bytes;
    s.complete = records.complete;
    s.mpi = records.mpi;
    s.program = records.program;
    return s;
}

} // namespace zc::zct
