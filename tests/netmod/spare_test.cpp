/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

extern "C" {
#include "zc_spare.h"
}

namespace {

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kCost = 20000;

class Spare : public testing::Test {
  protected:
    Spare() { answer(0); }

    /** After @ms the processors have been idle for @idle_ms more, all of them together. */
    void answer(uint64_t idle_ms, uint64_t ms = 50, uint64_t cost = kCost)
    {
        now += ms * kMs;
        idle += idle_ms * kMs;
        MPIDI_ZC_spare_answered(&spare, now, cost, idle, processors, ranks);
    }

    bool busy() const { return spare.state == MPIDI_ZC_SPARE_BUSY; }

    MPIDI_ZC_spare_t spare = {};
    uint64_t now = 1000 * kMs, idle = 5000 * kMs;
    int processors = 2, ranks = 1;
};

TEST_F(Spare, IsIdleUntilAnAnswerSaysOtherwise)
{
    EXPECT_FALSE(busy());
}

TEST_F(Spare, IsBusyWhereNothingIsLeft)
{
    answer(0);
    EXPECT_TRUE(busy());
}

TEST_F(Spare, IsIdleWhereOneOfTwoIs)
{
    answer(50);
    EXPECT_FALSE(busy());
}

TEST_F(Spare, BetweenTheTwoLimitsNothingChanges)
{
    answer(7); /* an eighth */
    EXPECT_FALSE(busy());
    answer(3);
    EXPECT_TRUE(busy());
    answer(7);
    EXPECT_TRUE(busy());
    answer(13);
    EXPECT_FALSE(busy());
}

TEST_F(Spare, CountsWhatIsLeftForEachRank)
{
    processors = 64;
    ranks = 62;
    answer(2 * 50);
    EXPECT_TRUE(busy());
    answer(15 * 50);
    EXPECT_TRUE(busy());
    answer(16 * 50);
    EXPECT_FALSE(busy());
}

/* What the threads of ranks take that look often, an eighth of a processor each, and
 * what they leave when they do not. */
TEST_F(Spare, DoesNotChangeItsMindForWhatItDoes)
{
    processors = 8;
    for (ranks = 1; ranks < processors; ranks++) {
        int changes = 0;
        for (int i = 0; i < 20; i++) {
            const bool before = busy();
            const double looks = before ? 0 : ranks / 8.0;
            answer(static_cast<uint64_t>(50 * std::max(0.0, processors - ranks - looks)));
            changes += busy() != before;
        }
        EXPECT_LE(changes, 1) << ranks << " ranks";
    }
}

TEST_F(Spare, AnotherHostsAccountSaysNothing)
{
    answer(0);
    ASSERT_TRUE(busy());
    idle += 3600 * 1000 * kMs;
    answer(0);
    EXPECT_TRUE(busy()) << "an hour in 50 ms";
    idle -= 7200 * 1000 * kMs;
    answer(0);
    EXPECT_TRUE(busy()) << "less than before";
    answer(50);
    EXPECT_FALSE(busy());
}

TEST_F(Spare, AsksLessOftenWhereAnAnswerTakesLong)
{
    EXPECT_EQ(spare.next_ns, now + MPIDI_ZC_SPARE_FIRST_NS);
    answer(50);
    EXPECT_EQ(spare.next_ns, now + MPIDI_ZC_SPARE_NS);
    answer(50, 50, kMs);
    EXPECT_EQ(spare.next_ns, now + 1000 * kMs);
}

class SpareLine : public testing::Test {
  protected:
    bool read(const char *line)
    {
        return MPIDI_ZC_spare_read(line, mask.data(), static_cast<int>(mask.size()), &ticks);
    }

    std::vector<uint64_t> mask = {1ull << 1 | 1ull << 63, 1ull << 2};
    uint64_t ticks = 0;
};

TEST_F(SpareLine, CountsProcessorsOfTheMaskOnly)
{
    EXPECT_TRUE(read("cpu  4997908 769023 2862734 2260700 102915 0 124059 5209 0 0\n"));
    EXPECT_TRUE(read("cpu0 2459215 386277 1402520 1000000 1 0 60786 2640 0 0\n"));
    EXPECT_EQ(ticks, 0u);
    EXPECT_TRUE(read("cpu1 1 2 3 40 5 6 7 8 9 10\n"));
    EXPECT_TRUE(read("cpu63 1 2 3 400 50 6 7 8 9 10\n"));
    EXPECT_TRUE(read("cpu64 1 2 3 7 7 6 7 8 9 10\n"));
    EXPECT_TRUE(read("cpu66 1 2 3 4000 500 6 7 8 9 10\n"));
    EXPECT_TRUE(read("cpu127 1 2 3 7 7 6 7 8 9 10\n"));
    EXPECT_TRUE(read("cpu128 1 2 3 7 7 6 7 8 9 10\n"));
    EXPECT_EQ(ticks, 4995u);
}

TEST_F(SpareLine, EndsBehindTheProcessors)
{
    for (const char *line :
         {"intr 51 0 1\n", "", "cpu\n", "cpu1\n", "cpu1 2 3\n", "cpux 1 2 3 4 5\n"})
        EXPECT_FALSE(read(line)) << line;
    EXPECT_EQ(ticks, 0u);
}

} // namespace
