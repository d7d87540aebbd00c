/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <liburing.h>
#include <sys/file.h>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint_directory.h"
#include "directory_lock.h"
#include "disk_writer.h"
#include "error.h"
#include "scratch_directory.h"

namespace {

/* Called once: what another process does meanwhile. */
thread_local std::function<void()> after_rename;
/* Called each time. */
thread_local std::function<void()> before_rename;
thread_local bool no_locks = false, no_uring = false;

template <typename Call>
Call *next(Call *, const char *name)
{
    return reinterpret_cast<Call *>(dlsym(RTLD_NEXT, name));
}

} // namespace

/* In the place of libc's, of which no test of ours could tell what comes around it. */
extern "C" [[gnu::visibility("default")]] int rename(const char *from, const char *to) noexcept
{
    if (before_rename)
        before_rename();
    const int result = renameat(AT_FDCWD, from, AT_FDCWD, to);
    if (const auto meanwhile = std::exchange(after_rename, nullptr))
        meanwhile();
    return result;
}

/* A file system without locks. */
extern "C" int flock(int fd, int operation) noexcept
{
    if (no_locks) {
        errno = ENOLCK;
        return -1;
    }
    return next(flock, "flock")(fd, operation);
}

/* A container where it is not allowed. */
extern "C" int io_uring_queue_init(unsigned entries, io_uring *ring, unsigned flags)
{
    return no_uring ? -EPERM
                    : next(io_uring_queue_init, "io_uring_queue_init")(entries, ring, flags);
}

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

class CheckpointDirectoryTest : public testing::Test {
  protected:
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

    /* Of a job that nobody resumed, or of one that goes on with the state of @line. */
    static lineage job(std::uint64_t number, std::uint64_t line = 0)
    {
        return {number, line ? line : number, "job-" + std::to_string(number)};
    }
    void save(std::int64_t safe_point, const lineage &whose,
              checkpoint_directory::company others = checkpoint_directory::company::alone,
              int keep = 1)
    {
        const checkpoint_directory at(place_, safe_point, "nonce", whose, keep);
        at.write_rank(0, content(10));
        at.commit(1, 10, others);
    }
    std::string name(std::int64_t safe_point, std::uint64_t job) const
    {
        return place_ + "/at-" + std::to_string(safe_point) + "-" + digits_of(job);
    }

    const scratch_directory scratch_;
    const std::string &place_ = scratch_.path();
};

TEST_F(CheckpointDirectoryTest, FilesOfAnyLengthAreWrittenWhole)
{
    for (std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{524287},
          std::size_t{524289}, std::size_t{9 << 20} + 13}) {
        const auto wanted = content(bytes);
        write_durably(place_ + "/file", wanted);
        EXPECT_EQ(read(place_ + "/file"), wanted) << bytes;
    }
    EXPECT_FALSE(fs::exists(place_ + "/file.part"));
}

TEST_F(CheckpointDirectoryTest, FilesAreWrittenWholeWithoutQueues)
{
    no_uring = true;
    for (std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4 << 20}, std::size_t{21 << 20} + 13}) {
        const auto wanted = content(bytes);
        write_durably(place_ + "/file", wanted);
        EXPECT_EQ(read(place_ + "/file"), wanted) << bytes;
    }
    no_uring = false;
}

TEST_F(CheckpointDirectoryTest, TheCommitMayComeAsSoonAsTheLastFileIsThere)
{
    const checkpoint_directory place(place_, 5, "nonce", job(1));
    place.write_rank(0, content(100));
    after_rename = [&] { place.commit(2, 10); };
    EXPECT_NO_THROW(place.write_rank(1, content(200)));
    EXPECT_FALSE(after_rename);
    const auto saved = checkpoint_directory::latest(place_);
    EXPECT_EQ(read(saved.rank_file(1)), content(200));
    EXPECT_EQ(std::distance(fs::directory_iterator(saved.directory), {}),
              3); /* with the manifest */
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
        const checkpoint_directory at(place_, n, "x", job(1));
        std::thread other([&] { at.write_rank(1, content(1000)); });
        at.write_rank(0, content(2000));
        at.commit(2, 10);
        other.join();
        const auto found = checkpoint_directory::latest(place_);
        EXPECT_EQ(found.ranks, 2);
        EXPECT_EQ(found.safe_point, n);
        EXPECT_EQ(read(found.rank_file(1)), content(1000));
    }
    EXPECT_FALSE(fs::exists(name(10, 1)));
}

