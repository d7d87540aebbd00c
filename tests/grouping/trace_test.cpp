/* SPDX-License-Identifier: BSD-3-Clause */

/* Real event streams. With ZC_TRACES set, the full runs below that folder (each
 * with events.csv.gz) are tried too. */
#include <cstdlib>
#include <filesystem>

#include "events_csv.h"
#include "support.h"

using namespace zcg_test;

namespace {

zc::groups::event_stream load(const std::string &name)
{
    return zc::groups::read_events_csv(std::string(ZC_GROUPING_DATA) + "/" + name);
}

TEST(TraceTest, ReadsEvents)
{
    const auto stream = load("mg-a-8.csv.gz");
    EXPECT_EQ(8u, stream.ranks);
    EXPECT_EQ(7000u, stream.events.size());
    EXPECT_EQ(1u, stream.events.front().kind); /* a broadcast of the input */
    EXPECT_THROW(load("no-such-file.csv.gz"), std::runtime_error);
}

/* Measured, rounded down; persistence rounded up. */
struct floor_of {
    const char *file;
    uint32_t period;
    double ours;
    double persistence;
};

TEST(TraceTest, ForetellsRealRunsAtLeastAsWellAsPersistence)
{
    for (const floor_of &f :
         {floor_of{"bt-a-16.csv.gz", 64, 0.70, 0.30}, floor_of{"cg-a-16.csv.gz", 64, 0.74, 0.65},
          floor_of{"lu-a-16.csv.gz", 512, 0.48, 0.48}}) {
        const auto stream = load(f.file);
        EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, f.period, 1024), f.ours) << f.file;
        EXPECT_LT(foretold(stream, ZCP_GROUPS_PERSISTENCE, f.period, 1024), f.persistence)
            << f.file;
    }
}

TEST(TraceTest, FullSetNeverLosesByMoreThanTheNoise)
{
    const char *folder = std::getenv("ZC_TRACES");
    if (!folder)
        GTEST_SKIP() << "ZC_TRACES is not set";
    size_t nr = 0;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        const auto path = entry.path() / "events.csv.gz";
        if (!std::filesystem::exists(path))
            continue;
        const auto stream = zc::groups::read_events_csv(path.string());
        if (stream.events.size() < 5000)
            continue; /* a handful of periods says nothing */
        nr++;
        for (const uint32_t period : {64u, 512u})
            EXPECT_GT(foretold(stream, ZCP_GROUPS_DEFAULT, period, 1024),
                      foretold(stream, ZCP_GROUPS_PERSISTENCE, period, 1024) - 0.03)
                << path << " " << period;
    }
    EXPECT_GT(nr, 0u);
}

} // namespace
