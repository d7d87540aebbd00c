/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cstring>

#include "engine.h"

using namespace zcp_test;

namespace {

zcp_explanation_t explain(const engine &engine, const zcp_envelope_t &envelope)
{
    zcp_explanation_t out{};
    out.size = sizeof(out);
    const int answered = zcp_explain(engine.get(), &envelope, &out);
    EXPECT_EQ(out.cause > ZCP_CAUSE_BEYOND, answered == 1);
    EXPECT_EQ(sizeof(out), out.size);
    EXPECT_NE('\0', out.text[0]);
    EXPECT_LT(std::string(out.text).size(), sizeof(out.text) - 1) << out.text;
    return out;
}

TEST(ExplainTest, NamesEveryCause)
{
    for (int cause = 0; cause < ZCP_CAUSE_COUNT; cause++)
        EXPECT_NE(nullptr, zcp_cause_name(static_cast<zcp_cause_t>(cause)));
    EXPECT_EQ(nullptr, zcp_cause_name(ZCP_CAUSE_COUNT));
    EXPECT_STREQ("constant", zcp_cause_name(ZCP_CAUSE_CONSTANT));
}

TEST(ExplainTest, RefusesNullShortSizeAndWildcards)
{
    engine engine;
    const zcp_envelope_t one = envelope(1);
    const zcp_envelope_t any = envelope(-1);
    zcp_explanation_t out{};
    out.size = sizeof(out);
    EXPECT_EQ(-EINVAL, zcp_explain(nullptr, &one, &out));
    EXPECT_EQ(-EINVAL, zcp_explain(engine.get(), nullptr, &out));
    EXPECT_EQ(-EINVAL, zcp_explain(engine.get(), &one, nullptr));
    EXPECT_EQ(-EINVAL, zcp_explain(engine.get(), &any, &out));
    out.size--;
    EXPECT_EQ(-EINVAL, zcp_explain(engine.get(), &one, &out));
}

TEST(ExplainTest, KnowsNothingOfAnUnseenSender)
{
    engine engine;
    EXPECT_EQ(ZCP_CAUSE_NONE, explain(engine, envelope(1)).cause);
}

TEST(ExplainTest, ExplainsAConstantBuffer)
{
    engine engine;
    engine.receive({to(envelope(1), 0x5000)}, 5);
    const zcp_explanation_t why = explain(engine, envelope(1));
    EXPECT_EQ(ZCP_CAUSE_CONSTANT, why.cause);
    EXPECT_EQ(0x5000u, why.guess);
    EXPECT_NE(nullptr, std::strstr(why.text, "0x5000"));
}

TEST(ExplainTest, ExplainsAPeriod)
{
    engine engine;
    engine.receive({to(envelope(1), 0xa000), to(envelope(1), 0xb000), to(envelope(1), 0xc700)}, 5);
    const zcp_explanation_t why = explain(engine, envelope(1));
    EXPECT_EQ(ZCP_CAUSE_PERIOD, why.cause);
    EXPECT_EQ(3u, why.period);
    EXPECT_EQ(0xa000u, why.guess);
}

TEST(ExplainTest, ExplainsAStride)
{
    engine engine;
    for (uint64_t i = 0; i < 10; i++)
        engine.receive(envelope(1), 0x10000 + i * 0x1230);
    const zcp_explanation_t why = explain(engine, envelope(1));
    EXPECT_EQ(ZCP_CAUSE_STRIDE, why.cause);
    EXPECT_EQ(0x10000u + 10 * 0x1230, why.guess);
}

TEST(ExplainTest, ExplainsOtherSizes)
{
    engine engine;
    for (uint64_t i = 0; i < 5; i++)
        engine.receive(envelope(1, 1, 70000 + i), 0x5000);
    EXPECT_EQ(ZCP_CAUSE_ANY_SIZE, explain(engine, envelope(1, 1, 80000)).cause);
}

TEST(ExplainTest, ExplainsAClass)
{
    engine engine;
    std::mt19937 random(4);
    for (int i = 0; i < 50; i++)
        engine.settle(engine.arrive(envelope(1)), uint64_t{random()} * 4096 + 0x10);
    const zcp_explanation_t why = explain(engine, envelope(1));
    EXPECT_EQ(ZCP_CAUSE_CLASS, why.cause);
    EXPECT_EQ(0x10u, why.guess);
    EXPECT_EQ(4096u, why.modulus);
}

TEST(ExplainTest, ExplainsSilence)
{
    engine engine;
    std::mt19937 random(4);
    for (int i = 0; i < 50; i++)
        engine.settle(engine.arrive(envelope(1)), uint64_t{random()} * 16);
    EXPECT_EQ(ZCP_CAUSE_UNSURE, explain(engine, envelope(1)).cause);

    engine.receive({to(envelope(2), 0x5000)}, 5);
    for (int i = 0; i < 16; i++)
        engine.arrive(envelope(2));
    const zcp_explanation_t why = explain(engine, envelope(2));
    EXPECT_EQ(ZCP_CAUSE_BEYOND, why.cause);
    EXPECT_EQ(16u, why.unsettled);
}

TEST(ExplainTest, ExplainsTheReferences)
{
    engine graph(ZCP_GRAPH);
    graph.receive({to(envelope(1), 0x5000)}, 10);
    EXPECT_EQ(ZCP_CAUSE_STREAM, explain(graph, envelope(1)).cause);
    engine offset(ZCP_OFFSET);
    EXPECT_EQ(ZCP_CAUSE_FIXED, explain(offset, envelope(1)).cause);
}

/* What it says is what an arrival gets, and asking changes nothing. */
TEST(ExplainTest, AgreesWithTheArrival)
{
    for (const zcp_kind_t kind : {ZCP_DEFAULT, ZCP_GRAPH, ZCP_DPD, ZCP_LAST, ZCP_OFFSET}) {
        engine engine(kind);
        std::vector<zcp_landing_t> open;
        for (const zcp_receive_t &r : repeated(nested_period(), 2000)) {
            const zcp_explanation_t why = explain(engine, r.envelope);
            const zcp_landing_t landing = engine.arrive(r.envelope);
            EXPECT_EQ(why.cause > ZCP_CAUSE_BEYOND, landing.ahead != 0);
            if (landing.ahead != 0) {
                EXPECT_EQ(why.guess, landing.addr);
                EXPECT_EQ(why.confidence, landing.confidence);
                EXPECT_EQ(why.modulus, landing.modulus);
            }
            open.push_back(landing);
            if (open.size() > 3) {
                engine.settle(open[open.size() - 4], r.addr);
            }
        }
    }
}

} // namespace
