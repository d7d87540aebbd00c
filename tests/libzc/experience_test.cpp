/* SPDX-License-Identifier: BSD-3-Clause */
#include "experience.h"

#include "cost.h"

#include <gtest/gtest.h>

using namespace zc;

TEST(ExperienceTest, BelievesThePredictionAtFirst)
{
    experience e;
    for (zc_means_t means : {ZC_MEANS_COPY, ZC_MEANS_MREMAP, ZC_MEANS_KMOD})
        EXPECT_EQ(e.factor(means), 1);
}

TEST(ExperienceTest, LearnsAtOnceWhatIsNear)
{
    experience e;
    e.learn(ZC_MEANS_MREMAP, 1000, 1500);
    EXPECT_DOUBLE_EQ(e.factor(ZC_MEANS_MREMAP), 1.5);
    EXPECT_DOUBLE_EQ(e.factor(ZC_MEANS_COPY), 1);
    e.learn(ZC_MEANS_MREMAP, 1000, 1700);
    EXPECT_DOUBLE_EQ(e.factor(ZC_MEANS_MREMAP), 1.6) << "the mean of both";
}

TEST(ExperienceTest, ConvergesFromEitherSide)
{
    for (double truth : {0.3, 0.7, 1.0, 2.0, 3.5}) {
        experience e;
        for (int i = 0; i < 30; i++)
            e.learn(ZC_MEANS_KMOD, 1000, 1000 * truth);
        EXPECT_NEAR(e.factor(ZC_MEANS_KMOD), truth, 0.05 * truth);
    }
}

TEST(ExperienceTest, FollowsAChange)
{
    experience e;
    for (int i = 0; i < 100; i++)
        e.learn(ZC_MEANS_COPY, 1000, 1000);
    for (int i = 0; i < 40; i++)
        e.learn(ZC_MEANS_COPY, 1000, 3000);
    EXPECT_NEAR(e.factor(ZC_MEANS_COPY), 3, 0.2);
}

TEST(ExperienceTest, StaysWithinItsBounds)
{
    experience high, low;
    for (int i = 0; i < 100; i++) {
        high.learn(ZC_MEANS_COPY, 1000, 1e9);
        low.learn(ZC_MEANS_COPY, 1000, 1e-3);
    }
    EXPECT_DOUBLE_EQ(high.factor(ZC_MEANS_COPY), 4);
    EXPECT_DOUBLE_EQ(low.factor(ZC_MEANS_COPY), 0.25);
}

TEST(ExperienceTest, OneInterruptionChangesLittle)
{
    experience e;
    for (int i = 0; i < 20; i++)
        e.learn(ZC_MEANS_COPY, 1000, 1000);
    e.learn(ZC_MEANS_COPY, 1000, 10'000'000);
    EXPECT_LE(e.factor(ZC_MEANS_COPY), 1.125);
    e.learn(ZC_MEANS_COPY, 1000, 1);
    EXPECT_GE(e.factor(ZC_MEANS_COPY), 1.0);
}

TEST(ExperienceTest, IgnoresWhatCannotBe)
{
    experience e;
    e.learn(ZC_MEANS_COPY, 0, 100);
    e.learn(ZC_MEANS_COPY, 100, 0);
    e.learn(ZC_MEANS_COPY, -1, 100);
    EXPECT_EQ(e.factor(ZC_MEANS_COPY), 1);
}

TEST(ExperienceTest, AnUnknownPredictionStaysOutOfIt)
{
    experience e;
    e.learn(ZC_MEANS_KMOD, std::numeric_limits<double>::infinity(), 100);
    e.learn(ZC_MEANS_KMOD, std::numeric_limits<double>::quiet_NaN(), 100);
    EXPECT_EQ(e.factor(ZC_MEANS_KMOD), 1);
}

TEST(ExperienceTest, MultipliesTheCostsOfEachMeans)
{
    experience e;
    e.learn(ZC_MEANS_COPY, 1000, 1250);
    e.learn(ZC_MEANS_MREMAP, 1000, 1500);
    e.learn(ZC_MEANS_KMOD, 1000, 750);
    zc_costs_t before = with_kmod_guessed(kCostsUnmeasured), after = e.applied(before);
    EXPECT_DOUBLE_EQ(after.copy_ns_fixed, 1.25 * before.copy_ns_fixed);
    EXPECT_DOUBLE_EQ(after.copy_ns_per_byte, 1.25 * before.copy_ns_per_byte);
    EXPECT_DOUBLE_EQ(after.copy_ns_per_byte_long, 1.25 * before.copy_ns_per_byte_long);
    EXPECT_DOUBLE_EQ(after.mremap_ns_fixed, 1.5 * before.mremap_ns_fixed);
    EXPECT_DOUBLE_EQ(after.mremap_ns_per_page, 1.5 * before.mremap_ns_per_page);
    EXPECT_DOUBLE_EQ(after.mremap_ns_per_2m, 1.5 * before.mremap_ns_per_2m);
    EXPECT_DOUBLE_EQ(after.kmod_ns_fixed, 0.75 * before.kmod_ns_fixed);
    EXPECT_DOUBLE_EQ(after.kmod_ns_per_page, 0.75 * before.kmod_ns_per_page);
    EXPECT_DOUBLE_EQ(after.kmod_ns_per_2m, 0.75 * before.kmod_ns_per_2m);
    EXPECT_EQ(after.size, before.size);
    e.forget();
    EXPECT_EQ(e.applied(before).copy_ns_fixed, before.copy_ns_fixed);
}

TEST(ExperienceTest, TriesTheOtherSeldomButForEver)
{
    std::vector<std::uint64_t> tried;
    for (std::uint64_t nth = 1; nth <= 200; nth++)
        if (tries_the_other(nth))
            tried.push_back(nth);
    EXPECT_EQ(tried, (std::vector<std::uint64_t>{8, 16, 32, 64, 128, 192}));
    EXPECT_TRUE(tries_the_other(64'000'000));
}
