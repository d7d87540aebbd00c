/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>

#include "support.h"

using namespace zcg_test;

extern "C" int header_c11_round_trip(void);

namespace {

int create(const zcp_groups_params_t &params)
{
    zcp_groups_t *out = nullptr;
    const int status = zcp_groups_create(&params, &out);
    zcp_groups_destroy(out);
    return status;
}

zcp_event_t event(uint32_t src, uint32_t dst, uint64_t bytes = 100, uint64_t time_ns = 0,
                  uint32_t kind = 0)
{
    return {src, dst, bytes, time_ns, kind, 0};
}

TEST(ApiTest, WorksFromC11)
{
    EXPECT_TRUE(header_c11_round_trip());
}

TEST(ApiTest, NamesEveryKindAndParsesItBack)
{
    for (int kind = 0; kind < ZCP_GROUPS_KIND_COUNT; kind++) {
        const char *name = zcp_groups_kind_name(static_cast<zcp_groups_kind_t>(kind));
        ASSERT_NE(nullptr, name);
        EXPECT_EQ(kind, zcp_groups_kind_parse(name));
        EXPECT_EQ(0, create(params_of(8, static_cast<zcp_groups_kind_t>(kind))));
    }
    EXPECT_EQ(nullptr, zcp_groups_kind_name(ZCP_GROUPS_KIND_COUNT));
    EXPECT_EQ(-1, zcp_groups_kind_parse("oracle"));
    EXPECT_EQ(-1, zcp_groups_kind_parse(nullptr));
}

TEST(ApiTest, RefusesWorldsOfNoOrTooManyRanks)
{
    EXPECT_EQ(-EINVAL, create(params_of(0)));
    EXPECT_EQ(-EINVAL, create(params_of(ZCP_GROUPS_MAX_RANKS + 1)));
    EXPECT_EQ(0, create(params_of(1)));
}

TEST(ApiTest, RefusesBadPatternParameters)
{
    auto p = params_of(8);
    p.literals = 1;
    EXPECT_EQ(-EINVAL, create(p));
    p = params_of(8);
    p.literals = 5;
    p.window = 4;
    EXPECT_EQ(-EINVAL, create(p));
    p = params_of(8);
    p.window = 33;
    EXPECT_EQ(-EINVAL, create(p));
    p = params_of(8);
    p.support = 1;
    EXPECT_EQ(-EINVAL, create(p));
}

TEST(ApiTest, RefusesReadingsThatItDoesNotKnow)
{
    auto p = params_of(8, ZCP_GROUPS_HISTORICAL);
    p.kmp = ZCP_GROUPS_KMP_STRICT;
    p.match = ZCP_GROUPS_MATCH_PREFIX;
    p.recent = ZCP_GROUPS_RECENT_CURRENT;
    EXPECT_EQ(0, create(p));
    for (uint32_t zcp_groups_params_t::*reading :
         {&zcp_groups_params_t::kmp, &zcp_groups_params_t::match, &zcp_groups_params_t::recent}) {
        auto wrong = p;
        wrong.*reading = ZCP_GROUPS_KMP_COUNT;
        EXPECT_EQ(-EINVAL, create(wrong));
    }
}

TEST(ApiTest, RefusesATooLongPeriod)
{
    auto p = params_of(8);
    p.period_events = (1u << 20) + 1;
    EXPECT_EQ(-EINVAL, create(p));
}

TEST(ApiTest, RefusesAnUnknownKind)
{
    EXPECT_EQ(-EINVAL, create(params_of(8, ZCP_GROUPS_KIND_COUNT)));
}

TEST(ApiTest, RefusesFieldsItDoesNotKnow)
{
    struct {
        zcp_groups_params_t known;
        uint64_t later;
    } p = {params_of(8), 0};
    p.known.size = sizeof(p);
    EXPECT_EQ(0, create(p.known));
    p.later = 1;
    EXPECT_EQ(-EINVAL, create(p.known));
}

TEST(ApiTest, RefusesABudgetTooSmallForTheWorld)
{
    auto p = params_of(4096);
    p.max_bytes = 64 << 10;
    EXPECT_EQ(-ENOSPC, create(p));
}

TEST(ApiTest, RefusesNullArguments)
{
    const auto p = params_of(8);
    zcp_groups_t *out = nullptr;
    uint32_t ranks[8];
    EXPECT_EQ(-EINVAL, zcp_groups_create(nullptr, &out));
    EXPECT_EQ(-EINVAL, zcp_groups_create(&p, nullptr));
    const engine g = make(p);
    EXPECT_EQ(-EINVAL, zcp_groups_forecast(g.get(), nullptr, 1));
    EXPECT_EQ(-EINVAL, zcp_groups_cut(g.get(), 0, ranks));
    EXPECT_EQ(-EINVAL, zcp_groups_cut(g.get(), 2, nullptr));
    EXPECT_EQ(-EINVAL, zcp_groups_around(g.get(), 8, 2, ranks));
    EXPECT_EQ(-EINVAL, zcp_groups_around(g.get(), 0, 0, ranks));
    zcp_groups_destroy(nullptr);
}

TEST(ApiTest, KnowsNothingOfAnEmptyStream)
{
    for (int kind = 0; kind < ZCP_GROUPS_KIND_COUNT; kind++) {
        const engine g = make(params_of(8, static_cast<zcp_groups_kind_t>(kind)));
        EXPECT_EQ(0, zcp_groups_forecast(g.get(), nullptr, 0));
        uint32_t out[8];
        EXPECT_EQ(8, zcp_groups_cut(g.get(), 4, out)); /* everyone alone */
        EXPECT_EQ(1, zcp_groups_around(g.get(), 3, 4, out));
        EXPECT_EQ(3u, out[0]);
    }
}

TEST(ApiTest, IgnoresAndCountsRanksOutsideTheWorld)
{
    const engine g = make(params_of(4));
    for (const auto &e : {event(4, 0), event(0, 4), event(UINT32_MAX, 1), event(0, 1, 1, 0, 32)})
        zcp_groups_event(g.get(), &e);
    EXPECT_EQ(0u, stats_of(g.get()).events);
    EXPECT_EQ(4u, stats_of(g.get()).ignored);
}

TEST(ApiTest, LearnsOnlyTheKindsAskedFor)
{
    auto p = params_of(4);
    p.kinds = 1u << 2;
    const engine g = make(p);
    const zcp_event_t other = event(0, 1, 1, 0, 3);
    const zcp_event_t wanted = event(2, 3, 1, 0, 2);
    zcp_groups_event(g.get(), &other);
    zcp_groups_event(g.get(), &wanted);
    const auto flows = forecast(g.get());
    ASSERT_EQ(1u, flows.size());
    EXPECT_EQ(2u, flows[0].src);
}

TEST(ApiTest, MessagesToOneselfAreNoTraffic)
{
    const engine g = make(params_of(4, ZCP_GROUPS_DEFAULT, 8));
    for (int i = 0; i < 100; i++) {
        const zcp_event_t e = event(1, 1);
        zcp_groups_event(g.get(), &e);
    }
    EXPECT_TRUE(forecast(g.get()).empty());
}

TEST(ApiTest, GivesAsManyFlowsAsThereIsRoomFor)
{
    const engine g = make(params_of(4, ZCP_GROUPS_PERSISTENCE, 3));
    for (const auto &e : {event(0, 1, 10), event(1, 2, 30), event(2, 3, 20)})
        zcp_groups_event(g.get(), &e);
    zcp_flow_t largest{};
    EXPECT_EQ(3, zcp_groups_forecast(g.get(), &largest, 1));
    EXPECT_EQ(30u, largest.bytes);
}

TEST(ApiTest, PeriodsCanBeTime)
{
    auto p = params_of(4, ZCP_GROUPS_PERSISTENCE);
    p.period_events = 0;
    p.period_ns = 1000;
    const engine g = make(p);
    const zcp_event_t early = event(0, 1, 10, 5000);
    const zcp_event_t later = event(2, 3, 10, 6100);
    const zcp_event_t back_in_time = event(2, 3, 10, 10);
    zcp_groups_event(g.get(), &early);
    zcp_groups_event(g.get(), &later);
    EXPECT_EQ(1u, stats_of(g.get()).periods);
    zcp_groups_event(g.get(), &back_in_time);
    EXPECT_EQ(1u, stats_of(g.get()).periods);
    const auto flows = forecast(g.get());
    ASSERT_EQ(1u, flows.size());
    EXPECT_EQ(0u, flows[0].src);
}

TEST(ApiTest, SurvivesALongSilence)
{
    auto p = params_of(4);
    p.period_ns = 1;
    const engine g = make(p);
    const zcp_event_t first = event(0, 1, 10, 0);
    const zcp_event_t last = event(0, 1, 10, UINT64_MAX);
    zcp_groups_event(g.get(), &first);
    zcp_groups_event(g.get(), &last);
    EXPECT_EQ(2u, stats_of(g.get()).events);
    EXPECT_GE(zcp_groups_forecast(g.get(), nullptr, 0), 0);
}

} // namespace
