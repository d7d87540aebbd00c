/* SPDX-License-Identifier: BSD-3-Clause */

/* A few seeds of each kind; nightly runs many (tests/agent/nightly). */
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulation.h"

namespace zc::agent::sim {
namespace {

options faulty(std::uint64_t seed, std::uint32_t nodes)
{
    options o;
    o.seed = seed;
    o.nodes = nodes;
    o.seconds = 720; /* failed attempts are repeated after up to 160 s */
    o.loss = 0.02;
    o.crash = 0.02;
    o.lose_state = 0.3;
    o.late = 0.01;
    o.partitions = 2;
    o.churn = 3;
    o.load_changes = 4;
    o.skew = 0.01;
    o.stuck = 0.1;
    o.fail = 0.1;
    /* Doubled by every move: else what the faults have put off comes after the end. */
    o.agents.residence = 10 * kSecond;
    return o;
}

void expect_held(const options &o, const result &r)
{
    for (const std::string &v : r.violations)
        ADD_FAILURE() << "seed " << o.seed << ", " << o.nodes << " nodes, " << o.agents.policy
                      << ": " << v;
}

class AgentSimulationTest : public testing::TestWithParam<const char *> {};

TEST_P(AgentSimulationTest, ImbalanceFallsAndAllIsQuiet)
{
    std::uint64_t moves = 0;
    double before = 0;
    double after = 0;
    for (std::uint64_t seed = 1; seed <= 4; seed++) {
        options o;
        o.seed = seed;
        o.nodes = 10 * static_cast<std::uint32_t>(seed);
        o.agents.policy = GetParam();
        result r = simulation(o).run();
        expect_held(o, r);
        EXPECT_LE(r.after.imbalance, r.before.imbalance) << "seed " << seed;
        before += r.before.mean;
        after += r.after.mean;
        moves += r.moves;
    }
    EXPECT_LT(after, 0.85 * before); /* over all; of one run it may grow */
    EXPECT_GT(moves, 0u);
}

/* Against agents that take all processors for equal, in the same worlds. */
TEST(AgentWorldTest, MeasuredSpeedsMakeJobsFaster)
{
    double paces[2] = {};
    for (bool measures : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 6; seed++) {
            options o;
            o.seed = seed;
            o.nodes = 12;
            o.seconds = 600;
            o.agents.grouping = "single";
            o.speeds = 3;
            o.measures = measures;
            result r = simulation(o).run();
            if (measures)
                expect_held(o, r);
            paces[measures] += r.after.mean;
        }
    }
    EXPECT_LT(paces[1], 0.95 * paces[0]);
}

/* Also what lenders tell of ranks that others have decided on. */
TEST(AgentWorldTest, TheTrafficOfAllRanksThatMoveIsLearnedByTheirNewHomes)
{
    options o;
    o.nodes = 24;
    result r = simulation(o).run();
    expect_held(o, r);
    EXPECT_GT(r.moves, 0u);
    EXPECT_GE(r.by_type["past"], r.moves);
    EXPECT_GT(r.handed_over.told, 0u);
    EXPECT_EQ(r.handed_over.learned, r.handed_over.told);
    EXPECT_EQ(r.handed_over.refused, 0u);
}

/* Agents that come and go included: what is told of them is late, lost or about ranks that have
 * moved. */
TEST(AgentWorldTest, TheMessagesOfAllRanksOfAJobAreCollected)
{
    for (const bool faulty : {false, true}) {
        options o;
        o.nodes = 12;
        o.agents.grouping = "matrix";
        o.agents.collect = collection::job;
        if (faulty) {
            o.loss = 0.05;
            o.crash = 0.001;
            o.churn = 3;
            o.skew = 4e-4;
        }
        result r = simulation(o).run();
        expect_held(o, r);
        EXPECT_GT(r.moves, 0u);
        EXPECT_GT(r.by_type["traffic"], 0u);
        EXPECT_GT(r.collected, 10 * r.collected_in_vain);
    }
}

/* A job whose node takes ranks of a slower one pays for it, so the mean is no invariant. */
TEST(AgentWorldTest, TheSlowestJobGainsAtTheCostOfAnother)
{
    options o;
    o.seed = 20261122018;
    o.nodes = 10;
    o.seconds = 600;
    o.agents.policy = "random";
    result r = simulation(o).run();
    expect_held(o, r);
    EXPECT_LT(r.after.worst, r.before.worst);
    EXPECT_LT(r.after.imbalance, r.before.imbalance);
    EXPECT_GT(r.after.mean, r.before.mean);
}

TEST_P(AgentSimulationTest, InvariantsHoldWhateverGoesWrong)
{
    std::uint64_t crashes = 0;
    std::uint64_t moves = 0;
    for (std::uint64_t seed = 1; seed <= 5; seed++) {
        options o = faulty(seed, 12);
        o.agents.policy = GetParam();
        result r = simulation(o).run();
        expect_held(o, r);
        crashes += r.crashes;
        moves += r.moves;
    }
    EXPECT_GT(crashes, 0u); /* else nothing was tested */
    EXPECT_GT(moves, 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, AgentSimulationTest,
                         testing::Values("random", "application", "network"));

TEST(AgentWorldTest, BalancedJobsAreLeftAlone)
{
    options o;
    o.nodes = 16;
    o.balanced = true;
    result r = simulation(o).run();
    expect_held(o, r);
    EXPECT_EQ(r.asks, 0u);
}

/* Partners take turns: 4 s with one, 11 s with another. A choice by the latest traffic
 * is wrong for most of the time to come, if it has to choose at the end of the short phase.
 */
TEST(AgentWorldTest, ForetoldPartnersStayTogetherWhereTheMatrixPartsThem)
{
    auto after = [](const char *grouping) {
        traffic_after at_the_end;
        for (std::uint64_t seed = 1; seed <= 3; seed++) {
            options o;
            o.seed = seed;
            o.nodes = 80;
            o.seconds = 600;
            o.phase_a = 4;
            o.phase_b = 11;
            o.agents.grouping = grouping;
            result r = simulation(o).run();
            expect_held(o, r);
            at_the_end.jobs += r.at_the_end.jobs;
            at_the_end.bytes += r.at_the_end.bytes;
            at_the_end.across += r.at_the_end.across;
        }
        EXPECT_GE(at_the_end.jobs, 5u) << grouping; /* else nothing was tested */
        return at_the_end.part();
    };
    double zc = after("zc");
    double matrix = after("matrix");
    double single = after("single");
    RecordProperty("across",
                   fmt::format("zc {:.3f}, matrix {:.3f}, single {:.3f}", zc, matrix, single));
    EXPECT_LT(zc, 0.75 * matrix);
    EXPECT_LT(zc, 0.75 * single);
}

/* A check that finds nothing is worth something only if it would find something. */
TEST(AgentWorldTest, WithoutHysteresisOscillationIsFound)
{
    options o;
    o.nodes = 8;
    o.agents.hysteresis = -1;
    o.agents.payback = -1e9;
    o.agents.settle = o.agents.residence = o.agents.memory = 0;
    std::size_t found = 0;
    for (const std::string &v : simulation(o).run().violations)
        found += v.find("oscillation") != std::string::npos;
    EXPECT_GT(found, 0u);
}

TEST(AgentWorldTest, ObservingMovesNothing)
{
    options o;
    o.nodes = 12;
    o.agents.act = mode::observe;
    result r = simulation(o).run();
    EXPECT_EQ(r.asks, 0u);
    EXPECT_GT(r.by_type["reserve"], 0u); /* but it went as far as it could */
}

TEST(AgentWorldTest, SwitchedOffIsOff)
{
    options o;
    o.nodes = 12;
    o.agents.act = mode::off;
    result r = simulation(o).run();
    EXPECT_EQ(r.asks + r.by_type["steal"] + r.by_type["reserve"] + r.by_type["nudge"], 0u);
}

TEST(AgentWorldTest, TheSameSeedIsTheSameRun)
{
    result a = simulation(faulty(9, 12)).run();
    result b = simulation(faulty(9, 12)).run();
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.message_bytes, b.message_bytes);
    EXPECT_EQ(a.after.imbalance, b.after.imbalance);
}

} // namespace
} // namespace zc::agent::sim
