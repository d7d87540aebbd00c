/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct/trace.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "match.h"
#include "runs.h"

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

/** Of a collective, which messages become rows. */
enum class collective_rows { all, received };

/** Makes the rows of one rank. Takes from its file what no other rank needs. */
class rank_builder {
  public:
    rank_builder(file_records &file, collective_rows rows, const communicator_names &names,
                 sends_in_flight &in_flight, const collective_calls &calls,
                 const std::vector<bool> &present, run &run)
        : file_(file), rows_(rows), names_(names), in_flight_(in_flight), calls_(calls),
          present_(present), run_(run)
    {
    }

    rank_trace build()
    {
        number_collectives();
        match_receives();
        add_rows();
        file_.receives = {};
        add_sends();
        number_orders();
        rank_.rank = file_.rank;
        rank_.complete = file_.complete;
        rank_.cut_bytes = file_.cut_bytes;
        rank_.host = file_.host;
        add_calls();
        return std::move(rank_);
    }

  private:
    bool inter(std::uint32_t comm) const { return file_.communicators[comm].inter; }

    /** Is this rank the first of the communicator? */
    bool is_first(std::uint32_t comm) const
    {
        const member_list &local = file_.communicators[comm].local;
        return local.size() > 0 && local[0] == file_.rank;
    }

    bool is_present(std::int32_t rank) const
    {
        return static_cast<std::size_t>(rank) < present_.size() &&
               present_[static_cast<std::size_t>(rank)];
    }

    /** Their places among the calls on the same communicator. */
    void number_collectives()
    {
        std::vector<std::size_t> nr_calls(file_.communicators.size());
        for (const collective_record &call : file_.collectives)
            nth_.push_back(nr_calls[call.comm]++);
    }

    void match_receives()
    {
        struct taker {
            std::uint64_t order;
            std::size_t idx;
            bool lost;
        };
        std::vector<taker> takers;
        for (std::size_t i = 0; i < file_.receives.size(); i++)
            takers.push_back({file_.receives[i].matched, i, false});
        for (std::size_t i = 0; i < file_.lost.size(); i++)
            takers.push_back({file_.lost[i].order, i, true});
        std::stable_sort(takers.begin(), takers.end(),
                         [](const taker &a, const taker &b) { return a.order < b.order; });

        matches_.resize(file_.receives.size());
        for (const taker &t : takers) {
            if (!t.lost) {
                matches_[t.idx] = take(file_.receives[t.idx]);
            } else if (file_.lost[t.idx].peer >= 0) {
                const lost_record &lost = file_.lost[t.idx];
                take(lost);
            }
        }
    }

    template <typename T>
    const send_record *take(const T &receive)
    {
        return in_flight_.take(names_.name(file_.rank, receive.comm),
                               world_rank(file_, receive.comm, receive.peer), file_.rank,
                               receive.tag);
    }

    void add_rows()
    {
        struct event {
            std::uint64_t order;
            std::size_t idx;
            bool collective;
        };
        std::vector<event> events;
        for (std::size_t i = 0; i < file_.receives.size(); i++)
            events.push_back({file_.receives[i].order, i, false});
        for (std::size_t i = 0; i < file_.collectives.size(); i++)
            if (file_.collectives[i].ended)
                events.push_back({file_.collectives[i].order, i, true});
        std::stable_sort(events.begin(), events.end(),
                         [](const event &a, const event &b) { return a.order < b.order; });
        rank_.receives.reserve(file_.receives.size());
        for (const event &e : events) {
            if (e.collective)
                add_collective(e.idx);
            else
                add_receive(file_.receives[e.idx], matches_[e.idx]);
        }
    }

    void add_receive(const receive_record &r, const send_record *sent)
    {
        receive row{};
        row.comm = names_.name(file_.rank, r.comm);
        row.source = world_rank(file_, r.comm, r.peer);
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
        rank_.receives.push_back(row);
    }

    void add_collective(std::size_t idx)
    {
        const collective_record &call = file_.collectives[idx];
        receive row{};
        row.comm = names_.name(file_.rank, call.comm);
        row.tag = -1;
        row.kind = call.kind;
        row.collective = static_cast<std::int64_t>(idx);
        row.posted_ns = call.begin_ns;
        row.done_ns = call.end_ns;
        row.done_order = call.done_order;
        row.site = call.site;
        for_each_run(file_, call, [&](const run_record &run) {
            for (std::uint32_t i = 0; run.direction == ZCT_RUN_RECEIVE && i < run.count; i++)
                add_collective_row(row, idx, run, i);
        });
    }

