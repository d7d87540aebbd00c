/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "error.h"

namespace zc::migrate {
namespace {

/* Of a process with ZC_MIGRATE=1 and @value in the variable. */
class OtherLibrariesTest : public testing::Test {
  protected:
    OtherLibrariesTest() { setenv("ZC_MIGRATE", "1", 1); }
    ~OtherLibrariesTest() override
    {
        unsetenv("ZC_MIGRATE");
        unsetenv("ZC_MIGRATE_OTHER_LIBRARIES");
        unsetenv("ZC_MIGRATE_PREFLIGHT");
    }
    static settings with(const char *value)
    {
        setenv("ZC_MIGRATE_OTHER_LIBRARIES", value, 1);
        return settings::from_environment();
    }
};

TEST_F(OtherLibrariesTest, RefuseUnlessAllowed)
{
    EXPECT_EQ(settings::from_environment().other_libraries, settings::libraries::refuse);
    EXPECT_EQ(with("").other_libraries, settings::libraries::refuse);
    EXPECT_EQ(with("refuse").other_libraries, settings::libraries::refuse);
    EXPECT_TRUE(with("refuse").libraries_compared());
    EXPECT_EQ(with("allow").other_libraries, settings::libraries::allow);
    EXPECT_FALSE(with("allow").libraries_compared());
    setenv("ZC_MIGRATE_PREFLIGHT", "features,memory", 1);
    EXPECT_FALSE(with("refuse").libraries_compared()); /* nor are other builds looked for */
}

TEST_F(OtherLibrariesTest, RefusesOtherWords)
{
    try {
        with("yes");
        FAIL() << "it was taken";
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EINVAL);
        EXPECT_STREQ(problem.what(),
                     "bad value of ZC_MIGRATE_OTHER_LIBRARIES: yes (refuse or allow)");
    }
}

} // namespace
} // namespace zc::migrate
