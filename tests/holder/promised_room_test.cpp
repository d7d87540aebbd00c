/* SPDX-License-Identifier: BSD-3-Clause */
#include "promised_room.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "error.h"
#include "forked.h"
#include "saturated.h"

namespace zc::holder {
namespace {

constexpr std::uint64_t kMost = ~std::uint64_t{0};

class PromisedRoomTest : public testing::Test {
  protected:
    PromisedRoomTest()
    {
        std::string name = "/tmp/holder-test-XXXXXX";
        folder_ = mkdtemp(name.data());
    }
    ~PromisedRoomTest() override { std::filesystem::remove_all(folder_); }

    promised_room promise(std::uint64_t kib, const host_memory &what) const
    {
        return promised_room::make(
            kib, [&](const promised_memory &) { return what; }, path());
    }
    /** Others may have the lock for longer than it waits, where processors are few. */
    promised_room make_patiently(std::uint64_t kib, const promised_room::decision &decide) const
    {
        for (;;) {
            try {
                return promised_room::make(kib, decide, path());
            } catch (const error &problem) {
                if (problem.code() != EBUSY)
                    throw;
            }
        }
    }
    promised_memory made() const { return promised_room::made(path()); }
    std::string path() const { return folder_ + "/promises"; }

    std::string folder_;
};

/** A host with room for one rank: what the next one of 1000 KiB is offered. */
std::optional<room_offer> offered(const promised_memory &others)
{
    const free_memory host{4000, 4000, 4000};
    const host_memory left = host.without(others);
    if (!why_no_room("h", 1000, host.without({}), left).empty())
        return {};
    return offer_of({1000}, left);
}

TEST_F(PromisedRoomTest, IsNotPromisedTwice)
{
    std::optional<room_offer> first, second;
    const promised_room one = promised_room::make(
        1000,
        [&](const promised_memory &others) {
            first = offered(others);
            return first->together;
        },
        path());
    const promised_room other = promised_room::make(
        1000,
        [&](const promised_memory &others) -> std::optional<host_memory> {
            second = offered(others);
            return {};
        },
        path());
    EXPECT_EQ(first->store, 2000u);
    EXPECT_TRUE(first->lazy);
    EXPECT_FALSE(second);
    EXPECT_GE(one.fd(), 0);
    EXPECT_EQ(other.fd(), -1);
    EXPECT_EQ(made().all, 4000u);
    EXPECT_EQ(made().in_group, 4000u);
    EXPECT_EQ(made().shared, 3000u);
}

TEST_F(PromisedRoomTest, OfAllIsAddedUp)
{
    EXPECT_EQ(made().all, 0u);
    const promised_room one = promise(1, {100, 10});
    {
        const promised_room other = promise(1, {2000, 200});
        EXPECT_EQ(made().all, 2100u);
        EXPECT_EQ(made().shared, 210u);
    }
    EXPECT_EQ(made().all, 100u);
    const promised_room third = promise(1, {5, 5});
    EXPECT_EQ(made().all, 105u);
}

/** The host has less by what has been taken. */
TEST_F(PromisedRoomTest, IsNotCountedWhenItHasBeenTaken)
{
    promised_room one = promise(100'000, {300'000, 200'000});
    one.came(50'000);
    EXPECT_EQ(made().all, 250'000u);
    EXPECT_EQ(made().shared, 150'000u);
    one.came(50'001); /* it would be written for each page */
    EXPECT_EQ(made().all, 250'000u);
    one.came(250'000);
    EXPECT_EQ(made().all, 50'000u);
    EXPECT_EQ(made().shared, 0u);
    one.came(kMost);
    EXPECT_EQ(made().all, 0u);
    /* It is to have its memory where the store was. */
    one.rank_has(0);
    EXPECT_EQ(made().all, 100'000u);
    one.rank_has(60'000);
    EXPECT_EQ(made().all, 40'000u);
    one.rank_has(kMost);
    EXPECT_EQ(made().all, 0u);
    EXPECT_EQ(made().shared, 0u);
}

TEST_F(PromisedRoomTest, OfAProcessThatIsKilledIsFree)
{
    std::optional<promised_room> it;
    forked process([&] { it = promise(1, {700, 70}); });
    EXPECT_EQ(made().all, 700u);
    process.end();
    EXPECT_EQ(made().all, 0u);
    EXPECT_EQ(made().shared, 0u);
}

/** As a listener gives it to a holder, which lives on. */
TEST_F(PromisedRoomTest, IsHandedOver)
{
    std::optional<promised_room> given = promise(5'000, {20'000, 10'000});
    forked process([&] {
        promised_room mine(dup(given->fd()));
        given.reset();
        mine.came(4'000);
        given = std::move(mine);
    });
    given.reset();
    EXPECT_EQ(made().all, 16'000u);
    process.end();
    EXPECT_EQ(made().all, 0u);
}

/** A program that the holder starts would have it as long as it runs. */
TEST_F(PromisedRoomTest, GoesToNoOtherProgram)
{
    const promised_room given = promise(1, {1, 1});
    EXPECT_TRUE(fcntl(given.fd(), F_GETFD) & FD_CLOEXEC);
    const int fd = fcntl(given.fd(), F_DUPFD, 0);
    const promised_room mine(fd);
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST_F(PromisedRoomTest, BelowOtherLimitsIsOfNoGroupOfThisProcess)
{
    const promised_room one = promise(1, {700, 70});
    const std::uint64_t elsewhere = 1;
    ASSERT_EQ(pwrite(one.fd(), &elsewhere, sizeof elsewhere,
                     lseek(one.fd(), 0, SEEK_CUR) + 3 * sizeof elsewhere),
              static_cast<ssize_t>(sizeof elsewhere));
    EXPECT_EQ(made().all, 700u);
    EXPECT_EQ(made().in_group, 0u);
    const free_memory host{4000, 1000, 9000};
    EXPECT_EQ(host.without(made()).available, 1000u);
    EXPECT_EQ(host.without({.all = 3500, .in_group = 0}).available, 500u);
    EXPECT_EQ(host.without({.all = 300, .in_group = 300}).available, 700u);
    EXPECT_EQ(host.without({.all = kMost, .shared = kMost}).available, 0u);
}

TEST_F(PromisedRoomTest, AnythingInItsFileIsANumber)
{
    const promised_room one = promise(1, {kMost, kMost}), other = promise(1, {kMost, 1});
    EXPECT_EQ(made().all, kMost);
    EXPECT_EQ(made().shared, kMost);
    ASSERT_EQ(truncate(path().c_str(), 40), 0);
    EXPECT_EQ(made().all, 0u);
    ASSERT_EQ(truncate(path().c_str(), 0), 0);
    ASSERT_EQ(truncate(path().c_str(), off_t{1} << 40), 0);
    EXPECT_EQ(made().all, 0u);
    const promised_room third = promise(1, {3, 3});
    EXPECT_EQ(made().all, 3u);
}

TEST_F(PromisedRoomTest, SaysWhyItCannotBeMade)
{
    bool asked = false;
    const auto decide = [&](const promised_memory &) -> std::optional<host_memory> {
        asked = true;
        return {};
    };
    const auto fails = [&](const std::string &where) {
        try {
            promised_room::make(1, decide, where);
        } catch (const error &problem) {
            return std::string(problem.what()).find(where) != std::string::npos;
        }
        return false;
    };
    EXPECT_TRUE(fails(folder_));
    EXPECT_TRUE(fails(folder_ + "/not/there"));
    ASSERT_EQ(symlink(path().c_str(), (folder_ + "/link").c_str()), 0);
    EXPECT_TRUE(fails(folder_ + "/link"));
    ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
    EXPECT_TRUE(fails(folder_ + "/fifo"));
    if (geteuid() == 0) {
        promise(1, {1, 1});
        ASSERT_EQ(chown(path().c_str(), 54321, 54321), 0);
        EXPECT_TRUE(fails(path()));
    }
    EXPECT_FALSE(asked);
}

TEST_F(PromisedRoomTest, WaitsForNobodyForLong)
{
    const descriptor file{open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    struct flock all {};
    all.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(file.fd, F_OFD_SETLK, &all), 0);
    EXPECT_THROW(promise(1, {1, 1}), error);
    all.l_start = 1; /* every record */
    struct flock first {};
    first.l_type = F_UNLCK;
    first.l_len = 1;
    ASSERT_EQ(fcntl(file.fd, F_OFD_SETLK, &first), 0);
    EXPECT_EQ(made().all, 0u);
    EXPECT_LT(promise(1, {1, 1}).fd(), 0) << "there is a record";
}

/** It would be written to. */
TEST_F(PromisedRoomTest, IsNotInAFileOfAnotherName)
{
    const std::string other = path() + "-other";
    std::ofstream(other) << "precious";
    std::filesystem::remove(path());
    std::filesystem::create_hard_link(other, path());
    EXPECT_THROW(promise(1, {1, 1}), error);
    EXPECT_EQ(std::filesystem::file_size(other), 8u);
    std::filesystem::remove(other);
}

TEST_F(PromisedRoomTest, SomeAreManyAtOnce)
{
    std::vector<promised_room> all;
    for (unsigned i = 0; i < promised_room::kMost; i++)
        all.push_back(promise(1, {1, 0}));
    EXPECT_EQ(made().all, promised_room::kMost);
    /* One more is offered what these have left, and nobody knows of it. */
    promised_memory seen;
    const promised_room more = promised_room::make(
        1,
        [&](const promised_memory &others) -> std::optional<host_memory> {
            seen = others;
            return host_memory{1, 1};
        },
        path());
    EXPECT_EQ(seen.all, promised_room::kMost);
    EXPECT_LT(more.fd(), 0);
    EXPECT_EQ(made().all, promised_room::kMost);
    all.erase(all.begin() + 7);
    all.push_back(promise(1, {3, 0}));
    EXPECT_EQ(made().all, promised_room::kMost + 2u);
}

/** Each would find room if it looked while others do. */
TEST_F(PromisedRoomTest, AProcessAloneDecides)
{
    constexpr int kProcesses = 8;
    int decided[2], over[2]; /* each tells what it was promised, and keeps it until all have */
    ASSERT_EQ(pipe(decided), 0);
    ASSERT_EQ(pipe(over), 0);
    const auto tell = [&](pid_t &pid) {
        pid = fork();
        if (pid != 0)
            return;
        close(over[1]);
        const promised_room mine =
            make_patiently(1000, [](const promised_memory &others) -> std::optional<host_memory> {
                usleep(10'000);
                if (others.all >= 3000)
                    return {};
                return host_memory{1000, 1000};
            });
        char word = mine.fd() >= 0 ? 1 : 0;
        if (write(decided[1], &word, 1) != 1)
            _exit(1);
        _exit(read(over[0], &word, 1) != 0); /* its end */
    };
    pid_t pids[kProcesses];
    for (pid_t &pid : pids)
        tell(pid);
    close(decided[1]);
    int promised = 0, told = 0;
    for (char word = 0; told < kProcesses && read(decided[0], &word, 1) == 1; told++)
        promised += word;
    close(over[1]);
    for (const pid_t pid : pids) {
        int status = -1;
        waitpid(pid, &status, 0);
        EXPECT_EQ(status, 0);
    }
    close(decided[0]);
    close(over[0]);
    EXPECT_EQ(told, kProcesses);
    EXPECT_EQ(promised, 3);
}

TEST(SaturatedTest, NumbersEndWhereTheyEnd)
{
    EXPECT_EQ(plus(kMost - 1, 1), kMost);
    EXPECT_EQ(plus(kMost, kMost), kMost);
    EXPECT_EQ(twice(std::uint64_t{1} << 63), kMost);
    EXPECT_EQ(without(1, 2), 0u);
    EXPECT_EQ(without(3, 2), 1u);
}

} // namespace
} // namespace zc::holder
