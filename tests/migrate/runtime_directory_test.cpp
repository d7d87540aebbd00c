/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "job_sockets.h"
#include "runtime_directory.h"
#include "scratch_directory.h"
#include "settings.h"

namespace zc::migrate {
namespace {

using control::all_socket_directories;
using control::default_socket_directory;

class RuntimeDirectoryTest : public testing::Test {
  protected:
    RuntimeDirectoryTest()
    {
        for (const char *name : {"XDG_RUNTIME_DIR", "ZC_MIGRATE_SOCKETS", "ZCM_PROFILE_DIR"}) {
            const char *value = std::getenv(name);
            before_.emplace_back(name, value ? value : "");
            unsetenv(name);
        }
    }
    ~RuntimeDirectoryTest() override
    {
        for (const auto &[name, value] : before_)
            value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    static zcm_runtime chosen(std::string &path)
    {
        char text[PATH_MAX];
        const zcm_runtime what = zcm_runtime_directory(text, sizeof text);
        path = text;
        return what;
    }

    std::vector<std::pair<std::string, std::string>> before_;
    const scratch_directory scratch_;
    const std::string &place_ = scratch_.path();
    const std::string otherwise_ = "/tmp/zcm-" + std::to_string(geteuid());
};

TEST_F(RuntimeDirectoryTest, WhatIsOursIsUsed)
{
    std::string path;
    setenv("XDG_RUNTIME_DIR", place_.c_str(), 1);
    EXPECT_EQ(chosen(path), ZCM_RUNTIME_USED);
    EXPECT_EQ(path, place_ + "/zcm");
    EXPECT_EQ(default_socket_directory(), place_ + "/zcm");
    EXPECT_EQ(why_not_runtime_directory(), "");
    EXPECT_EQ(all_socket_directories(), std::vector<std::string>{place_ + "/zcm"});
}

TEST_F(RuntimeDirectoryTest, WithoutTheVariableNothingIsSaid)
{
    std::string path;
    EXPECT_EQ(chosen(path), ZCM_RUNTIME_UNSET);
    EXPECT_EQ(path, otherwise_);
    EXPECT_EQ(why_not_runtime_directory(), "");
}

TEST_F(RuntimeDirectoryTest, WhatCannotBeUsedIsNot)
{
    const std::string file = place_ + "/file", open_to_others = place_ + "/open";
    close(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    mkdir(open_to_others.c_str(), 0700);
    chmod(open_to_others.c_str(), 0770);
    struct {
        std::string value;
        zcm_runtime what;
        const char *said;
    } const cases[] = {{place_ + "/none", ZCM_RUNTIME_MISSING, "does not exist"},
                       {"run", ZCM_RUNTIME_RELATIVE, "not an absolute path"},
                       {file, ZCM_RUNTIME_NO_DIRECTORY, "not a directory"},
                       {open_to_others, ZCM_RUNTIME_OPEN_TO_OTHERS, "others can write"}};
    for (const auto &one : cases) {
        std::string path;
        setenv("XDG_RUNTIME_DIR", one.value.c_str(), 1);
        EXPECT_EQ(chosen(path), one.what) << one.value;
        EXPECT_EQ(path, otherwise_);
        const std::string said = why_not_runtime_directory();
        for (const std::string &wanted : {one.value, std::string(one.said), otherwise_})
            EXPECT_NE(said.find(wanted), std::string::npos) << said;
    }
}

TEST_F(RuntimeDirectoryTest, WhatBelongsToAnotherIsNotUsed)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can give a directory away";
    ASSERT_EQ(chown(place_.c_str(), 12345, 12345), 0);
    std::string path;
    setenv("XDG_RUNTIME_DIR", place_.c_str(), 1);
    EXPECT_EQ(chosen(path), ZCM_RUNTIME_OF_ANOTHER);
    EXPECT_EQ(path, otherwise_);
}

TEST_F(RuntimeDirectoryTest, NothingIsSaidOfWhatNobodyNeeds)
{
    setenv("XDG_RUNTIME_DIR", (place_ + "/none").c_str(), 1);
    setenv("ZC_MIGRATE_SOCKETS", "/a", 1);
    EXPECT_NE(why_not_runtime_directory(), "");
    setenv("ZCM_PROFILE_DIR", "/b", 1);
    EXPECT_EQ(why_not_runtime_directory(), "");
}

TEST_F(RuntimeDirectoryTest, OfTheTwoUsualPlacesTheOtherIsLookedAtToo)
{
    char path[PATH_MAX];
    ASSERT_EQ(zcm_runtime_place(0, path, sizeof path), 0);
    EXPECT_EQ(path, otherwise_);
    ASSERT_EQ(zcm_runtime_place(1, path, sizeof path), 0);
    EXPECT_EQ(path, "/run/user/" + std::to_string(geteuid()) + "/zcm");
    EXPECT_EQ(zcm_runtime_place(2, path, sizeof path), -1);
    setenv("XDG_RUNTIME_DIR", place_.c_str(), 1);
    EXPECT_EQ(zcm_runtime_place(1, path, sizeof path), -1);
    EXPECT_EQ(zcm_runtime_place(0, path, 3), -1);
}

} // namespace
} // namespace zc::migrate
