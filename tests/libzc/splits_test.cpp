/* SPDX-License-Identifier: BSD-3-Clause */
#include "splits.h"

#include "support.h"

using namespace zc;
using namespace zc::test;

TEST(SplitsTest, CountsABoundaryOnce)
{
    splits s(100, 65530);
    addr_t twice[] = {kPage, 2 * kPage};
    EXPECT_TRUE(s.admit(twice));
    EXPECT_TRUE(s.admit(twice));
    EXPECT_EQ(s.count(), 2u);
}

/* The boundaries are not real, so a count of mappings drops them. */
TEST(SplitsTest, ForgetsHealedBoundariesWhenFull)
{
    splits s(100, 65530);
    for (addr_t i = 1; i <= 1000; i++) {
        addr_t b[] = {i * kPage};
        ASSERT_TRUE(s.admit(b)) << i;
        ASSERT_LE(s.count(), 100u);
    }
}

TEST(SplitsTest, RefusesWhileTheBoundariesAreReal)
{
    buffer area(64 * kPage);
    for (std::size_t i = 0; i < 64; i += 2)
        ASSERT_EQ(mprotect(area.data() + i * kPage, kPage, PROT_READ), 0);
    splits s(40, 65530);
    std::vector<addr_t> real;
    for (std::size_t i = 0; i < 40; i++)
        real.push_back(area.at() + i * kPage);
    ASSERT_TRUE(s.admit(real));
    addr_t more[] = {area.at() + 50 * kPage};
    EXPECT_FALSE(s.admit(more));
    EXPECT_EQ(s.count(), 40u);
}

TEST(SplitsTest, RefusesWhenTheProcessIsNearItsLimit)
{
    std::size_t now = count_mappings();
    splits s(4, now); /* as if the limit were reached already */
    addr_t four[] = {kPage, 2 * kPage, 3 * kPage, 4 * kPage}, more[] = {5 * kPage};
    ASSERT_TRUE(s.admit(four));
    EXPECT_FALSE(s.admit(more));
    EXPECT_TRUE(s.at_limit());
}

TEST(SplitsTest, AFailureNotDueToTheLimitIsToldApart)
{
    splits s(100, 65530);
    EXPECT_FALSE(s.at_limit());
}
