/* SPDX-License-Identifier: BSD-3-Clause */

/* Whatever is fed and asked: bounds hold, nothing is undefined, same in, same out. */
#include <cerrno>
#include <cmath>

#include "support.h"

using namespace zcg_test;
using zc::groups::dice;

namespace {

zcp_event_t wild(dice &d, uint32_t ranks)
{
    zcp_event_t e{};
    e.src = d.below(20) == 0 ? static_cast<uint32_t>(d.next()) : d.below(ranks);
    e.dst = d.below(20) == 0 ? static_cast<uint32_t>(d.next()) : d.below(ranks);
    e.bytes = d.next() >> d.below(64);
    e.time_ns = d.next() >> d.below(64);
    e.kind = d.below(40);
    return e;
}

std::vector<uint32_t> answers(zcp_groups_t *g, uint32_t ranks, dice &d)
{
    std::vector<uint32_t> out(ranks);
    EXPECT_GT(zcp_groups_cut(g, 1 + d.below(ranks), out.data()), 0);
    std::vector<uint32_t> near(1 + d.below(ranks));
    const int64_t nr =
        zcp_groups_around(g, d.below(ranks), static_cast<uint32_t>(near.size()), near.data());
    EXPECT_GT(nr, 0);
    near.resize(static_cast<size_t>(std::max<int64_t>(nr, 0)));
    out.insert(out.end(), near.begin(), near.end());
    for (const zcp_flow_t &f : forecast(g)) {
        EXPECT_LT(f.src, ranks);
        EXPECT_LT(f.dst, ranks);
        EXPECT_NE(f.src, f.dst);
        EXPECT_GE(f.messages, 1u);
        EXPECT_GE(f.confidence, 0);
        EXPECT_LE(f.confidence, 1);
        out.push_back(f.src ^ f.dst << 8 ^ static_cast<uint32_t>(f.bytes));
    }
    EXPECT_GE(zcp_groups_expect(g, nullptr, 0), 0);
    return out;
}

std::vector<uint32_t> run(const zcp_groups_params_t &p, size_t events, uint64_t seed)
{
    const engine g = make(p);
    dice d(seed);
    std::vector<uint32_t> out;
    for (size_t i = 0; i < events; i++) {
        const zcp_event_t e = wild(d, p.ranks);
        zcp_groups_event(g.get(), &e);
        if (d.below(200) == 0) {
            const auto more = answers(g.get(), p.ranks, d);
            out.insert(out.end(), more.begin(), more.end());
        }
    }
    const zcp_groups_stats_t stats = stats_of(g.get());
    EXPECT_EQ(events, stats.events + stats.ignored);
    EXPECT_LE(stats.bytes, stats.peak_bytes);
    EXPECT_LE(stats.peak_bytes, stats.max_bytes);
    EXPECT_TRUE(std::isfinite(stats.agreement));
    return out;
}

class PropertyTest : public testing::TestWithParam<int> {
  protected:
    zcp_groups_params_t params(uint32_t ranks, uint32_t period) const
    {
        return params_of(ranks, static_cast<zcp_groups_kind_t>(GetParam()), period);
    }
};

TEST_P(PropertyTest, WildEventsAreBoundedAndDeterministic)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        dice d(seed);
        auto p = params(1 + d.below(40), 1 + d.below(300));
        p.kmp = d.below(ZCP_GROUPS_KMP_COUNT);
        p.adaptive = d.below(2);
        p.match = d.below(ZCP_GROUPS_MATCH_COUNT);
        p.recent = d.below(ZCP_GROUPS_RECENT_COUNT);
        p.period_ns = d.below(2) ? 1 + (d.next() >> d.below(60)) : 0;
        EXPECT_EQ(run(p, 3000, seed), run(p, 3000, seed));
    }
}

TEST_P(PropertyTest, TheSmallestBudgetIsKept)
{
    auto p = params(16, 128);
    p.max_bytes = 4096;
    zcp_groups_t *out = nullptr;
    while (zcp_groups_create(&p, &out) == -ENOSPC)
        p.max_bytes += 4096;
    zcp_groups_destroy(out);
    EXPECT_LT(p.max_bytes, 1u << 20);
    run(p, 4000, 9);
}

TEST_P(PropertyTest, ThousandsOfRanks)
{
    auto p = params(5000, 4096);
    const engine g = make(p);
    dice d(11);
    for (int i = 0; i < 30000; i++) {
        const zcp_event_t e = wild(d, 5000);
        zcp_groups_event(g.get(), &e);
    }
    std::vector<uint32_t> out(5000);
    EXPECT_GT(zcp_groups_cut(g.get(), 64, out.data()), 0);
    EXPECT_LE(stats_of(g.get()).peak_bytes, stats_of(g.get()).max_bytes);
}

TEST_P(PropertyTest, OneRankHasNobodyToTalkTo)
{
    const engine g = make(params(1, 4));
    for (int i = 0; i < 20; i++) {
        const zcp_event_t e{0, 0, 5, 0, 0, 0};
        zcp_groups_event(g.get(), &e);
    }
    uint32_t group = 7;
    EXPECT_EQ(1, zcp_groups_cut(g.get(), 1, &group));
    EXPECT_EQ(0u, group);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PropertyTest, testing::Range(0, int{ZCP_GROUPS_KIND_COUNT}),
                         [](const auto &kind) {
                             return std::string(
                                 zcp_groups_kind_name(static_cast<zcp_groups_kind_t>(kind.param)));
                         });

/* Names of ranks carry no meaning: renaming them renames the forecast. */
TEST(RenamingTest, RanksAreOnlyNames)
{
    const auto stream = zc::groups::butterfly({16, 3000, 0.05, 10, 3});
    auto renamed = stream.events;
    for (zcp_event_t &e : renamed) {
        e.src = 15 - e.src;
        e.dst = 15 - e.dst;
    }
    const engine a = make(params_of(16));
    const engine b = make(params_of(16));
    feed(a.get(), stream.events);
    feed(b.get(), renamed);
    std::set<std::tuple<uint32_t, uint32_t, uint64_t>> one;
    std::set<std::tuple<uint32_t, uint32_t, uint64_t>> other;
    for (const zcp_flow_t &f : forecast(a.get()))
        one.insert({f.src, f.dst, f.bytes});
    for (const zcp_flow_t &f : forecast(b.get()))
        other.insert({15 - f.src, 15 - f.dst, f.bytes});
    EXPECT_EQ(one, other);
}

} // namespace
