/* SPDX-License-Identifier: BSD-3-Clause */
#include "grouping.h"

#include <algorithm>

namespace zc::agent {
namespace {

constexpr std::uint64_t kPeriod = 1'000'000'000; /* ns; the horizon a move must pay within is longer */
constexpr std::size_t kMostFlows = 4096;

struct destroy {
    void operator()(zcp_groups_t *g) const { zcp_groups_destroy(g); }
};

/** By zcp_groups: one engine per job. */
class engine_grouping final : public grouping {
  public:
    engine_grouping(zcp_groups_kind_t kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {}

    void job(job_id job, std::uint32_t ranks) override
    {
        auto at = engines_.find(job);
        if (at != engines_.end() && at->second.ranks == ranks)
            return;
        zcp_groups_params_t params{};
        params.size = sizeof params;
        params.ranks = ranks;
        params.kind = kind_;
        params.period_ns = kPeriod;
        params.max_bytes = bytes_;
        zcp_groups_t *made = nullptr;
        if (ranks == 0 || zcp_groups_create(&params, &made) != 0)
            return; /* more ranks than it can do: they move one by one */
        engines_[job] = {std::unique_ptr<zcp_groups_t, destroy>(made), ranks};
    }
    void job_gone(job_id job) override { engines_.erase(job); }
    void observe(job_id job, std::span<const zcp_event_t> events) override
    {
        auto at = engines_.find(job);
        if (at == engines_.end())
            return;
        for (const zcp_event_t &e : events)
            zcp_groups_event(at->second.engine.get(), &e);
    }
    std::vector<rank_id> around(job_id job, rank_id rank, std::uint32_t most) const override
    {
        auto at = engines_.find(job);
        if (most == 0)
            return {};
        if (at == engines_.end() || rank >= at->second.ranks)
            return {rank};
        most = std::min(most, at->second.ranks);
        std::vector<rank_id> group(most);
        std::int64_t count =
            zcp_groups_around(at->second.engine.get(), rank, most, group.data());
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
        std::int64_t count =
            zcp_groups_expect(at->second.engine.get(), flows.data(), flows.size());
        flows.resize(static_cast<std::size_t>(
            std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(kMostFlows))));
        return flows;
    }

  private:
    struct engine {
        std::unique_ptr<zcp_groups_t, destroy> engine;
        std::uint32_t ranks = 0;
    };
    zcp_groups_kind_t kind_;
    std::size_t bytes_;
    std::map<job_id, engine> engines_;
};

} // namespace

std::unique_ptr<grouping> make_grouping(std::string_view name, std::size_t bytes)
{
    if (name == "zc")
        return std::make_unique<engine_grouping>(ZCP_GROUPS_DEFAULT, bytes);
    if (name == "matrix")
        return std::make_unique<engine_grouping>(ZCP_GROUPS_MATRIX, bytes);
    if (name == "single")
        return std::make_unique<grouping>();
    return nullptr;
}

} // namespace zc::agent
