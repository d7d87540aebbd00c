/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint_directory.h"
#include "disk_writer.h"
#include "error.h"

namespace {

/* Called once: what another process does meanwhile. */
thread_local std::function<void()> after_rename;

} // namespace

/* In the place of libc's, of which no test of ours could tell what comes after it. */
extern "C" int rename(const char *from, const char *to) noexcept
{
    const int result = renameat(AT_FDCWD, from, AT_FDCWD, to);
    if (const auto meanwhile = std::exchange(after_rename, nullptr))
        meanwhile();
    return result;
}

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

class CheckpointDirectoryTest : public testing::Test {
  protected:
    CheckpointDirectoryTest()
    {
        std::string name = fs::temp_directory_path() / "zcm-test-XXXXXX";
        place_ = mkdtemp(name.data());
    }
    ~CheckpointDirectoryTest() override { fs::remove_all(place_); }

    static std::vector<std::byte> content(std::size_t bytes)
    {
        std::vector<std::byte> data(bytes);
        for (std::size_t i = 0; i < bytes; i++)
            data[i] = static_cast<std::byte>(i * 31 >> 3);
        return data;
    }
    static std::vector<std::byte> read(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        const auto bytes = std::as_bytes(std::span(text));
        return {bytes.begin(), bytes.end()};
    }

    std::string place_;
};

TEST_F(CheckpointDirectoryTest, FilesOfAnyLengthAreWrittenWhole)
{
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{524287},
                              std::size_t{524289}, std::size_t{9 << 20} + 13}) {
        const auto wanted = content(bytes);
        write_durably(place_ + "/file", wanted);
        EXPECT_EQ(read(place_ + "/file"), wanted) << bytes;
    }
    EXPECT_FALSE(fs::exists(place_ + "/file.part"));
}

TEST_F(CheckpointDirectoryTest, TheCommitMayComeAsSoonAsTheLastFileIsThere)
{
    const checkpoint_directory place(place_, 5, "nonce");
    place.write_rank(0, content(100));
    after_rename = [&] { place.commit(2, 10); };
    EXPECT_NO_THROW(place.write_rank(1, content(200)));
    EXPECT_FALSE(after_rename);
    const auto saved = checkpoint_directory::latest(place_);
    EXPECT_EQ(read(saved.rank_file(1)), content(200));
    EXPECT_EQ(std::distance(fs::directory_iterator(saved.directory), {}), 3); /* with the manifest */
}

TEST_F(CheckpointDirectoryTest, AFailedWriteLeavesTheOldFile)
{
    write_durably(place_ + "/file", content(100));
    EXPECT_THROW(write_durably(place_ + "/none/file", content(100)), error);
    EXPECT_THROW(write_durably("/dev/full/file", content(100)), error);
    EXPECT_EQ(read(place_ + "/file"), content(100));
}

TEST_F(CheckpointDirectoryTest, LatestIsTheLastComplete)
{
    EXPECT_THROW(checkpoint_directory::latest(place_), error);
    for (std::int64_t n : {10, 20}) {
        const checkpoint_directory at(place_, n, "x");
        std::thread other([&] { at.write_rank(1, content(1000)); });
        at.write_rank(0, content(2000));
        at.commit(2, 10);
        other.join();
        const auto found = checkpoint_directory::latest(place_);
        EXPECT_EQ(found.ranks, 2);
        EXPECT_EQ(found.safe_point, n);
        EXPECT_EQ(read(found.rank_file(1)), content(1000));
    }
    EXPECT_FALSE(fs::exists(place_ + "/at-10"));
}

TEST_F(CheckpointDirectoryTest, AMissingRankLeavesThePrevious)
{
    const checkpoint_directory first(place_, 1, "x"), second(place_, 2, "x");
    first.write_rank(0, content(10));
    first.commit(1, 1);
    second.write_rank(0, content(10));
    EXPECT_THROW(second.commit(2, 0.05), error);
    EXPECT_EQ(checkpoint_directory::latest(place_).safe_point, 1);
    EXPECT_FALSE(fs::exists(place_ + "/at-2.part-x"));
}

TEST_F(CheckpointDirectoryTest, LeftoversOfACrashAreNotTakenForNew)
{
    checkpoint_directory(place_, 1, "crashed").write_rank(1, content(5));
    const checkpoint_directory again(place_, 1, "again");
    again.write_rank(0, content(10));
    EXPECT_THROW(again.commit(2, 0.05), error);
    again.write_rank(0, content(10));
    again.write_rank(1, content(20));
    again.commit(2, 1);
    EXPECT_EQ(read(checkpoint_directory::latest(place_).rank_file(1)), content(20));
    EXPECT_FALSE(fs::exists(place_ + "/at-1.part-crashed"));
}

TEST_F(CheckpointDirectoryTest, DamageIsNoticed)
{
    const checkpoint_directory at(place_, 1, "x");
    at.write_rank(0, content(10));
    at.commit(1, 1);
    fs::remove(place_ + "/latest/rank-0.h5");
    EXPECT_THROW(checkpoint_directory::latest(place_), error);
    std::ofstream(place_ + "/latest/manifest.json") << "{";
    EXPECT_THROW(checkpoint_directory::latest(place_), error);
}

} // namespace
} // namespace zc::migrate
