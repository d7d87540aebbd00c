/* SPDX-License-Identifier: BSD-3-Clause */

/* zcm-run --verify: when is a run that does not end by itself to be ended? */
#include "run_watch.h"

#include <gtest/gtest.h>

#include "checksum_log.h"
#include "comparison.h"
#include "scratch_directory.h"

using namespace zc::migrate;

namespace {

constexpr double kPatience = 10;

class RunWatchTest : public testing::Test {
  protected:
    void put(int rank, const position &here) const { position_file(place_, rank).write(here); }

    const scratch_directory scratch_;
    const std::string &place_ = scratch_.path();
    const std::vector<position> before_{{70, true}, {70, true}};
};

TEST_F(RunWatchTest, ReadsWhatRanksWrite)
{
    EXPECT_TRUE(positions_in(place_ + "/missing").empty());
    put(0, {1234, false});
    put(1, {7, true});
    const std::vector<position> wanted{{1234, false}, {7, true}};
    EXPECT_EQ(positions_in(place_), wanted);
    put(0, {5, true}); /* a shorter number leaves nothing of a longer one */
    EXPECT_EQ(positions_in(place_)[0], (position{5, true}));
}

TEST_F(RunWatchTest, WaitsWhileARankGoesOn)
{
    run_watch watch(before_, place_, kPatience, 0);
    put(0, {3, false});
    put(1, {3, false});
    for (int i = 0; i < 8; i++) {
        EXPECT_EQ(watch.why_to_end(i * 9.0), "");
        put(1, {4 + i, false});
    }
}

TEST_F(RunWatchTest, EndsARunThatIsSilent)
{
    run_watch watch(before_, place_, kPatience, 100);
    EXPECT_EQ(watch.why_to_end(109), "") << "no rank has come to a safe point yet";
    put(0, {3, false});
    EXPECT_EQ(watch.why_to_end(110), "");
    EXPECT_EQ(watch.why_to_end(120), "");
    EXPECT_EQ(watch.why_to_end(120.5), "no rank has come to a safe point for 10 s");
}

TEST_F(RunWatchTest, EndsARunThatIsLongerThanBefore)
{
    run_watch watch(before_, place_, kPatience, 0);
    put(0, {70, true});
    put(1, {70, false});
    EXPECT_EQ(watch.why_to_end(1), "");
    put(1, {71, false});
    EXPECT_EQ(watch.why_to_end(2),
              "rank 1 has come to safe point 71, and ended after 70 without moves");
}

TEST_F(RunWatchTest, ARunOfAnotherLengthIsADifference)
{
    const std::string first = place_ + "/first", second = place_ + "/second";
    const registry none;
    for (const std::string &directory : {first, second}) {
        checksum_log log(directory, 0, 10, 0);
        log.record(10, none);
        if (directory == second)
            log.moved(12);
        log.reach({directory == first ? 15 : 17, true});
    }
    const comparison found = comparison::of(first, second);
    EXPECT_TRUE(found.differ_in_length);
    ASSERT_EQ(found.differences.size(), 1U);
    EXPECT_EQ(found.differences[0],
              "rank 0, which had moved at 12, has come to safe point 17, without moves to 15");
    EXPECT_EQ(found.positions[0], "rank 0, which had moved at 12, has come to safe point 17, and "
                                  "has called zcm_finalize()");
    EXPECT_TRUE(comparison::of(first, first).differences.empty());
}

} // namespace