TEST_F(CheckpointDirectoryTest, AMissingRankLeavesThePrevious)
{
    const checkpoint_directory first(place_, 1, "x", job(1)), second(place_, 2, "x", job(1));
    first.write_rank(0, content(10));
    first.commit(1, 1);
    second.write_rank(0, content(10));
    EXPECT_THROW(second.commit(2, 0.05), error);
    EXPECT_EQ(checkpoint_directory::latest(place_).safe_point, 1);
    EXPECT_FALSE(fs::exists(name(2, 1) + ".part-x"));
}

TEST_F(CheckpointDirectoryTest, LeftoversOfACrashAreNotTakenForNew)
{
    checkpoint_directory(place_, 1, "crashed", job(1)).write_rank(1, content(5));
    const checkpoint_directory again(place_, 1, "again", job(2));
    again.write_rank(0, content(10));
    EXPECT_THROW(again.commit(2, 0.05), error);
    again.write_rank(0, content(10));
    again.write_rank(1, content(20));
    again.commit(2, 1);
    EXPECT_EQ(read(checkpoint_directory::latest(place_).rank_file(1)), content(20));
    EXPECT_FALSE(fs::exists(name(1, 1) + ".part-crashed"));
}

TEST_F(CheckpointDirectoryTest, DamageIsNoticed)
{
    const checkpoint_directory at(place_, 1, "x", job(1));
    at.write_rank(0, content(10));
    at.commit(1, 1);
    fs::remove(place_ + "/latest/rank-0.h5");
    EXPECT_THROW(checkpoint_directory::latest(place_), error);
    std::ofstream(place_ + "/latest/manifest.json") << "{";
    EXPECT_THROW(checkpoint_directory::latest(place_), error);
}

TEST_F(CheckpointDirectoryTest, AJobLeavesWhatIsAnothersAlone)
{
    save(100, job(1));
    save(50, job(2));
    EXPECT_TRUE(fs::exists(name(100, 1)));
    try {
        checkpoint_directory::latest(place_);
        FAIL() << "one of two jobs was chosen";
    } catch (const error &problem) {
        for (const std::string &wanted :
             {name(100, 1), name(50, 2), std::string("job-1"), std::string("safe point 50")})
            EXPECT_NE(std::string(problem.what()).find(wanted), std::string::npos)
                << problem.what();
    }
    EXPECT_EQ(checkpoint_directory::latest(name(100, 1)).whose.job, 1u);
    EXPECT_EQ(checkpoint_directory::latest(name(50, 2)).whose.name, "job-2");
    save(60, job(2));
    EXPECT_FALSE(fs::exists(name(50, 2)));
    EXPECT_TRUE(fs::exists(name(100, 1)));
}

TEST_F(CheckpointDirectoryTest, AResumedJobReplacesWhatItCameFrom)
{
    save(100, job(1));
    save(200, job(2, 1));
    save(300, job(3, 1));
    EXPECT_FALSE(fs::exists(name(100, 1)) || fs::exists(name(200, 2)));
    const auto found = checkpoint_directory::latest(place_);
    EXPECT_EQ(found.whose.job, 3u);
    EXPECT_EQ(found.whose.line, 1u);
}

TEST_F(CheckpointDirectoryTest, TheSameSafePointAgainLeavesOneAtEachMoment)
{
    save(100, job(1));
    int renamed = 0;
    before_rename = [&] {
        renamed++;
        EXPECT_NO_THROW(checkpoint_directory::latest(place_));
    };
    save(100, job(2, 1));
    before_rename = nullptr;
    EXPECT_EQ(renamed, 5); /* image, manifest, directory, link, what is not kept */
    EXPECT_EQ(checkpoint_directory::latest(place_).whose.job, 2u);
}

TEST_F(CheckpointDirectoryTest, KeepsAsManyAsWanted)
{
    using company = checkpoint_directory::company;
    for (std::int64_t n : {100, 200, 300})
        save(n, job(1), company::alone, 2);
    EXPECT_FALSE(fs::exists(name(100, 1)));
    EXPECT_TRUE(fs::exists(name(200, 1)) && fs::exists(name(300, 1)));
    /* The last one was bad: the job is resumed from the one before. What it saves is newer than
     * both, although it comes earlier in the run. */
    save(250, job(2, 1), company::alone, 2);
    EXPECT_FALSE(fs::exists(name(200, 1)));
    EXPECT_TRUE(fs::exists(name(300, 1)));
    EXPECT_EQ(checkpoint_directory::latest(place_).safe_point, 250);
    EXPECT_EQ(checkpoint_directory::latest(name(300, 1)).generation, 3);
    EXPECT_EQ(checkpoint_directory::latest(place_).generation, 4);
}