    /** @row: what all of the call have in common. */
    void add_collective_row(receive row, std::size_t idx, const run_record &run, std::uint32_t i)
    {
        const collective_record &call = file_.collectives[idx];
        row.source = world_rank(file_, call.comm, run.first + static_cast<std::int32_t>(i));
        row.bytes = run.bytes;
        row.addr = run.addr + i * run.stride;
        const collective_record *sender = calls_.at(row.source, row.comm, nth_[idx]);
        std::optional<std::int64_t> sent;
        if (sender && sender->kind == call.kind)
            sent = collective_sent_ns(*sender, result_from_first(call.kind) && !inter(call.comm) &&
                                                   row.source != file_.rank);
        row.sent_known = sent.has_value();
        row.sent_ns = sent.value_or(call.end_ns);
        rank_.receives.push_back(row);
    }

    void add_sends()
    {
        rank_.sends.reserve(file_.sends.size());
        for (const send_record &s : file_.sends)
            rank_.sends.push_back({s.time_ns, names_.name(file_.rank, s.comm),
                                   world_rank(file_, s.comm, s.peer), s.tag, s.bytes, ZCT_P2P,
                                   s.site, static_cast<std::int64_t>(s.number), s.synchronous});
        if (rows_ == collective_rows::all)
            for (const collective_record &call : file_.collectives)
                add_collective_sends(call);
        file_.run_bytes = {};
        std::stable_sort(rank_.sends.begin(), rank_.sends.end(),
                         [](const send &a, const send &b) { return a.sent_ns < b.sent_ns; });
    }

    void add_collective_sends(const collective_record &call)
    {
        const auto sent = collective_sent_ns(call, result_from_first(call.kind) &&
                                                       !inter(call.comm) && is_first(call.comm));
        const std::uint32_t comm = names_.name(file_.rank, call.comm);
        for_each_run(file_, call, [&](const run_record &run) {
            for (std::uint32_t i = 0; sent && run.direction == ZCT_RUN_SEND && i < run.count; i++)
                rank_.sends.push_back(
                    {*sent, comm,
                     world_rank(file_, call.comm, run.first + static_cast<std::int32_t>(i)), -1,
                     run.bytes, call.kind, call.site});
        });
    }

    /** The calls as they are: what only some readers need. */
    void add_calls()
    {
        for (std::size_t i = 0; i < file_.collectives.size(); i++) {
            const collective_record &c = file_.collectives[i];
            const auto size = static_cast<std::int32_t>(file_.communicators[c.comm].local.size());
            const bool rooted = !inter(c.comm) && c.root >= 0 && c.root < size;
            rank_.collectives.push_back(
                {c.begin_ns, c.end_ns, c.ended, c.kind, names_.name(file_.rank, c.comm),
                 rooted ? world_rank(file_, c.comm, c.root) : -1, nth_[i], c.site});
        }
        rank_.has_calls = file_.has_calls;
        rank_.sites = std::move(file_.sites);
        rank_.calls = std::move(file_.calls);
        rank_.calls.shrink_to_fit();
        rank_.unrecorded_calls = std::move(file_.unrecorded_calls);
        for (const clock_record &clock : file_.clocks)
            rank_.clock_error_ns = std::max(rank_.clock_error_ns, clock.error_ns);
    }

    /** Places of the rows in orders other than theirs. */
    void number_orders()
    {
        auto &rows = rank_.receives;
        std::vector<std::size_t> order(rows.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return rows[a].done_order < rows[b].done_order;
        });
        for (std::size_t i = 0; i < order.size(); i++)
            rows[order[i]].done_order = i;
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return rows[a].sent_ns < rows[b].sent_ns;
        });
        for (std::size_t i = 0; i < order.size(); i++)
            rows[order[i]].arrival_order = i;
    }

    file_records &file_;
    collective_rows rows_;
    const communicator_names &names_;
    sends_in_flight &in_flight_;
    const collective_calls &calls_;
    const std::vector<bool> &present_;
    run &run_;
    rank_trace rank_{};
    std::vector<std::size_t> nth_;
    std::vector<const send_record *> matches_;
};

/** "r12.zct" → 12. */
std::optional<std::int32_t> rank_of(const fs::path &file)
{
    const std::string name = file.filename().string();
    std::int32_t rank = 0;
    const char *begin = name.data() + 1;
    const char *end = name.data() + name.size() - std::min<std::size_t>(name.size(), 4);
    if (!name.ends_with(".zct") || name.size() < 6 || name[0] != 'r')
        return {};
    const auto [stop, problem] = std::from_chars(begin, end, rank);
    return problem == std::errc{} && stop == end && rank >= 0 ? std::optional(rank) : std::nullopt;
}

