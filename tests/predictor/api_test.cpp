/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>

#include "engine.h"

using namespace zcp_test;

extern "C" int header_c11_round_trip(void);
extern "C" int header_c11_create_kind(int kind);

namespace {

int create(const zcp_params_t &params)
{
    zcp_t *out = nullptr;
    const int status = zcp_create(&params, &out);
    zcp_destroy(out);
    return status;
}

TEST(ApiTest, WorksFromC11)
{
    EXPECT_TRUE(header_c11_round_trip());
}

TEST(ApiTest, NamesEveryKindAndParsesItBack)
{
    for (int kind = 0; kind < ZCP_KIND_COUNT; kind++) {
        const char *name = zcp_kind_name(static_cast<zcp_kind_t>(kind));
        ASSERT_NE(nullptr, name);
        EXPECT_EQ(kind, zcp_kind_parse(name));
    }
    EXPECT_STREQ("default", zcp_kind_name(ZCP_DEFAULT));
    EXPECT_STREQ("last-size", zcp_kind_name(ZCP_LAST_SIZE));
}

TEST(ApiTest, RefusesUnknownNamesAndKinds)
{
    EXPECT_EQ(nullptr, zcp_kind_name(ZCP_KIND_COUNT));
    EXPECT_EQ(-1, zcp_kind_parse("oracle"));
    EXPECT_EQ(-1, zcp_kind_parse(""));
    EXPECT_EQ(-1, zcp_kind_parse(nullptr));
}

TEST(ApiTest, CreatesEveryKindWithDefaults)
{
    for (int kind = 0; kind < ZCP_KIND_COUNT; kind++)
        EXPECT_EQ(0, create(params_of(static_cast<zcp_kind_t>(kind))));
    zcp_t *out = nullptr;
    ASSERT_EQ(0, zcp_create(nullptr, &out));
    zcp_destroy(out);
}

TEST(ApiTest, DestroysNull)
{
    zcp_destroy(nullptr);
}

TEST(ApiTest, RefusesNullOut)
{
    const zcp_params_t params = params_of(ZCP_DEFAULT);
    EXPECT_EQ(-EINVAL, zcp_create(&params, nullptr));
}

TEST(ApiTest, RefusesZeroSize)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.size = 0;
    EXPECT_EQ(-EINVAL, create(params));
}

TEST(ApiTest, AcceptsParamsOfAnOlderCaller)
{
    zcp_params_t params = params_of(ZCP_GRAPH);
    params.size = offsetof(zcp_params_t, max_bytes);
    params.max_bytes = 1; /* beyond the caller's size: not looked at */
    EXPECT_EQ(0, create(params));
}

TEST(ApiTest, AcceptsParamsOfALaterCallerOnlyWithItsFieldsZero)
{
    struct {
        zcp_params_t params;
        uint64_t later;
    } grown{params_of(ZCP_DEFAULT), 0};
    grown.params.size = sizeof(grown);
    zcp_t *out = nullptr;
    ASSERT_EQ(0, zcp_create(&grown.params, &out));
    zcp_destroy(out);
    grown.later = 1;
    EXPECT_EQ(-EINVAL, zcp_create(&grown.params, &out));
}

TEST(ApiTest, RefusesUnknownKind)
{
    EXPECT_EQ(0, header_c11_create_kind(ZCP_OFFSET));
    for (const int kind : {int{ZCP_KIND_COUNT}, 1000, -1, INT32_MIN})
        EXPECT_EQ(-EINVAL, header_c11_create_kind(kind)) << kind;
}

TEST(ApiTest, RefusesTooLongHorizon)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.horizon = 512;
    EXPECT_EQ(0, create(params));
    params.horizon = 513;
    EXPECT_EQ(-EINVAL, create(params));
}

TEST(ApiTest, RefusesTooLittleMemory)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.max_bytes = 64 << 10;
    EXPECT_EQ(0, create(params));
    params.max_bytes--;
    EXPECT_EQ(-EINVAL, create(params));
}

TEST(ApiTest, RefusesWindowThatDoesNotFitMemory)
{
    zcp_params_t params = params_of(ZCP_DPD);
    params.dpd_window = 1 << 20;
    EXPECT_EQ(-EINVAL, create(params));
    params.max_bytes = size_t{128} << 20;
    EXPECT_EQ(0, create(params));
}

TEST(ApiTest, RefusesConfidenceOutsideZeroToOne)
{
    for (const float bad : {-0.1f, 1.1f, NAN, INFINITY}) {
        zcp_params_t params = params_of(ZCP_DEFAULT);
        params.min_confidence = bad;
        EXPECT_EQ(-EINVAL, create(params)) << bad;
    }
}

TEST(ApiTest, ArrivalRefusesNull)
{
    engine engine;
    const zcp_envelope_t e = envelope(1);
    zcp_landing_t out;
    EXPECT_EQ(-EINVAL, zcp_arrival(nullptr, &e, &out));
    EXPECT_EQ(-EINVAL, zcp_arrival(engine.get(), nullptr, &out));
    EXPECT_EQ(-EINVAL, zcp_arrival(engine.get(), &e, nullptr));
    EXPECT_EQ(0u, engine.stats().arrivals);
}

TEST(ApiTest, ArrivalRefusesWildcardSource)
{
    engine engine;
    const zcp_envelope_t e = envelope(-2);
    zcp_landing_t out;
    EXPECT_EQ(-EINVAL, zcp_arrival(engine.get(), &e, &out));
}

TEST(ApiTest, ReceiveIgnoresWildcardSourceAndNull)
{
    engine engine;
    engine.receive(envelope(-1), 0x1000);
    zcp_receive(engine.get(), nullptr);
    zcp_receive(nullptr, nullptr);
    EXPECT_EQ(0u, engine.stats().receives);
}

