/* SPDX-License-Identifier: BSD-3-Clause */

/* The default engine: what each sender does next. Streams and engine are
 * deterministic, so the floors are what was measured, rounded down. */
#include "destinations.h"

#include "support.h"

using namespace zcg_test;
using zc::groups::recipe;

namespace {

TEST(DestinationsTest, LearnsARoundRobin)
{
    zc::groups::destinations d(1, 64, std::pmr::new_delete_resource());
    uint32_t tick = 0;
    for (int i = 0; i < 12; i++, tick += 10)
        d.learn(0, 1 + i % 3, 100, tick);
    zc::groups::flow_table out(16, std::pmr::new_delete_resource());
    d.walk(0, tick, 20, out); /* room for two: the next are 1 and 2 */
    EXPECT_NE(nullptr, out.find(0, 1));
    EXPECT_NE(nullptr, out.find(0, 2));
    EXPECT_EQ(nullptr, out.find(0, 3));
}

TEST(DestinationsTest, ASenderLongOverdueIsSilent)
{
    zc::groups::destinations d(1, 64, std::pmr::new_delete_resource());
    for (uint32_t i = 0; i < 12; i++)
        d.learn(0, 1, 100, i * 10);
    zc::groups::flow_table out(16, std::pmr::new_delete_resource());
    d.walk(0, 125, 20, out);
    EXPECT_EQ(1u, out.flows().size());
    out.clear();
    d.walk(0, 1000, 20, out);
    EXPECT_TRUE(out.flows().empty());
}

TEST(DestinationsTest, SurvivesTheWrapOfItsClock)
{
    zc::groups::destinations d(1, 64, std::pmr::new_delete_resource());
    uint32_t tick = UINT32_MAX - 50;
    for (int i = 0; i < 12; i++, tick += 10)
        d.learn(0, 1, 100, tick);
    zc::groups::flow_table out(16, std::pmr::new_delete_resource());
    d.walk(0, tick, 35, out);
    EXPECT_EQ(4.0f, out.find(0, 1)->messages);
}

TEST(DefaultTest, ForetellsTheButterflyWherePersistenceCannot)
{
    const auto stream = zc::groups::butterfly({64, 40000, 0, 0, 1});
    EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, 64, 1000), 0.97);
    EXPECT_LT(foretold(stream, ZCP_GROUPS_PERSISTENCE, 64, 1000), 0.01);
    EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, 336, 3000), 0.97);
    EXPECT_LT(foretold(stream, ZCP_GROUPS_PERSISTENCE, 336, 3000), 0.76);
}

TEST(DefaultTest, ForetellsChangesOfPhase)
{
    const auto stream = zc::groups::phases({64, 60000, 0, 0, 1}, 8, 8);
    EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, 512, 15000), 0.95);
    EXPECT_LT(foretold(stream, ZCP_GROUPS_PERSISTENCE, 512, 15000), 0.90);
}

TEST(DefaultTest, DoesNotLoseToPersistenceByMoreThanTheNoise)
{
    const recipe noisy{64, 40000, 0.05, 32, 2};
    for (const auto &stream :
         {zc::groups::master_slave(noisy), zc::groups::fem(noisy),
          zc::groups::drifting(noisy, 4096), zc::groups::random_pairs(noisy)}) {
        for (const uint32_t period : {64u, 512u}) {
            EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, period, 2048),
                      foretold(stream, ZCP_GROUPS_PERSISTENCE, period, 2048) - 0.02)
                << stream.name << " " << period;
        }
    }
}

} // namespace
