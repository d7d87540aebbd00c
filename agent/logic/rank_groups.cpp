/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_groups.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "thinning.h"

namespace zc::agent {
namespace {

/* The period that is foretold, in ns. A move takes seconds, so what comes within one second is over
 * when it is done; and where the last period of a second resembles the one before it in 19 of 20
 * cases, the engine trusts that, and foretells no change. Longer ones learn more slowly that a
 * program has changed for good. The matrix foretells nothing: it is best where it follows fastest.
 */
constexpr std::uint64_t kForetold = 6'000'000'000;
constexpr std::uint64_t kFollowed = 1'000'000'000;
constexpr std::size_t kMostFlows = 4096;
constexpr std::size_t kLogged = 1 << 14; /* messages remembered of a job, for where its ranks go */
constexpr std::size_t kMostEarly = 16;   /* jobs that are not here yet */

constexpr std::pair<const char *, zcp_groups_kind_t> kKinds[] = {
    {"zc", ZCP_GROUPS_DEFAULT},
    {"matrix", ZCP_GROUPS_MATRIX},
    {"teiresias-basic", ZCP_GROUPS_BASIC},
    {"teiresias-specific", ZCP_GROUPS_HISTORICAL},
    {"teiresias-levenshtein", ZCP_GROUPS_LEVENSHTEIN},
};

struct destroy {
    void operator()(zcp_groups_t *g) const { zcp_groups_destroy(g); }
};

/** By zcp_groups: one engine per job. */
class engine_grouping final : public grouping {
  public:
    engine_grouping(zcp_groups_kind_t kind, std::size_t bytes, const pattern_settings &patterns)
        : kind_(kind), bytes_(bytes), patterns_(patterns)
    {
    }

    int job(job_id job, std::uint32_t ranks) override
    {
        auto at = engines_.find(job);
        if (at != engines_.end() && at->second.ranks == ranks)
            return 0;
        int error = 0;
        auto made = make(ranks, &error);
        if (!made)
            return error;
        engines_[job] = {std::move(made), ranks, {}, {}};
        if (auto early = early_.extract(job))
            inherit(job, early.mapped());
        return 0;
    }
    void job_gone(job_id job) override
    {
        engines_.erase(job);
        early_.erase(job);
    }
    void observe(job_id job, std::span<const zcp_event_t> events) override
    {
        auto at = engines_.find(job);
        if (at == engines_.end())
            return;
        engine &known = at->second;
        for (zcp_event_t e : events) {
            if (foretells() && !known.thinned.pass(e))
                continue;
            zcp_groups_event(known.engine.get(), &e);
            known.log.push_back(e);
            if (known.log.size() > kLogged)
                known.log.pop_front();
        }
    }
    std::vector<zcp_event_t> past(job_id job, std::span<const rank_id> ranks,
                                  std::size_t most) const override
    {
        auto at = engines_.find(job);
        if (at == engines_.end())
            return {};
        std::vector<zcp_event_t> out;
        const auto &log = at->second.log;
        for (auto e = log.rbegin(); e != log.rend() && out.size() < most; ++e) {
            if (std::find(ranks.begin(), ranks.end(), e->src) != ranks.end())
                out.push_back(*e);
        }
        std::reverse(out.begin(), out.end());
        return out;
    }
    /* The engine learns in the order of time: it is made anew from what is remembered. */
    void inherit(job_id job, std::span<const zcp_event_t> events) override
    {
        auto at = engines_.find(job);
        if (at == engines_.end()) {
            if (early_.size() == kMostEarly && !early_.contains(job))
                early_.erase(early_.begin());
            std::vector<zcp_event_t> &kept = early_[job];
            const std::size_t room = kLogged - kept.size();
            kept.insert(kept.end(), events.begin(),
                        events.begin() +
                            static_cast<std::ptrdiff_t>(std::min(room, events.size())));
            return;
        }
        engine &known = at->second;
        std::map<rank_id, std::uint64_t> theirs; /* the time of the latest */
        for (const zcp_event_t &e : events)
            theirs[e.src] = std::max(theirs[e.src], e.time_ns);
        /* What was known of them is what they took with them when they went, or older. */
        std::vector<zcp_event_t> all;
        for (const zcp_event_t &e : known.log) {
            auto came = theirs.find(e.src);
            if (came == theirs.end() || e.time_ns > came->second)
                all.push_back(e);
        }
        all.insert(all.end(), events.begin(), events.end());
        std::stable_sort(all.begin(), all.end(), [](const zcp_event_t &a, const zcp_event_t &b) {
            return a.time_ns < b.time_ns;
        });
        auto made = make(known.ranks);
        if (!made)
            return;
        const std::size_t skipped = all.size() > kLogged ? all.size() - kLogged : 0;
        known.log.assign(all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end());
        for (const zcp_event_t &e : known.log)
            zcp_groups_event(made.get(), &e);
        known.engine = std::move(made);
    }
    std::vector<rank_id> around(job_id job, rank_id rank, std::uint32_t most) const override
    {
        auto at = engines_.find(job);
        if (most == 0)
            return {};
        if (at == engines_.end() || rank >= at->second.ranks)
            return {rank};
        most = std::min(most, at->second.ranks);
        if (seeks_patterns() && patterns_.group == pattern_settings::membership::all)
            return with_pattern(*at->second.engine, rank);
        std::vector<rank_id> group(most);
        std::int64_t count = zcp_groups_around(at->second.engine.get(), rank, most, group.data());
        if (count < 1)
            return {rank};
        group.resize(static_cast<std::size_t>(count));
        return group;
    }
    std::vector<zcp_flow_t> expected(job_id job) const override
    {
        auto at = engines_.find(job);
        if (at == engines_.end())
            return {};
        std::vector<zcp_flow_t> flows(kMostFlows);
        std::int64_t count = zcp_groups_expect(at->second.engine.get(), flows.data(), flows.size());
        flows.resize(static_cast<std::size_t>(
            std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(kMostFlows))));
        return flows;
    }