TEST(ApiTest, NegativeTagIsAnEnvelopeLikeAnyOther)
{
    engine engine;
    engine.receive(envelope(1, -1), 0x1000);
    engine.receive(envelope(1, 0), 0x2000);
    EXPECT_EQ(0x1000u, engine.arrive(envelope(1, -1)).addr);
}

TEST(ApiTest, NextToleratesNullAndZero)
{
    engine engine;
    zcp_receive_t out;
    EXPECT_EQ(0u, zcp_next(nullptr, &out, 1));
    EXPECT_EQ(0u, zcp_next(engine.get(), nullptr, 1));
    EXPECT_EQ(0u, zcp_next(engine.get(), &out, 0));
}

TEST(ApiTest, StatsRefusesNullAndShortSize)
{
    engine engine;
    zcp_stats_t stats{};
    EXPECT_EQ(-EINVAL, zcp_stats(engine.get(), &stats)); /* size 0 */
    stats.size = sizeof(stats);
    EXPECT_EQ(-EINVAL, zcp_stats(nullptr, &stats));
    EXPECT_EQ(-EINVAL, zcp_stats(engine.get(), nullptr));
    EXPECT_EQ(0, zcp_stats(engine.get(), &stats));
    EXPECT_EQ(sizeof(stats), stats.size);
}

class EveryKindTest : public testing::TestWithParam<zcp_kind_t> {};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKindTest,
                         testing::Values(ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD, ZCP_LAST, ZCP_LAST_SIZE,
                                         ZCP_LAST_SENDER, ZCP_OFFSET),
                         kind_label);

TEST_P(EveryKindTest, KnowsNothingAtFirst)
{
    engine engine(GetParam());
    EXPECT_TRUE(engine.next(16).empty());
    if (GetParam() != ZCP_OFFSET) {
        EXPECT_EQ(0u, engine.arrive(envelope(1)).ahead);
    }
}

TEST_P(EveryKindTest, NextNeverExceedsHorizon)
{
    engine engine(GetParam());
    engine.receive(envelope(1), 0x1000);
    engine.receive({to(envelope(1), 0x1000), to(envelope(2), 0x2000)}, 600);
    EXPECT_EQ(GetParam() == ZCP_OFFSET ? 0u : 16u, engine.next(100).size());
}

/* Random calls in random order: the counters add up and the answers keep their
 * promises (engine::arrive checks those). */
TEST_P(EveryKindTest, CountersAddUpUnderRandomUse)
{
    engine engine(GetParam());
    std::mt19937 random(3);
    std::vector<zcp_landing_t> open;
    uint64_t received = 0;
    uint64_t settled = 0;
    uint64_t cancelled = 0;
    for (const zcp_receive_t &r : noise(20000, 5)) {
        if (random() % 2 == 0) {
            open.push_back(engine.arrive(r.envelope));
        } else {
            engine.receive(r);
            received++;
        }
        if (open.size() > 30) {
            std::swap(open[random() % open.size()], open.back());
            const bool drop = random() % 8 == 0;
            drop ? engine.cancel(open.back()) : engine.settle(open.back(), r.addr);
            drop ? cancelled++ : settled++;
            open.pop_back();
        }
    }
    const zcp_stats_t stats = engine.stats();
    EXPECT_EQ(settled, stats.settled);
    EXPECT_EQ(cancelled, stats.cancelled);
    EXPECT_EQ(received + settled, stats.receives);
    EXPECT_EQ(settled + cancelled + open.size(), stats.arrivals);
    EXPECT_EQ(stats.settled, stats.hits + stats.misses + stats.unknown);
    EXPECT_LE(stats.congruent, stats.misses);
}

TEST_P(EveryKindTest, IsDeterministic)
{
    engine one(GetParam());
    engine two(GetParam());
    for (const zcp_receive_t &r : noise(5000)) {
        const zcp_landing_t a = one.arrive(r.envelope);
        const zcp_landing_t b = two.arrive(r.envelope);
        ASSERT_EQ(a.addr, b.addr);
        ASSERT_EQ(a.confidence, b.confidence);
        ASSERT_EQ(a.ahead, b.ahead);
        ASSERT_EQ(a.claim, b.claim);
        one.settle(a, r.addr);
        two.settle(b, r.addr);
    }
}

TEST_P(EveryKindTest, TakesExtremeValues)
{
    const zcp_envelope_t low = {0, 0, INT32_MIN, 0};
    const zcp_envelope_t high = {UINT32_MAX, INT32_MAX, INT32_MAX, UINT64_MAX};
    engine engine(GetParam());
    engine.receive({to(low, 0), to(high, UINT64_MAX)}, 600);
    const zcp_landing_t to_zero = engine.arrive(low);
    const zcp_landing_t to_end = engine.arrive(high);
    if (GetParam() != ZCP_OFFSET) {
        EXPECT_NE(0u, to_zero.ahead); /* address 0 is an answer */
        EXPECT_EQ(0u, to_zero.addr);
        EXPECT_EQ(UINT64_MAX, to_end.addr);
    }
    engine.settle(to_end, UINT64_MAX);
    engine.settle(to_zero, 0);
}

TEST_P(EveryKindTest, ZeroLengthMessagesAreLearned)
{
    engine engine(GetParam());
    engine.receive({to(envelope(1, 1, 0), 0x1000)}, 600);
    const zcp_landing_t landing = engine.arrive(envelope(1, 1, 0));
    EXPECT_EQ(GetParam() == ZCP_OFFSET ? 0x10u : 0x1000u, landing.addr);
}

} // namespace
