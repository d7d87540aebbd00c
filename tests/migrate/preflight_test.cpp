/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "error.h"
#include "preflight.h"

namespace zc::migrate {
namespace {

preflight some()
{
    preflight one;
    one.program = "aa11";
    one.library = "bb22";
    one.features = 0b1011;
    one.memory = 1 << 30;
    return one;
}

TEST(Preflight, FindsOutWhatThisProcessIs)
{
    const preflight found = preflight::of_this_process();
    EXPECT_FALSE(found.program.empty());
    EXPECT_FALSE(found.library.empty());
    EXPECT_NE(found.features, 0u); /* every x86-64 of today has some */
    EXPECT_GT(found.memory, 1u << 20);
    EXPECT_EQ(found.program, preflight::of_this_process().program);
}

TEST(Preflight, IsFoundAmongWhatElseIsPrinted)
{
    const preflight there =
        preflight::find_in("a warning\n" + some().to_line() + "\nanother zcm-preflight\n");
    EXPECT_EQ(there.program, "aa11");
    EXPECT_EQ(there.library, "bb22");
    EXPECT_EQ(there.features, 0b1011u);
    EXPECT_EQ(there.memory, 1u << 30);
    EXPECT_THROW(preflight::find_in("nothing"), error);
    EXPECT_THROW(preflight::find_in("zcm-preflight {}"), error);
    EXPECT_THROW(preflight::find_in("zcm-preflight {\"program\":3"), error);
}

TEST(Preflight, SaysWhatAHostLacks)
{
    const preflight_checks all;
    EXPECT_EQ(why_not(some(), some(), "h", all), "");
    preflight other = some();
    other.program = "cc33";
    EXPECT_EQ(why_not(some(), other, "h", all),
              "host h has another build of the program: found cc33, needed aa11");
    other = some();
    other.library = "cc33";
    EXPECT_EQ(why_not(some(), other, "h", all),
              "host h has another build of libzcm: found cc33, needed bb22");
    /* By chance the files have one number on both hosts. */
    preflight lost = some();
    lost.library = "replaced-7";
    EXPECT_NE(why_not(lost, lost, "h", all), "");
    other = some();
    other.features = 0b0011;
    EXPECT_EQ(why_not(some(), other, "h", all),
              "the processor of host h lacks sse4_2, which those of all ranks so far have "
              "(ZC_MIGRATE_PREFLIGHT)");
    other.features = 0b1111; /* more than needed */
    EXPECT_EQ(why_not(some(), other, "h", all), "");
    other.mpi = "no device";
    EXPECT_EQ(why_not(some(), other, "h", all), "MPI cannot be initialised on host h: no device");
}

TEST(Preflight, LeavesOutTheChecksThatAreNotWanted)
{
    preflight other;
    other.mpi = "no device";
    EXPECT_EQ(why_not(some(), other, "h", preflight_checks::from("none")), "");
    EXPECT_NE(why_not(some(), other, "h", preflight_checks::from("network")), "");
    EXPECT_NE(why_not(some(), other, "h", preflight_checks::from("build,features")), "");
    EXPECT_FALSE(preflight_checks::from("none").run);
    EXPECT_TRUE(preflight_checks::from("build").run);
    EXPECT_TRUE(preflight_checks::from("").memory);
    EXPECT_THROW(preflight_checks::from("memory,nonsense"), error);
}

TEST(Preflight, ReadsTheFlagsOfProcessors)
{
    EXPECT_EQ(features_in("x\nflags\t\t: fpu pni abm avx2\nflags : avx512f\n"),
              features_in("x\nflags : avx2 abm pni\n"));
    EXPECT_NE(features_in("x\nflags : avx2\n"), features_in("x\nflags : avx\n"));
    EXPECT_EQ(features_in("x\nflags : avx512\n"), 0u); /* part of a name is none */
    EXPECT_EQ(features_in("nothing"), 0u);
    EXPECT_LE(feature_names().size(), 64u);
}

TEST(Preflight, CountsWhatTheStateNeeds)
{
    EXPECT_EQ(why_no_room(0, 1 << 30, "h"), "");
    EXPECT_EQ(why_no_room(512 << 20, 1 << 30, "h"), "");
    EXPECT_EQ(why_no_room(std::uint64_t{1} << 30, 100 << 20, "h"),
              "host h has too little memory: found 100 MiB that could be had, needed 1088 MiB");
}

} // namespace
} // namespace zc::migrate