  private:
    struct engine {
        std::unique_ptr<zcp_groups_t, destroy> engine;
        std::uint32_t ranks = 0;
        thinning thinned;
        std::deque<zcp_event_t> log; /* what the engine has been told last */
    };
    /** As the paper has it: all that are in the predicted pattern, if @rank is; those first that
     * exchange most with it. */
    static std::vector<rank_id> with_pattern(const zcp_groups_t &engine, rank_id rank)
    {
        std::vector<zcp_flow_t> pairs(kMostFlows);
        const std::int64_t count = zcp_groups_forecast(&engine, pairs.data(), pairs.size());
        pairs.resize(static_cast<std::size_t>(
            std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(kMostFlows))));
        std::map<rank_id, double> with; /* bytes between it and @rank */
        for (const zcp_flow_t &pair : pairs) {
            const auto bytes = static_cast<double>(pair.bytes);
            with[pair.src] += pair.dst == rank ? bytes : 0;
            with[pair.dst] += pair.src == rank ? bytes : 0;
        }
        std::vector<rank_id> group = {rank};
        if (with.erase(rank) > 0)
            for (const auto &[member, bytes] : with)
                group.push_back(member);
        std::stable_sort(group.begin() + 1, group.end(),
                         [&with](rank_id a, rank_id b) { return with[a] > with[b]; });
        return group;
    }
    std::unique_ptr<zcp_groups_t, destroy> make(std::uint32_t ranks, int *error = nullptr) const
    {
        zcp_groups_params_t params{};
        params.size = sizeof params;
        params.ranks = ranks;
        params.kind = kind_;
        params.max_bytes = bytes_;
        if (seeks_patterns()) {
            params.literals = patterns_.literals;
            params.window = patterns_.window;
            params.support = patterns_.support;
            params.period_events = patterns_.period;
            params.adaptive = patterns_.adaptive ? 1 : 0;
            params.kmp = patterns_.kmp;
            params.match = patterns_.match;
            params.recent = patterns_.recent;
        } else {
            params.period_ns = foretells() ? kForetold : kFollowed;
        }
        zcp_groups_t *made = nullptr;
        const int failed = zcp_groups_create(&params, &made);
        if (error != nullptr)
            *error = -failed;
        if (failed != 0)
            return nullptr;
        return std::unique_ptr<zcp_groups_t, destroy>(made);
    }
    bool foretells() const { return kind_ == ZCP_GROUPS_DEFAULT; }
    /* Theirs are sequences of messages: not one may be missing. */
    bool seeks_patterns() const
    {
        return kind_ != ZCP_GROUPS_DEFAULT && kind_ != ZCP_GROUPS_MATRIX;
    }

    zcp_groups_kind_t kind_;
    std::size_t bytes_;
    pattern_settings patterns_;
    std::map<job_id, engine> engines_;
    std::map<job_id, std::vector<zcp_event_t>> early_;
};

} // namespace

const std::vector<std::string> &grouping_names()
{
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto &[name, kind] : kKinds)
            all.emplace_back(name);
        all.emplace_back("single");
        return all;
    }();
    return names;
}

std::unique_ptr<grouping> make_grouping(std::string_view name, std::size_t bytes,
                                        const pattern_settings &patterns)
{
    for (const auto &[known, kind] : kKinds) {
        if (name == known)
            return std::make_unique<engine_grouping>(kind, bytes, patterns);
    }
    return name == "single" ? std::make_unique<grouping>() : nullptr;
}

} // namespace zc::agent
