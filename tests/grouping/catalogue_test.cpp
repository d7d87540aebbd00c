/* SPDX-License-Identifier: BSD-3-Clause */
#include "catalogue.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "archive.h"

using namespace zc::groups;

namespace {

/* Samples are written as letters. With L = W = 2 patterns are what is repeated, without gaps. */
std::vector<uint32_t> symbols(std::string_view letters)
{
    return {letters.begin(), letters.end()};
}

std::string letters(std::span<const uint32_t> symbols)
{
    std::string out;
    for (const uint32_t s : symbols)
        out += s == ZCP_DONT_CARE ? '.' : static_cast<char>(s);
    return out;
}

catalogue look(std::string_view sample, zcp_groups_kmp_t kmp = ZCP_GROUPS_KMP_OFF,
               size_t words = 100000, uint32_t window = 2)
{
    auto *heap = std::pmr::new_delete_resource();
    zcp_patterns_params_t params{};
    params.size = sizeof(params);
    params.literals = 2;
    params.window = window;
    params.support = 2;
    params.max_length = 1000;
    const auto text = symbols(sample);
    std::pmr::vector<teiresias::pattern> found(heap);
    EXPECT_EQ(ZCP_PATTERNS_COMPLETE, teiresias(text, params, heap).find(found));
    std::pmr::vector<teiresias::pattern> used(heap);
    if (kmp == ZCP_GROUPS_KMP_ZC)
        replace_by_fundamental(text, found, used, heap);
    else if (kmp == ZCP_GROUPS_KMP_STRICT)
        replace_by_fundamental_found(found, used, heap);
    return {text, kmp == ZCP_GROUPS_KMP_OFF ? found : used, words, heap};
}

/** "pattern@offset,offset ..." */
std::string shown(const catalogue &c)
{
    std::string out;
    for (size_t i = 0; i < c.size(); i++) {
        out += (i ? " " : "") + letters(c[i].symbols) + "@";
        for (size_t k = 0; k < c[i].offsets.size(); k++)
            out += (k ? "," : "") + std::to_string(c[i].offsets[k]);
    }
    return out;
}

std::string shown(const catalogue &c, const std::optional<catalogue::occurrence> &o)
{
    return o ? letters(c[o->pattern].symbols) + "@" + std::to_string(o->offset) : "none";
}

TEST(CatalogueTest, IsInOrderOfLength)
{
    EXPECT_EQ("abcd@0,5 ef@10,13", shown(look("abcdxabcdyefzef")));
    EXPECT_EQ("ab@0,3 ef@6,9", shown(look("abxabyefzef")));
    EXPECT_EQ("", shown(look("abcdef")));
}

TEST(CatalogueTest, TheLongestThatWasThereTwiceBeforeTheRequest)
{
    const catalogue c = look("abcdxabcdyefzef");
    EXPECT_EQ("none", shown(c, c.longest_before(3)));
    EXPECT_EQ("none", shown(c, c.longest_before(8))); /* its second time is not over */
    EXPECT_EQ("abcd@5", shown(c, c.longest_before(9)));
    EXPECT_EQ("abcd@5", shown(c, c.longest_before(15))); /* "ef" is closer, but shorter */
}

TEST(CatalogueTest, OfEquallyLongOnesTheClosestToTheRequest)
{
    const catalogue c = look("abxabyefzefwab");
    EXPECT_EQ("ab@0,3,12 ef@6,9", shown(c));
    EXPECT_EQ("ab@3", shown(c, c.longest_before(10)));
    EXPECT_EQ("ef@9", shown(c, c.longest_before(11)));
    EXPECT_EQ("ef@9", shown(c, c.longest_before(13)));
    EXPECT_EQ("ab@12", shown(c, c.longest_before(14)));
}

TEST(CatalogueTest, TheLastPatternIsTheOneThatEndsLast)
{
    const catalogue c = look("abcdxabcdyefzef");
    EXPECT_EQ("ef@13", shown(c, c.last()));
    const catalogue none = look("abcd");
    EXPECT_EQ("none", shown(none, none.last()));
}

TEST(CatalogueTest, WhatComesNextByTheListsOfOffsets)
{
    const catalogue c = look("abcdxabcdyefzef");
    EXPECT_EQ("abcd@0", shown(c, c.next(0)));
    EXPECT_EQ("abcd@5", shown(c, c.next(1)));
    EXPECT_EQ("ef@10", shown(c, c.next(9)));
    EXPECT_EQ("none", shown(c, c.next(14)));
}

/* Section 4.5: "given a pattern A, TEIRESIAS was generating patterns such as AA, AAA, AAAA". */
TEST(CatalogueTest, KmpPutsTheFundamentalPatternInPlaceOfItsRepetitions)
{
    EXPECT_EQ("abcabcabc@0,3 abcabc@0,3,6 abc@0,3,6,9", shown(look("abcabcabcabc")));
    EXPECT_EQ("abc@0,3,6,9", shown(look("abcabcabcabc", ZCP_GROUPS_KMP_ZC)));
}

TEST(CatalogueTest, TheLastRepetitionMayBeCutShort)
{
    EXPECT_EQ("abcabcab@0,3 abcab@0,3,6 ab@0,3,6,9", shown(look("abcabcabcab")));
    EXPECT_EQ("abc@0,3,6", shown(look("abcabcabcab", ZCP_GROUPS_KMP_ZC)));
}

TEST(CatalogueTest, OneRepetitionAndABitIsNone)
{
    EXPECT_EQ("abca@0,5", shown(look("abcaxabca", ZCP_GROUPS_KMP_ZC)));
    EXPECT_EQ("abca@0,5 abc@0,5,10", shown(look("abcaxabcayabc", ZCP_GROUPS_KMP_ZC)));
    /* But two whole ones that follow each other in the sample are some. */
    EXPECT_EQ("abca@0,3", shown(look("abcabca")));
    EXPECT_EQ("abc@0,3", shown(look("abcabca", ZCP_GROUPS_KMP_ZC)));
}

TEST(CatalogueTest, WhatIsNoRepetitionStaysBesideTheFundamentalPattern)
{
    EXPECT_EQ("efgh@10,15 abc@0,3,6", shown(look("abcabcabcxefghyefgh", ZCP_GROUPS_KMP_ZC)));
    /* "ab" also occurs where "abc" would not: it is more than a round cut short. */
    EXPECT_EQ("abc@0,3,6 ab@0,3,6,10", shown(look("abcabcabcxab", ZCP_GROUPS_KMP_ZC)));
}

/* Section 4.5 of the paper: patterns "which consist solely of repetitions of a shorter pattern". */
TEST(CatalogueTest, StrictlyOnlyWholeRepetitionsAreSome)
{
    const auto strict = ZCP_GROUPS_KMP_STRICT;
    EXPECT_EQ("abc@0,3,6,9", shown(look("abcabcabcabc", strict)));
    /* None of these is a whole number of rounds: nothing takes the place of anything. */
    EXPECT_EQ("abcabcab@0,3 abcab@0,3,6 ab@0,3,6,9", shown(look("abcabcabcab", strict)));
    EXPECT_EQ("abca@0,3", shown(look("abcabca", strict)));
}

/* "… of a shorter pattern discovered by TEIRESIAS". */
TEST(CatalogueTest, StrictlyTheShorterPatternMustHaveBeenFound)
{
    /* With two literals at least, "a" is no pattern. */
    EXPECT_EQ("aaaa@0,1 aaa@0,1,2 aa@0,1,2,3", shown(look("aaaaa")));
    EXPECT_EQ("a@0,1,2,3,4", shown(look("aaaaa", ZCP_GROUPS_KMP_ZC)));
    EXPECT_EQ("aa@0,1,2,3", shown(look("aaaaa", ZCP_GROUPS_KMP_STRICT)));
}

/* "… used in place of the original set of patterns". */
TEST(CatalogueTest, StrictlyFundamentalPatternsTakeThePlaceOfAll)
{
    const char *sample = "abcabcabcabcxefghyefgh";
    EXPECT_EQ("efgh@13,18 abc@0,3,6,9", shown(look(sample, ZCP_GROUPS_KMP_ZC)));
    EXPECT_EQ("abc@0,3,6,9", shown(look(sample, ZCP_GROUPS_KMP_STRICT)));
}

TEST(CatalogueTest, DontCaresAreRepeatedAsTheyAre)
{
    EXPECT_EQ("a.c@0,3,6,9", shown(look("axcaycazcawc", ZCP_GROUPS_KMP_ZC, 100000, 3)));
}

TEST(CatalogueTest, LeavesOutTheShortestWhereThereIsNoRoom)
{
    const catalogue all = look("abcdxabcdyefzef");
    EXPECT_FALSE(all.partial());
    const catalogue some = look("abcdxabcdyefzef", ZCP_GROUPS_KMP_OFF, 4 + 2 + 5);
    EXPECT_EQ("abcd@0,5", shown(some));
    EXPECT_TRUE(some.partial());
    const catalogue none = look("abcdxabcdyefzef", ZCP_GROUPS_KMP_OFF, 10);
    EXPECT_EQ(0u, none.size());
    EXPECT_TRUE(none.partial());
}

/* ---- earlier samples ----------------------------------------------------------- */

std::string after(const archive &a, size_t sample, size_t pattern)
{
    const auto next = a.after(sample, pattern);
    return next ? letters(next->pattern.symbols) + "+" + std::to_string(next->gap) : "none";
}

TEST(ArchiveTest, FollowsAPatternWithinItsSampleAndAcrossItsEnd)
{
    archive past(1 << 20, std::pmr::new_delete_resource());
    past.add(look("abxabyefzef"));
    EXPECT_EQ("ef+1", after(past, 0, 0));
    EXPECT_EQ("none", after(past, 0, 1)); /* the sample ended with it, and none came since */
    past.add(look("xghyghz"));
    EXPECT_EQ("gh+1", after(past, 0, 1)); /* first in the next one */
    EXPECT_EQ("none", after(past, 1, 0));
    past.add(look("abcdefg"));
    EXPECT_EQ("none", after(past, 1, 0)); /* no pattern there */
}

TEST(ArchiveTest, ASampleThatEndsInAnotherRoundEndsWithThePattern)
{
    archive past(1 << 20, std::pmr::new_delete_resource());
    /* "ef" also occurs in the round cut short, but it is not what came after the rounds. */
    past.add(look("abefefcabefefcabefef", ZCP_GROUPS_KMP_ZC));
    EXPECT_EQ("abefefc@0,7 ef@2,4,9,11,16,18", shown(past[0]));
    EXPECT_EQ("none", after(past, 0, 0));
    past.add(look("xghyghz"));
    EXPECT_EQ("gh+7", after(past, 0, 0));
    /* Here something else comes. */
    past.add(look("abefefcabefefcabefxef", ZCP_GROUPS_KMP_ZC));
    EXPECT_EQ("ef+2", after(past, 2, 0));
}

TEST(ArchiveTest, ForgetsTheOldest)
{
    archive past(1 << 20, std::pmr::new_delete_resource());
    for (size_t i = 0; i < archive::kSamples; i++)
        past.add(look("abxab"));
    past.add(look("efxef"));
    EXPECT_EQ(archive::kSamples, past.size());
    EXPECT_EQ("ef", letters(past[past.size() - 1][0].symbols));

    const catalogue one = look("abxab");
    archive small(3 * one.bytes() + 1, std::pmr::new_delete_resource());
    for (int i = 0; i < 10; i++)
        small.add(one);
    EXPECT_EQ(3u, small.size());
}

} // namespace
