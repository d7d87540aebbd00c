/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_directory.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "forked.h"

namespace zc::holder {
namespace {

std::set<std::string> all_there()
{
    std::set<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator(memory_directory::kWhere)) {
        if (entry.path().filename().string().starts_with("zc-hold-images-"))
            found.insert(entry.path());
    }
    return found;
}

/** Another process, which has one; and its path. */
struct owner {
    std::optional<memory_directory> it;
    std::set<std::string> before = all_there();
    forked process{[this] {
        it.emplace();
        std::ofstream(it->path() + "/pages-1.img") << "much";
    }};
    std::string path() const
    {
        for (const std::string &each : all_there()) {
            if (!before.contains(each))
                return each;
        }
        return "";
    }
};

TEST(MemoryDirectoryTest, IsForItsUserAloneAndIsRemoved)
{
    std::string path;
    {
        memory_directory it;
        path = it.path();
        std::ofstream(path + "/pages-1.img") << "much";
        struct stat found;
        ASSERT_EQ(stat(path.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 0777, 0700u);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(MemoryDirectoryTest, IsSeenByOthersWhileItIsThere)
{
    {
        const memory_directory it;
        EXPECT_TRUE(memory_directory::is_any_there());
    }
    EXPECT_EQ(memory_directory::is_any_there(), !all_there().empty()); /* others' */
}

TEST(MemoryDirectoryTest, OfAProcessThatRunsIsLeftAlone)
{
    owner other;
    const std::string path = other.path();
    ASSERT_NE(path, "");
    memory_directory mine;
    EXPECT_TRUE(std::filesystem::exists(path + "/pages-1.img"));
    memory_directory::remove_left_over();
    EXPECT_TRUE(std::filesystem::exists(mine.path()));
    other.process.end();
    memory_directory::remove_left_over();
}

TEST(MemoryDirectoryTest, OfAProcessThatWasKilledIsRemovedByTheNext)
{
    owner other;
    const std::string path = other.path();
    other.process.end();
    ASSERT_TRUE(std::filesystem::exists(path + "/pages-1.img"));
    memory_directory mine;
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(MemoryDirectoryTest, OfAnotherUserIsLeftAlone)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can give a folder away";
    owner other;
    const std::string path = other.path();
    other.process.end();
    ASSERT_EQ(chown(path.c_str(), 54321, 54321), 0);
    memory_directory mine;
    EXPECT_TRUE(std::filesystem::exists(path));
    std::filesystem::remove_all(path);
}

} // namespace
} // namespace zc::holder
