/* SPDX-License-Identifier: BSD-3-Clause */
#include <fstream>
#include <sched.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "boot_time.h"
#include "forked.h"
#include "preflight.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace zc::holder {
namespace {

constexpr double kDay = 86400;

/** A process whose clocks go ahead of ours by a day. */
std::unique_ptr<forked> a_day_ahead()
{
    return std::make_unique<forked>([] {
        if (unshare(CLONE_NEWTIME) != 0)
            _exit(1);
        std::ofstream("/proc/self/timens_offsets") << "monotonic 86400 0\nboottime 86400 0\n";
    });
}

TEST(BootTimeTest, IsThatOfTheHostForMostProcesses)
{
    const forked one([] {});
    EXPECT_NEAR(boot_time(one.pid()), boot_time(getpid()), 0.1);
}

TEST(BootTimeTest, IsAnotherInATimeNamespace)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "time namespaces need root";
    const auto one = a_day_ahead();
    EXPECT_NEAR(boot_time(one->pid()), boot_time(getpid()) - kDay, 0.1);
}

TEST(BootTimeTest, ARankCanComeToAHostWithTheSameClock)
{
    EXPECT_EQ(clock_reason(1e9, 1e9 + 0.5, false), "");
}

TEST(BootTimeTest, ARankCannotComeToAnotherWithoutANamespace)
{
    EXPECT_EQ(clock_reason(1e9, 1e9 + kDay, false),
              "its monotonic clock is 86400 s behind the rank's, and no time namespace can be made "
              "there");
    EXPECT_EQ(clock_reason(1e9, 1e9 - 2, false),
              "its monotonic clock is 2 s ahead of the rank's, and no time namespace can be made "
              "there");
}

TEST(BootTimeTest, ARankCanComeToAnyWithOne)
{
    EXPECT_EQ(clock_reason(1e9, 1e9 + kDay, true), "");
}

/** Which can make one, by a user namespace if it is an ordinary user's. */
TEST(BootTimeTest, IsNoReasonToPreflight)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "it needs root to be another user";
    const auto one = a_day_ahead();
    const nlohmann::json needs = needs_of(one->pid());
    EXPECT_EQ(joined(lacks(needs)).find("monotonic"), std::string::npos);
    ASSERT_EQ(seteuid(65534), 0);
    const std::string found = joined(lacks(needs));
    ASSERT_EQ(seteuid(0), 0);
    EXPECT_EQ(found.find("monotonic"), std::string::npos) << found;
}

} // namespace
} // namespace zc::holder
