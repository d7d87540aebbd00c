/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_filler.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <memory>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "error.h"
#include "memory_directory.h"

namespace zc::holder {
namespace {

constexpr std::size_t kPage = 4096, kPages = 600;
constexpr std::uint32_t kRestored = 0x52535446;

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
        connection_ = descriptor{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_un place{AF_UNIX, {}};
        (directory_.path() + "/lazy-pages.socket").copy(place.sun_path, sizeof place.sun_path - 1);
        filler_ = std::make_unique<page_filler>(directory_.path());
        ASSERT_EQ(connect(connection_.fd, reinterpret_cast<sockaddr *>(&place), sizeof place), 0);
        filler_->accept();
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
    std::vector<stored_pages> pages(std::size_t begin, std::size_t end) const
    {
        std::vector<stored_pages> all;
        for (std::size_t i = begin; i < end; i++)
            all.push_back({at(i), kPage, (kPages - 1 - i) * kPage});
        return all;
    }

    void send_descriptor()
    {
        const std::int32_t pid = getpid();
        ASSERT_EQ(send(connection_.fd, &pid, sizeof pid, 0), static_cast<ssize_t>(sizeof pid));
        char byte = 0;
        iovec one{&byte, 1};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &one;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr *const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &faults_.fd, sizeof(int));
        ASSERT_EQ(sendmsg(connection_.fd, &message, 0), 1);
    }
    void begin(const std::vector<stored_pages> &memory)
    {
        send_descriptor();
        filler_->start(store_, memory);
        faults_ = descriptor{}; /* as the rank, which has none */
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

TEST_F(PageFillerTest, FailsIfCriuDoes)
{
    begin(pages(0, kPages));
    connection_ = descriptor{};
    EXPECT_FALSE(wait_for_result());
}

TEST_F(PageFillerTest, FailsIfTheStoreIsTooShort)
{
    begin({{at(0), kPage, kPages * kPage}});
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

} // namespace
} // namespace zc::holder
