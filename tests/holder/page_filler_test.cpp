/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_filler.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/userfaultfd.h>
#include <memory>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "error.h"
#include "forked.h"
#include "memory_directory.h"
#include "process_tree.h"

namespace zc::holder {
namespace {

constexpr std::size_t kPages = 600;
constexpr std::uint32_t kRestored = 0x52535446;

/** As CRIU, which restores from @directory. */
descriptor connected(const std::string &directory)
{
    descriptor made{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un place{AF_UNIX, {}};
    (directory + "/lazy-pages.socket").copy(place.sun_path, sizeof place.sun_path - 1);
    if (connect(made.fd, reinterpret_cast<sockaddr *>(&place), sizeof place) != 0)
        made = descriptor{};
    return made;
}

bool send_faults(int connection, int faults)
{
    const std::int32_t pid = getpid();
    char byte = 0;
    iovec content{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof faults)> control{};
    msghdr message{nullptr, 0, &content, 1, control.data(), control.size(), 0};
    cmsghdr *const passed = CMSG_FIRSTHDR(&message);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(sizeof faults);
    std::memcpy(CMSG_DATA(passed), &faults, sizeof faults);
    return send(connection, &pid, sizeof pid, 0) == sizeof pid &&
           sendmsg(connection, &message, 0) == 1;
}

page_places places_of(const stored_pages &run)
{
    page_places all;
    all.set(run);
    return all;
}

/** This process is CRIU, and the rank: it has memory of which no page is there. */
class PageFillerTest : public ::testing::Test {
  protected:
    void SetUp() override
    {
        const int fd = static_cast<int>(
            syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
        if (fd < 0)
            GTEST_SKIP() << "this kernel has no userfaultfd";
        faults_ = descriptor{fd};
        uffdio_api api{
            UFFD_API,
            UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE, 0};
        ASSERT_EQ(ioctl(fd, UFFDIO_API, &api), 0);
        memory_ = static_cast<char *>(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(memory_, MAP_FAILED);
        uffdio_register all{{at(0), kPages * kPage}, UFFDIO_REGISTER_MODE_MISSING, 0};
        ASSERT_EQ(ioctl(fd, UFFDIO_REGISTER, &all), 0);
        store_ = descriptor{open(directory_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
        for (std::size_t i = 0; i < kPages; i++) {
            const std::string page(kPage, content(kPages - 1 - i));
            ASSERT_EQ(write(store_.fd, page.data(), kPage), static_cast<ssize_t>(kPage));
        }
        filler_ = std::make_unique<page_filler>(directory_.path());
        connection_ = connected(directory_.path());
        ASSERT_GE(connection_.fd, 0);
        filler_->accept();
    }

    void TearDown() override
    {
        filler_.reset();
        while (waitpid(-1, nullptr, 0) > 0)
            continue;
    }

    static char content(std::size_t number) { return static_cast<char>('A' + number % 50); }
    std::uint64_t at(std::size_t page) const
    {
        return reinterpret_cast<std::uint64_t>(memory_) + page * kPage;
    }
    char read(std::size_t page) const
    {
        return *static_cast<volatile char *>(memory_ + page * kPage);
    }
    /** Pages from @begin on, of which the store has each elsewhere. */
    page_places pages(std::size_t begin, std::size_t end) const
    {
        page_places all;
        for (std::size_t i = begin; i < end; i++)
            all.set(at(i), (kPages - 1 - i) * kPage);
        return all;
    }

    void begin(const page_places &memory)
    {
        ASSERT_TRUE(send_faults(connection_.fd, faults_.fd));
        filler_->start(store_, memory);
        faults_ = descriptor{}; /* as the rank, which has none */
    }
    void give_zeros(std::size_t page) const
    {
        uffdio_zeropage zeros{{at(page), kPage}, 0, 0};
        ASSERT_EQ(ioctl(faults_.fd, UFFDIO_ZEROPAGE, &zeros), 0);
    }
    /** The filler may have ended before. */
    void say_restored() const { send(connection_.fd, &kRestored, sizeof kRestored, MSG_NOSIGNAL); }
    bool wait_for_result()
    {
        std::optional<bool> result;
        while (!(result = filler_->result()))
            usleep(1000);
        return *result;
    }
    void expect_all_is_given()
    {
        say_restored();
        EXPECT_TRUE(wait_for_result());
        filler_.reset();
    }

    memory_directory directory_;
    descriptor faults_, store_, connection_;
    char *memory_ = nullptr;
    std::unique_ptr<page_filler> filler_;
};

TEST_F(PageFillerTest, GivesWhatIsTouchedBeforeAllElseIsThere)
{
    begin(pages(0, kPages));
    for (const std::size_t page : {std::size_t{7}, std::size_t{599}, std::size_t{0}})
        EXPECT_EQ(read(page), content(page));
}

TEST_F(PageFillerTest, GivesAllThatIsThereAndZerosElsewhere)
{
    begin(pages(10, kPages - 10));
    EXPECT_EQ(read(5), 0);
    expect_all_is_given();
    for (std::size_t i = 0; i < kPages; i++)
        ASSERT_EQ(read(i), i < 10 || i >= kPages - 10 ? 0 : content(i)) << i;
}

TEST_F(PageFillerTest, KeepsWhatTheRankHasWrittenMeanwhile)
{
    begin(pages(0, kPages));
    memory_[3 * kPage] = '!';
    memory_[500 * kPage] = '?';
    expect_all_is_given();
    EXPECT_EQ(read(3), '!');
    EXPECT_EQ(memory_[3 * kPage + 1], content(3));
    EXPECT_EQ(read(500), '?');
}

/** mremap(2), munmap(2) and madvise(2) return when the filler has heard of it. */
TEST_F(PageFillerTest, FollowsWhatTheRankDoesWithItsMemory)
{
    begin(pages(0, kPages));
    auto *const elsewhere = static_cast<char *>(
        mmap(nullptr, 10 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mremap(memory_ + 20 * kPage, 10 * kPage, 10 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                     elsewhere),
              elsewhere);
    ASSERT_EQ(madvise(memory_ + 50 * kPage, 10 * kPage, MADV_DONTNEED), 0);
    ASSERT_EQ(munmap(memory_ + 100 * kPage, 10 * kPage), 0);
    expect_all_is_given();
    for (std::size_t i = 0; i < 10; i++) {
        EXPECT_EQ(*static_cast<volatile char *>(elsewhere + i * kPage), content(20 + i));
        EXPECT_EQ(read(50 + i), 0);
    }
    EXPECT_EQ(read(19), content(19));
    EXPECT_EQ(read(110), content(110));
}

TEST_F(PageFillerTest, IsNotWaitedForWhenItHasEnded)
{
    begin(pages(0, kPages));
    kill(filler_->pid(), SIGKILL);
    const auto before = std::chrono::steady_clock::now();
    EXPECT_FALSE(filler_->is_restored());
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
}

/** Where process 1 takes no note of others' children it would be left. */
TEST_F(PageFillerTest, WhatSharesItsDescriptorsIsAChildOfThisProcess)
{
    begin(pages(0, kPages));
    expect_all_is_given();
    int status = -1;
    ASSERT_GT(waitpid(-1, &status, 0), 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(waitpid(-1, nullptr, 0), -1);
}

TEST_F(PageFillerTest, FailsIfCriuDoes)
{
    begin(pages(0, kPages));
    connection_ = descriptor{};
    EXPECT_FALSE(wait_for_result());
}

TEST_F(PageFillerTest, SaysThatCriuHasRestoredAllElse)
{
    begin(pages(0, kPages));
    say_restored();
    EXPECT_TRUE(filler_->is_restored());
}

TEST_F(PageFillerTest, FailsIfSomethingElseGivesAPageToARankThatIsStopped)
{
    give_zeros(3);
    begin(pages(0, kPages));
    say_restored();
    EXPECT_FALSE(wait_for_result());
}

TEST_F(PageFillerTest, ARankThatRunsMayGiveItselfAPage)
{
    give_zeros(3);
    begin(pages(0, kPages));
    filler_->rank_runs();
    expect_all_is_given();
    EXPECT_EQ(read(3), 0);
}

TEST_F(PageFillerTest, FailsIfTheStoreIsTooShort)
{
    begin(places_of({at(0), kPage, kPages * kPage}));
    say_restored();
    EXPECT_FALSE(wait_for_result());
}

/** The rank has to be ended: the kernel would give it zeros without a word. */
TEST_F(PageFillerTest, WhatItWasNotGivenIsWaitedForIfItIsKilled)
{
    begin(pages(0, kPages));
    EXPECT_EQ(read(1), content(1));
    kill(filler_->pid(), SIGKILL);
    EXPECT_FALSE(wait_for_result());
    std::atomic<int> got{-1};
    std::thread rank([&] { got = read(2); });
    usleep(200000);
    EXPECT_EQ(got, -1);
    filler_.reset();
    rank.join();
    EXPECT_EQ(got, 0);
}

TEST_F(PageFillerTest, RefusesWhatIsNoUserfaultfd)
{
    const std::int32_t pid = 7;
    ASSERT_EQ(send(connection_.fd, &pid, sizeof pid, 0), static_cast<ssize_t>(sizeof pid));
    ASSERT_EQ(send(connection_.fd, "x", 1, 0), 1);
    EXPECT_THROW(filler_->start(store_, {}), error);
}

/** The rank is a process of its own here, as it is elsewhere, so it can fork. */
class PageFillerRankTest : public ::testing::Test {
  protected:
    static constexpr const char *kCannot =
        "this kernel does not let a userfaultfd follow a process that forks";
    static constexpr std::size_t kMore = 2048; /* pages after the others, of which none is stored */

    /** @does: in the rank, of which none of @count pages is there. Its result is the rank's.
     * Nothing is returned if the kernel has not what is needed. */
    std::unique_ptr<page_filler> begin(std::size_t count, const std::function<bool()> &does)
    {
        pages_ = count;
        memory_ = pages_of_memory(count + kMore);
        const memory_directory directory;
        auto filler = std::make_unique<page_filler>(directory.path());
        rank_ = fork();
        if (rank_ == 0)
            _exit(be_rank(directory.path(), does));
        pollfd connects{filler->fd(), POLLIN, 0};
        while (poll(&connects, 1, 10) == 0 && waitpid(rank_, nullptr, WNOHANG) == 0)
            continue;
        if (!(connects.revents & POLLIN))
            return {};
        filler->accept();
        filler->start(store(directory.path()), places_of({at(0), count * kPage, 0}));
        return filler;
    }
    static bool wait_for_result(page_filler &of)
    {
        std::optional<bool> result;
        while (!(result = of.result()))
            usleep(1000);
        return *result;
    }

    /** @does: whether the rank, which CRIU has restored, finds what it has to. */
    void expect_well(std::size_t count, const std::function<bool()> &does)
    {
        std::unique_ptr<page_filler> filler = begin(count, does);
        if (!filler)
            GTEST_SKIP() << kCannot;
        EXPECT_TRUE(filler->is_restored());
        filler->rank_runs();
        EXPECT_TRUE(wait_for_result(*filler));
        filler.reset();
        int status = -1;
        EXPECT_EQ(waitpid(rank_, &status, 0), rank_);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }

    char *page(std::size_t number) const { return memory_ + number * kPage; }
    bool is_right(std::size_t number) const { return is_right(page(number), number); }
    static bool is_right(const char *there, std::size_t number)
    {
        return std::memcmp(there, page_of(number).data(), kPage) == 0;
    }
    bool are_right(std::size_t from, std::size_t to) const
    {
        for (std::size_t i = from; i < to; i++) {
            if (!is_right(i))
                return false;
        }
        return true;
    }
    bool are_zero(std::size_t from, std::size_t to) const
    {
        return std::all_of(page(from), page(to), [](char byte) { return byte == 0; });
    }
    /** Whether @does returns true in a child. */
    static bool forks(const std::function<bool()> &does)
    {
        const pid_t child = fork();
        if (child == 0)
            _exit(does() ? 0 : 1);
        int status = -1;
        return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

    std::size_t pages_ = 0;
    char *memory_ = nullptr;
    pid_t rank_ = -1;
    bool is_restored_ = true; /* CRIU says so */

  private:
    std::uint64_t at(std::size_t number) const
    {
        return reinterpret_cast<std::uint64_t>(page(number));
    }
    descriptor store(const std::string &directory) const
    {
        descriptor made{open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
        for (std::size_t i = 0; i < pages_; i++) {
            if (write(made.fd, page_of(i).data(), kPage) != static_cast<ssize_t>(kPage))
                throw error(EIO, directory);
        }
        return made;
    }
    /** Returns the exit status. */
    int be_rank(const std::string &directory, const std::function<bool()> &does) const
    {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        descriptor faults{static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK))};
        uffdio_api api{UFFD_API,
                       UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_UNMAP |
                           UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_FORK,
                       0};
        uffdio_register all{{at(0), (pages_ + kMore) * kPage}, UFFDIO_REGISTER_MODE_MISSING, 0};
        if (faults.fd < 0 || ioctl(faults.fd, UFFDIO_API, &api) != 0 ||
            ioctl(faults.fd, UFFDIO_REGISTER, &all) != 0)
            return 2;
        const descriptor connection = connected(directory);
        if (connection.fd < 0 || !send_faults(connection.fd, faults.fd))
            return 2;
        faults = descriptor{};
        if (is_restored_)
            send(connection.fd, &kRestored, sizeof kRestored, MSG_NOSIGNAL);
        return does() ? 0 : 1;
    }
};

/** As long as there is an event that has not been heard the kernel takes no page. */
TEST_F(PageFillerRankTest, HearsOfMemoryThatIsGivenBackWhileMuchIsTouched)
{
    constexpr std::size_t kThreads = 64, kTouched = 40000;
    expect_well(kTouched, [this] {
        std::atomic<bool> stop{false}, right{true};
        std::thread gives_back([&] {
            for (std::size_t i = 0; !stop; i = (i + 1) % kMore) {
                madvise(page(kTouched + i), kPage, MADV_DONTNEED);
                usleep(1000);
            }
        });
        std::vector<std::thread> touch;
        for (std::size_t first = 0; first < kThreads; first++)
            touch.emplace_back([&, first] {
                for (std::size_t i = first; i < kTouched; i += kThreads)
                    right = is_right(kTouched - 1 - i) && right;
            });
        for (std::thread &each : touch)
            each.join();
        stop = true;
        gives_back.join();
        return right.load();
    });
}

TEST_F(PageFillerRankTest, FollowsAChild)
{
    expect_well(kPages, [this] {
        return forks([this] {
                   return forks([this] { return are_right(0, kPages); }) && are_right(0, kPages);
               }) &&
               are_right(0, kPages);
    });
}

TEST_F(PageFillerRankTest, WipesOfAChildWhatTheRankWantsWiped)
{
    expect_well(kPages, [this] {
        return madvise(page(100), 50 * kPage, MADV_WIPEONFORK) == 0 && forks([this] {
                   return are_right(0, 100) && are_zero(100, 150) && are_right(150, kPages);
               }) &&
               are_right(0, kPages);
    });
}

TEST_F(PageFillerRankTest, FollowsARankThatFreesAndMovesAndForks)
{
    constexpr std::size_t kMany = 20000, kPart = 100, kEach = 1000;
    expect_well(kMany, [this] {
        char *const elsewhere = pages_of_memory(kMany);
        bool right = true;
        for (std::size_t first = 0; first < kMany && right; first += kEach) {
            char *const there = elsewhere + first * kPage;
            right = mremap(page(first), kPart * kPage, kPart * kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                           there) == there &&
                    madvise(page(first + kPart), kPart * kPage, MADV_DONTNEED) == 0 &&
                    munmap(page(first + 2 * kPart), kPart * kPage) == 0;
            const auto is_as_it_is_to_be = [&] {
                for (std::size_t i = 0; i < kPart; i++) {
                    if (!is_right(there + i * kPage, first + i))
                        return false;
                }
                return are_zero(first + kPart, first + 2 * kPart) &&
                       are_right(first + 3 * kPart, first + kEach);
            };
            if (first % (5 * kEach) == 0)
                right = right && forks(is_as_it_is_to_be);
            right = right && is_as_it_is_to_be();
        }
        return right;
    });
}

/** Until the process @pid, which this one has begun to trace, has heard that a process has forked:
 * it is stopped where the kernel has made a descriptor for it, and has done nothing with that. */
void stop_when_it_has_heard_of_a_child(pid_t pid)
{
    std::uint64_t number = 0, buffer = 0;
    for (int status = 0; waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
         ptrace(PTRACE_SYSCALL, pid, 0, 0)) {
        __ptrace_syscall_info now{};
        ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof now, &now);
        if (now.op == PTRACE_SYSCALL_INFO_ENTRY) {
            number = now.entry.nr;
            buffer = now.entry.args[1];
        } else if (now.op == PTRACE_SYSCALL_INFO_EXIT && number == SYS_read &&
                   now.exit.rval == static_cast<std::int64_t>(sizeof(uffd_msg)) &&
                   (ptrace(PTRACE_PEEKDATA, pid, buffer, 0) & 0xff) == UFFD_EVENT_FORK) {
            return;
        }
    }
    FAIL() << "the filler has ended";
}

class PageFillerChildTest : public PageFillerRankTest {
  protected:
    enum { NOTHING, BEGUN, FORKED, KILLED, READS, RIGHT, WRONG };

    /** The rank forks when it is @now to have BEGUN, and its child reads when that is KILLED. */
    void SetUp() override
    {
        is_restored_ = false; /* so that nothing is given but what is touched */
        filler_ = begin(kPages, [this] {
            wait_for(BEGUN);
            const pid_t child = fork();
            if (child == 0) {
                wait_for(KILLED);
                *now_ = READS;
                *now_ = is_right(7) ? RIGHT : WRONG;
                _exit(0);
            }
            *now_ = child > 0 ? FORKED : WRONG;
            return waitpid(child, nullptr, 0) == child;
        });
        if (!filler_)
            GTEST_SKIP() << kCannot;
    }
    void wait_for(int what) const
    {
        while (*now_ != what)
            usleep(1000);
    }
    /** As the rank does: it is ended before this object is, as the rank is. */
    void expect_the_child_waits()
    {
        kill(filler_->pid(), SIGKILL);
        EXPECT_FALSE(wait_for_result(*filler_));
        wait_for(FORKED);
        *now_ = KILLED;
        while (*now_ == KILLED)
            usleep(1000);
        usleep(200000);
        EXPECT_EQ(*now_, READS);
        end_tree(rank_);
        filler_.reset();
        waitpid(rank_, nullptr, 0);
        EXPECT_EQ(*now_, READS);
    }

    std::atomic<int> *const now_ =
        reinterpret_cast<std::atomic<int> *>(pages_of_memory(1, MAP_SHARED));
    std::unique_ptr<page_filler> filler_;
};

TEST_F(PageFillerChildTest, WaitsForWhatItWasNotGivenIfTheFillerIsKilled)
{
    *now_ = BEGUN;
    wait_for(FORKED);
    expect_the_child_waits();
}

TEST_F(PageFillerChildTest, WaitsIfTheFillerIsKilledWhenItHasJustHeardOfTheChild)
{
    ASSERT_EQ(ptrace(PTRACE_SEIZE, filler_->pid(), 0, PTRACE_O_TRACESYSGOOD), 0);
    ASSERT_EQ(ptrace(PTRACE_INTERRUPT, filler_->pid(), 0, 0), 0);
    *now_ = BEGUN;
    ASSERT_NO_FATAL_FAILURE(stop_when_it_has_heard_of_a_child(filler_->pid()));
    expect_the_child_waits();
}

} // namespace
} // namespace zc::holder
