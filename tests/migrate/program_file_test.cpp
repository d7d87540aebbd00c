/* SPDX-License-Identifier: BSD-3-Clause */
#include "program_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "scratch_directory.h"

namespace zc {
namespace {

namespace fs = std::filesystem;

class ProgramFileTest : public testing::Test {
  protected:
    ProgramFileTest()
    {
        if (const char *path = std::getenv("PATH"))
            path_ = path;
        fs::create_directories(first_ / "folder");
        fs::create_directories(second_);
        make(first_ / "text", fs::perms::owner_read);
        make(second_ / "text", fs::perms::owner_all);
        make(second_ / "folder", fs::perms::owner_all);
        fs::create_symlink(second_ / "text", second_ / "link");
        setenv("PATH", (first_.string() + ":" + second_.string()).c_str(), 1);
    }
    ~ProgramFileTest() override { setenv("PATH", path_.c_str(), 1); }
    static void make(const fs::path &file, fs::perms may)
    {
        std::ofstream{file};
        fs::permissions(file, may);
    }

    std::string path_;
    const migrate::scratch_directory scratch_;
    const fs::path first_ = fs::path(scratch_.path()) / "first";
    const fs::path second_ = fs::path(scratch_.path()) / "second";
};

TEST_F(ProgramFileTest, PassesOverWhatCannotBeRun)
{
    EXPECT_EQ(program_file("folder"), second_ / "folder");
    EXPECT_EQ(program_file("link"), second_ / "link");
    EXPECT_EQ(program_file("none"), "");
    EXPECT_EQ(program_file(""), "");
}

TEST_F(ProgramFileTest, TakesAPathAsItIs)
{
    EXPECT_EQ(program_file(second_ / "text"), second_ / "text");
    EXPECT_EQ(program_file(first_ / "folder"), "");
    EXPECT_EQ(program_file("./none"), "");
}

TEST_F(ProgramFileTest, AnEmptyFolderIsTheCurrentOne)
{
    const fs::path before = fs::current_path();
    fs::current_path(second_);
    setenv("PATH", ":/nowhere", 1);
    EXPECT_EQ(program_file("text"), "./text");
    fs::current_path(before);
}

} // namespace
} // namespace zc
