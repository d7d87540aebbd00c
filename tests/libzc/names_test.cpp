/* SPDX-License-Identifier: BSD-3-Clause */
#include "zc/zc.h"

#include <cctype>
#include <gtest/gtest.h>
#include <set>
#include <string>

TEST(NamesTest, EveryReasonHasItsOwn)
{
    std::set<std::string> names;
    for (int i = 0; i < ZC_REASON_COUNT; i++)
        names.insert(zc_reason_name(static_cast<zc_reason_t>(i)));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(ZC_REASON_COUNT));
    EXPECT_FALSE(names.contains("unknown"));
}

TEST(NamesTest, AgreeWithTheEnumerators)
{
    EXPECT_STREQ(zc_reason_name(ZC_REASON_NONE), "none");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_NOT_CONGRUENT), "not_congruent");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_MAPPING_LIMIT), "mapping_limit");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_SYSCALL), "syscall");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_COW), "cow");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_NOTIFIER), "notifier");
    EXPECT_STREQ(zc_reason_name(ZC_REASON_DISABLED), "disabled");
    EXPECT_STREQ(zc_means_name(ZC_MEANS_COPY), "copy");
    EXPECT_STREQ(zc_means_name(ZC_MEANS_MREMAP), "mremap");
    EXPECT_STREQ(zc_means_name(ZC_MEANS_KMOD), "kmod");
}

TEST(NamesTest, AreNeverNull)
{
    EXPECT_STREQ(zc_reason_name(ZC_REASON_COUNT), "unknown");
    EXPECT_STREQ(zc_means_name(ZC_MEANS_COUNT), "unknown");
}

TEST(NamesTest, VersionHasThreeNumbers)
{
    int major = -1, minor = -1, patch = -1;
    EXPECT_EQ(std::sscanf(zc_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}
