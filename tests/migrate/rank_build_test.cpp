/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_build.h"

#include <gtest/gtest.h>

#include "error.h"

namespace zc::migrate {

namespace {

const rank_build kOne{"h1", "/a/program", "1234", "5678"};

rank_build with(std::string rank_build::*what, const std::string &value)
{
    rank_build changed = kOne;
    changed.*what = value;
    return changed;
}

TEST(RankBuild, ComesAsItWasTold)
{
    for (const std::string &path : {"", "/a/pro gram\n", "/a/\xff\xfe"}) {
        const rank_build told = with(&rank_build::path, path);
        const rank_build found = rank_build::from_text(told.to_text());
        EXPECT_EQ(found.host, told.host);
        EXPECT_EQ(found.path, told.path);
        EXPECT_EQ(found.program, told.program);
        EXPECT_EQ(found.library, told.library);
    }
}

TEST(RankBuild, IsRefusedIfItIsNotWhole)
{
    const std::string whole = kOne.to_text();
    for (const std::string &text : {std::string(), std::string("h1"), std::string("h1\0/a\0b", 7),
                                    whole + '\0', whole + std::string("\0more", 5)})
        EXPECT_THROW(rank_build::from_text(text), error) << text;
}

TEST(RankBuild, OfOneJobIsTheSame)
{
    EXPECT_EQ(why_not_one_job({}), "");
    EXPECT_EQ(why_not_one_job({kOne}), "");
    EXPECT_EQ(why_not_one_job({kOne, with(&rank_build::host, "h2"), kOne}), "");
}

TEST(RankBuild, ThatWasReplacedMayBeAnyOther)
{
    const rank_build lost = with(&rank_build::library, "replaced-7");
    EXPECT_EQ(why_not_one_job({lost}), "");
    EXPECT_NE(why_not_one_job({lost, lost}), "");
}

TEST(RankBuild, OfAnotherProgramMayDiffer)
{
    rank_build another = with(&rank_build::path, "/a/server");
    another.program = "9999";
    EXPECT_EQ(why_not_one_job({kOne, another, kOne, another}), "");
}

TEST(RankBuild, ThatDiffersIsNamed)
{
    rank_build other = with(&rank_build::program, "4321");
    other.host = "h2";
    EXPECT_EQ(why_not_one_job({with(&rank_build::path, "/a/server"), kOne, kOne, other}),
              "rank 3 on host h2 has another build of /a/program than rank 1 on host h1: 4321, not "
              "1234");
    EXPECT_EQ(why_not_one_job({kOne, with(&rank_build::library, "8765")}),
              "rank 1 on host h1 has another build of libzcm than rank 0 on host h1: 8765, not "
              "5678");
}

TEST(RankBuild, OfTenThousandRanksIsLookedForOnce)
{
    std::vector<rank_build> ranks(10000, kOne);
    EXPECT_EQ(why_not_one_job(ranks), "");
    ranks.back().program = "4321";
    EXPECT_NE(why_not_one_job(ranks), "");
}

} // namespace

} // namespace zc::migrate
