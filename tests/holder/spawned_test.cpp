/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "error.h"
#include "host_name.h"
#include "keys.h"
#include "spawned.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

using words = std::vector<std::string>;

settings usual()
{
    settings how;
    how.key_file = default_key_file();
    return how;
}

TEST(SpawnedTest, AreStartedAsTheRankWas)
{
    EXPECT_EQ(words_for_spawned("zc-hold", usual(), "h1:41234"),
              (words{"zc-hold", "--spawned-by", "h1:41234"}));
    settings how = usual();
    how.job = "mine"; /* of this world alone */
    how.spawned_by = "other";
    how.criu = "criu-4";
    how.patience = std::chrono::seconds(5);
    how.pre_copy = how.tracking = how.user_namespace = false;
    how.lazy = true;
    EXPECT_EQ(words_for_spawned("/opt/a b/zc-hold", how, "mine"),
              (words{"/opt/a b/zc-hold", "--spawned-by", "mine", "--criu", "criu-4", "--patience",
                     "5", "--no-pre-copy", "--lazy", "--no-tracking", "--no-user-namespace"}));
}

/** They may be started in another folder. */
TEST(SpawnedTest, FindFilesInAnyFolder)
{
    settings how = usual();
    how.key_file = "the key";
    how.criu = "./criu";
    const std::string here = std::filesystem::current_path().string() + "/";
    const words made = words_for_spawned("bin/zc-hold", how, "job");
    EXPECT_EQ(made, (words{here + "bin/zc-hold", "--spawned-by", "job", "--key", here + "the key",
                           "--criu", here + "./criu"}));
}

TEST(SpawnedTest, AreToldInLines)
{
    EXPECT_EQ(in_lines({"zc-hold", "--key", "a b", "%20"}), "zc-hold\n--key\na b\n%20");
    EXPECT_THROW(in_lines({"zc-hold", "a\nb"}), error);
}

struct FoldersTest : testing::Test {
    std::string top = testing::TempDir() + "spawned-" + std::to_string(getpid());

    FoldersTest()
    {
        std::filesystem::create_directories(top + "/one/program"); /* no program */
        std::filesystem::create_directories(top + "/two");
        std::filesystem::create_directories(top + "/three");
        std::ofstream(top + "/two/program") << "no program";
        std::ofstream(top + "/three/program") << "#!/bin/sh\n";
        std::filesystem::permissions(top + "/two/program", std::filesystem::perms::owner_read);
        std::filesystem::permissions(top + "/three/program", std::filesystem::perms::owner_all);
    }
    ~FoldersTest() override { std::filesystem::remove_all(top); }
};

TEST_F(FoldersTest, TheFirstThatHasItIsTaken)
{
    const std::string one = top + "/one", two = top + "/two", three = top + "/three";
    EXPECT_EQ(program_in(three, "program"), three + "/program");
    EXPECT_EQ(program_in(one + ":" + two + ":" + three, "program"), three + "/program");
    EXPECT_EQ(program_in(two + ":" + one, "nothing"), two + "/nothing");
    EXPECT_EQ(program_in("", "program"), "program");
    EXPECT_EQ(program_in(":", "nothing"), "./nothing");
}

TEST(HeldTest, IsWhatAHolderHasStartedAsThisProcess)
{
    held_rank mark;
    mark.job = "job";
    const auto held_by = [&mark](int pid, const std::string &home = host_name()) {
        mark.pid = pid;
        mark.home = home;
        setenv(kRankMark, mark_of(mark).c_str(), 1);
        return is_held();
    };
    EXPECT_TRUE(held_by(getppid()));
    EXPECT_FALSE(held_by(getpid()));
    EXPECT_FALSE(held_by(getppid(), "another-host")); /* of the same number there */
    setenv(kRankMark, "nonsense", 1);
    EXPECT_FALSE(is_held());
    unsetenv(kRankMark);
    EXPECT_FALSE(is_held());
}

} // namespace
} // namespace zc::holder
