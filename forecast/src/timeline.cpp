/* SPDX-License-Identifier: BSD-3-Clause */
#include "timeline.h"

#include <algorithm>

#include "calls_by_end.h"

namespace zc::forecast {

namespace {

/* Calls of one thread do not overlap; what the clock's correction rounds does not count. */
constexpr std::int64_t kRoundingNs = 10;

/** With room for the other steps, since a run has millions. */
std::vector<step> calls_of(const zct::rank_trace &rank, std::size_t nr_ends)
{
    std::vector<step> steps;
    steps.reserve(rank.calls.size() + rank.collectives.size() + nr_ends);
    for (std::size_t i = 0; i < rank.calls.size(); i++)
        steps.push_back({step::kind::call, rank.calls[i].begin_ns, rank.calls[i].end_ns, i, {}});
    return steps;
}

/* A call that posts and waits (MPI_Sendrecv) posts all before it waits. */
std::int64_t posted_ns(const message_end &end, const std::vector<step> &calls)
{
    return end.call == kNoCall ? end.posted_ns : std::min(end.posted_ns, calls[end.call].begin_ns);
}

void add_collectives(const zct::rank_trace &rank, std::vector<step> &steps)
{
    const calls_by_end calls(rank.calls);
    for (std::size_t i = 0; i < rank.collectives.size(); i++) {
        const zct::collective_call &c = rank.collectives[i];
        steps.push_back({step::kind::collective, c.begin_ns, c.begin_ns, i, {}});
        const std::size_t ended = c.ended ? calls.at(c.end_ns) : kNoCall;
        if (ended != kNoCall)
            steps[ended].needs.push_back({need::kind::collective, i});
    }
}

bool before(const step &a, const step &b)
{
    if (a.begin_ns != b.begin_ns)
        return a.begin_ns < b.begin_ns;
    return a.what != step::kind::call && b.what == step::kind::call;
}

/* A probe has found what the rank receives next, if that was sent by then. */
void find_probed(const zct::rank_trace &rank, const std::vector<message> &messages,
                 std::vector<step> &steps)
{
    step *probe = nullptr;
    for (step &s : steps) {
        if (s.what == step::kind::call && rank.calls[s.idx].function == ZCT_FUNCTION_PROBE)
            probe = &s;
        if (s.what != step::kind::receive || !probe)
            continue;
        if (messages[s.idx].send.posted_ns <= probe->end_ns)
            probe->needs.push_back({need::kind::probed, s.idx});
        probe = nullptr;
    }
}

std::string fault_of(const std::vector<step> &steps, const zct::rank_trace &rank)
{
    if (!rank.has_calls)
        return "its calls were not recorded (zc-trace --calls)";
    if (!rank.complete)
        return "rank " + std::to_string(rank.rank) + " was not recorded to its end";
    std::int64_t end = INT64_MIN;
    for (const step &s : steps) {
        if (s.what != step::kind::call)
            continue;
        if (end != INT64_MIN && s.begin_ns < end - kRoundingNs)
            return "several threads of rank " + std::to_string(rank.rank) + " wait at once";
        end = s.end_ns;
    }
    return {};
}

} // namespace

timeline timeline_of(const zct::run &run, const std::vector<message> &messages)
{
    timeline all;
    std::vector<std::size_t> nr_ends(run.ranks.size());
    for (const message &m : messages)
        for (const message_end *end : {&m.send, &m.receive})
            nr_ends[end->rank]++;
    for (std::size_t r = 0; r < run.ranks.size(); r++)
        all.ranks.push_back(calls_of(run.ranks[r], nr_ends[r]));
    for (std::size_t r = 0; r < run.ranks.size(); r++)
        add_collectives(run.ranks[r], all.ranks[r]);
    for (std::size_t m = 0; m < messages.size(); m++) {
        for (const bool sends : {true, false}) {
            const message_end &end = sends ? messages[m].send : messages[m].receive;
            std::vector<step> &steps = all.ranks[end.rank];
            if (end.call != kNoCall)
                steps[end.call].needs.push_back(
                    {sends ? need::kind::send : need::kind::receive, m});
            const std::int64_t posted = posted_ns(end, steps);
            steps.push_back(
                {sends ? step::kind::send : step::kind::receive, posted, posted, m, {}});
        }
    }
    for (std::size_t r = 0; r < run.ranks.size(); r++) {
        std::stable_sort(all.ranks[r].begin(), all.ranks[r].end(), before);
        find_probed(run.ranks[r], messages, all.ranks[r]);
        if (all.unusable.empty())
            all.unusable = fault_of(all.ranks[r], run.ranks[r]);
    }
    return all;
}

} // namespace zc::forecast