/** The r<rank>.zct files of a folder, in order of ranks. */
std::vector<fs::path> files_in(const fs::path &folder, std::error_code &problem)
{
    std::vector<std::pair<std::int32_t, fs::path>> found;
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem))
        if (const auto rank = rank_of(at->path()))
            found.emplace_back(*rank, at->path());
    std::sort(found.begin(), found.end());
    std::vector<fs::path> files;
    files.reserve(found.size());
    for (auto &[rank, file] : found)
        files.push_back(std::move(file));
    return files;
}

std::vector<fs::path> files_of(const fs::path &path)
{
    std::error_code problem;
    if (!fs::is_directory(path, problem))
        return {path};
    std::vector<fs::path> files = files_in(path, problem);
    if (problem)
        throw error(path.string() + ": " + problem.message());
    if (files.empty())
        throw error(path.string() + ": no r<rank>.zct files in this folder");
    return files;
}

std::string run_name(const fs::path &path)
{
    fs::path whole = fs::absolute(path).lexically_normal();
    if (!fs::is_directory(path))
        whole = whole.parent_path();
    else if (whole.filename().empty()) /* a trailing slash */
        whole = whole.parent_path();
    return whole.extension() == ".zct" ? whole.stem().string() : whole.filename().string();
}

/** As load() of trace.h. */
std::vector<file_records> read_all(const fs::path &path, std::vector<std::string> *unreadable)
{
    std::vector<file_records> files;
    std::unordered_set<std::int32_t> ranks;
    for (const fs::path &file : files_of(path)) {
        try {
            files.push_back(read_records(file));
        } catch (const error &e) {
            if (!unreadable)
                throw;
            unreadable->emplace_back(e.what());
            continue;
        }
        const file_records &first = files.front();
        const file_records &last = files.back();
        if (last.run != first.run || last.processes != first.processes)
            throw error(file.string() + ": is of another run than the files beside it");
        if (!ranks.insert(last.rank).second)
            throw error(file.string() + ": the same rank as another file");
    }
    if (files.empty())
        throw error(unreadable->front());
    std::sort(files.begin(), files.end(),
              [](const file_records &a, const file_records &b) { return a.rank < b.rank; });
    return files;
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
    std::vector<file_records> files = read_all(path, unreadable);
    const file_records &first = files.front();
    run run{};
    run.name = run_name(path);
    run.program = first.program;
    run.command = first.command;
    run.mpi = first.mpi;
    run.processes = first.processes;
    run.id = first.run;
    run.start_ns = first.start_ns;

    communicator_names names(first.processes);
    std::vector<bool> present(static_cast<std::size_t>(first.processes));
    for (const file_records &file : files) {
        names.add(file);
        present[static_cast<std::size_t>(file.rank)] = true;
    }
    sends_in_flight in_flight(files, names);
    const collective_calls calls(files, names);
    for (file_records &file : files) {
        run.ranks.push_back(
            rank_builder(file, rows, names, in_flight, calls, present, run).build());
        finish(run.ranks.back());
    }
    run.unmatched_sends = in_flight.left(present);
    run.communicators = names.take();
    return run;
}

} // namespace

bool is_trace_file(const fs::path &file)
{
    char magic[ZCT_MAGIC_BYTES] = {};
    std::ifstream in(file, std::ios::binary);
    in.read(magic, sizeof(magic));
    return in && std::equal(magic, magic + sizeof(magic), ZCT_MAGIC);
}

bool is_trace_folder(const fs::path &folder)
{
    std::error_code problem;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder, problem))
        if (rank_of(entry.path()))
            return true;
    return false;
}

std::vector<fs::path> trace_files(const fs::path &folder)
{
    std::error_code problem;
    std::vector<fs::path> files = files_in(folder, problem);
    for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
         at.increment(problem)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (!name.starts_with("spawned-") || !name.ends_with(".zct") || at->is_symlink(ignored) ||
            !at->is_directory(ignored))
            continue;
        const std::vector<fs::path> more = files_in(at->path(), ignored);
        files.insert(files.end(), more.begin(), more.end());
    }
    std::erase_if(files, [&](const fs::path &file) { return fs::is_directory(file, problem); });
    return files;
}

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