TEST_F(CheckpointDirectoryTest, DamageLeadsToTheOneBefore)
{
    using company = checkpoint_directory::company;
    save(100, job(1), company::alone, 2);
    save(200, job(1), company::alone, 2);
    fs::remove(name(200, 1) + "/rank-0.h5");
    try {
        checkpoint_directory::latest(place_);
        FAIL();
    } catch (const error &problem) {
        EXPECT_NE(std::string(problem.what()).find("before it: " + name(100, 1)), std::string::npos)
            << problem.what();
    }
}

TEST_F(CheckpointDirectoryTest, TheSameNameAgainLeavesTheFirstAlone)
{
    save(100, job(1));
    after_rename = nullptr;
    before_rename = [&] {
        EXPECT_NO_THROW(checkpoint_directory::latest(place_));
        EXPECT_TRUE(fs::exists(name(100, 1) + "/rank-0.h5"));
    };
    save(100, job(1), checkpoint_directory::company::alone, 2);
    before_rename = nullptr;
    EXPECT_EQ(checkpoint_directory::latest(place_).directory, name(100, 1) + "-2");
    EXPECT_TRUE(fs::exists(name(100, 1)));
}

TEST_F(CheckpointDirectoryTest, WhatIsDiscardedIsGone)
{
    const checkpoint_directory at(place_, 1, "x", job(1));
    EXPECT_EQ(at.file_of(3), name(1, 1) + ".part-x/rank-3.h5");
    at.write_rank(0, content(10));
    at.discard();
    EXPECT_TRUE(fs::is_empty(place_));
}

TEST_F(CheckpointDirectoryTest, WhatMayStillBeWrittenIsLeftAlone)
{
    checkpoint_directory(place_, 7, "other", job(1)).write_rank(0, content(5));
    checkpoint_directory(place_, 7, "crashed", job(2)).write_rank(0, content(5));
    save(8, job(2), checkpoint_directory::company::unknown);
    EXPECT_TRUE(fs::exists(name(7, 1) + ".part-other"));
    EXPECT_FALSE(fs::exists(name(7, 2) + ".part-crashed"));
    save(9, job(2), checkpoint_directory::company::alone);
    EXPECT_FALSE(fs::exists(name(7, 1) + ".part-other"));
}

TEST_F(CheckpointDirectoryTest, TheLatestIsFoundByItsLinkToo)
{
    save(100, job(1));
    EXPECT_EQ(checkpoint_directory::latest(place_ + "/latest").directory, name(100, 1));
    EXPECT_EQ(checkpoint_directory::latest(place_ + "/latest/").directory, name(100, 1));
}

TEST_F(CheckpointDirectoryTest, ASlowDiskIsWaitedFor)
{
    const double silence_s = 6; /* the machine may be busy */
    for (const bool queues : {true, false}) {
        const checkpoint_directory at(place_, queues ? 1 : 2, "x", job(1));
        std::thread slow([&] {
            no_uring = !queues;
            EXPECT_NO_THROW(at.write_rank(1, content(6 << 20), [] {
                std::this_thread::sleep_for(std::chrono::milliseconds(700));
            }));
        });
        at.write_rank(0, content(10));
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_NO_THROW(at.commit(2, silence_s));
        slow.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        EXPECT_GT(took.count(), silence_s) << "not slow at all";
    }
}

TEST_F(CheckpointDirectoryTest, ADirectoryThatCannotBeIsSaidAtOnce)
{
    std::ofstream(place_ + "/file") << "x";
    const checkpoint_directory at(place_ + "/file", 1, "x", job(1));
    EXPECT_THROW(at.write_rank(0, content(10)), error);
    try {
        at.commit(1, 1e9);
        FAIL();
    } catch (const error &problem) {
        EXPECT_NE(problem.code(), ETIMEDOUT) << problem.what();
    }
}

TEST_F(CheckpointDirectoryTest, OneJobAtATime)
{
    const std::string directory = place_ + "/saved";
    {
        const directory_lock first(directory, job(1));
        EXPECT_TRUE(first.is_held());
        try {
            directory_lock(directory, job(2));
            FAIL() << "two have it";
        } catch (const error &problem) {
            EXPECT_EQ(problem.code(), EBUSY);
            for (const std::string &wanted :
                 {std::string("job job-1"), digits_of(1), std::to_string(getpid()), directory})
                EXPECT_NE(std::string(problem.what()).find(wanted), std::string::npos)
                    << problem.what();
        }
    }
    EXPECT_TRUE(directory_lock(directory, job(2)).is_held());
    EXPECT_THROW(directory_lock("/proc/none", job(1)), error);
}

TEST_F(CheckpointDirectoryTest, WithoutLocksItSaysSo)
{
    no_locks = true;
    const directory_lock lock(place_, job(1));
    no_locks = false;
    EXPECT_FALSE(lock.is_held());
    EXPECT_EQ(lock.problem(), "No locks available");
}

} // namespace
} // namespace zc::migrate
