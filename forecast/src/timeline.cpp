/* SPDX-License-Identifier: BSD-3-Clause */
#include "timeline.h"

#include <algorithm>
#include <unordered_map>

namespace zc::forecast {

namespace {

/* Calls of one thread do not overlap; what the clock's correction rounds does not count. */
constexpr std::int64_t kRoundingNs = 10;

std::vector<step> calls_of(const zct::rank_trace &rank)
{
    std::vector<step> steps;
    for (std::size_t i = 0; i < rank.calls.size(); i++)
        steps.push_back(
            {step::kind::call, rank.calls[i].begin_ns, rank.calls[i].end_ns, i, {}, {}, {}, {}});
    return steps;
}

/* A call that posts and waits (MPI_Sendrecv) posts all before it waits. */
std::int64_t posted_ns(const message_end &end, const std::vector<step> &calls)
{
    return end.call == kNoCall ? end.posted_ns : std::min(end.posted_ns, calls[end.call].begin_ns);
}

void add_collectives(const zct::rank_trace &rank, std::vector<step> &steps,
                     const std::unordered_map<std::int64_t, std::size_t> &by_end)
{
    for (std::size_t i = 0; i < rank.collectives.size(); i++) {
        const zct::collective_call &c = rank.collectives[i];
        steps.push_back({step::kind::collective, c.begin_ns, c.begin_ns, i, {}, {}, {}, {}});
        const auto ended = by_end.find(c.end_ns);
        if (c.ended && ended != by_end.end())
            steps[ended->second].collectives.push_back(i);
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
            probe->probed.push_back(s.idx);
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
    for (const zct::rank_trace &rank : run.ranks)
        all.ranks.push_back(calls_of(rank));
    std::vector<std::unordered_map<std::int64_t, std::size_t>> by_end(run.ranks.size());
    for (std::size_t r = 0; r < run.ranks.size(); r++)
        for (std::size_t i = 0; i < all.ranks[r].size(); i++)
            by_end[r][all.ranks[r][i].end_ns] = i;
    for (std::size_t r = 0; r < run.ranks.size(); r++)
        add_collectives(run.ranks[r], all.ranks[r], by_end[r]);
    for (std::size_t m = 0; m < messages.size(); m++) {
        for (const bool sends : {true, false}) {
            const message_end &end = sends ? messages[m].send : messages[m].receive;
            std::vector<step> &steps = all.ranks[end.rank];
            if (end.call != kNoCall)
                (sends ? steps[end.call].sends : steps[end.call].receives).push_back(m);
            const std::int64_t posted = posted_ns(end, steps);
            steps.push_back({sends ? step::kind::send : step::kind::receive,
                             posted,
                             posted,
                             m,
                             {},
                             {},
                             {},
                             {}});
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
