/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "error.h"
#include "fault.h"
#include "settings.h"

namespace zc::migrate {
namespace {

/* The settings of a process with ZC_MIGRATE=1 and this fault. */
settings settings_with(const std::string &fault)
{
    setenv("ZC_MIGRATE", "1", 1);
    setenv("ZC_MIGRATE_FAULT", fault.c_str(), 1);
    try {
        const settings found = settings::from_environment();
        unsetenv("ZC_MIGRATE_FAULT");
        unsetenv("ZC_MIGRATE");
        return found;
    } catch (...) {
        unsetenv("ZC_MIGRATE_FAULT");
        unsetenv("ZC_MIGRATE");
        throw;
    }
}

void expect_refused(const std::string &fault)
{
    try {
        settings_with(fault);
        ADD_FAILURE() << "'" << fault << "' was taken";
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EINVAL);
        EXPECT_TRUE(
            std::string(problem.what()).starts_with("bad value of ZC_MIGRATE_FAULT: " + fault))
            << problem.what();
    }
}

TEST(FaultTest, NoneUnlessAskedFor)
{
    const settings found = settings_with("");
    for (const named_fault &one : kFaultNames)
        EXPECT_FALSE(found.fault_injected(one.what)) << one.name;
}

TEST(FaultTest, EachNameMeansItsFaultOnly)
{
    std::set<std::string_view> seen;
    for (const named_fault &one : kFaultNames) {
        EXPECT_TRUE(seen.insert(one.name).second) << one.name << " comes twice";
        if (!kFaults) {
            expect_refused(std::string(one.name));
            continue;
        }
        const settings found = settings_with(std::string(one.name));
        for (const named_fault &other : kFaultNames)
            EXPECT_EQ(found.fault_injected(other.what), other.what == one.what)
                << one.name << ", " << other.name;
    }
}

TEST(FaultTest, RefusesUnknownNames)
{
    for (const char *name : {"none", "successor-kiled", "Corrupt", "corrupt ", "successor_exits"})
        expect_refused(name);
}

TEST(FaultTest, ABuildWithoutFaultsInjectsNone)
{
    settings chosen;
    chosen.injected = fault::corrupt;
    EXPECT_EQ(chosen.fault_injected(fault::corrupt), kFaults);
}

} // namespace
} // namespace zc::migrate
