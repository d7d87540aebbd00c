/* SPDX-License-Identifier: BSD-3-Clause */
#include "unchanged_pages.h"

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include <linux/aio_abi.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "direct_writes.h"
#include "error.h"
#include "forked.h"
#include "stopped_process.h"

namespace zc::holder {
namespace {

/** Not before Linux 6.7. */
std::string kernel_cannot()
{
    try {
        write_tracker::check_kernel();
    } catch (const std::exception &problem) {
        return problem.what();
    }
    return {};
}

/** A process with @count pages, which does steps. */
class UnchangedPagesTest : public ::testing::Test {
  protected:
    void SetUp() override
    {
        const std::string cannot = kernel_cannot();
        if (!cannot.empty())
            GTEST_SKIP() << cannot;
    }
    void begin(std::size_t count, const std::function<void(int step)> &step)
    {
        at_ = pages_of_memory(count);
        all_ = {{address(0), address(count)}};
        other_ = std::make_unique<forked>(
            [this, count] {
                write_pages(at_, 0, count);
                steps_.served = own_userfault();
            },
            [this, step] { steps_.steps.serve(step); });
        pages_ = std::make_unique<unchanged_pages>(other_->pid(), other_->take(steps_.served));
    }
    std::uint64_t address(std::size_t page) const
    {
        return reinterpret_cast<std::uint64_t>(at_) + page * kPage;
    }
    /** Again, if the process or this one had no processor in time. */
    void protect()
    {
        const auto is_late = [](const std::string &why) {
            return why.find("not all of its threads stop") != std::string::npos ||
                   why.find("too much memory for") != std::string::npos;
        };
        std::string why = pages_->protect(all_);
        for (int times = 1; times < 300 && is_late(why); times++)
            why = pages_->protect(all_);
        EXPECT_EQ(why, "");
    }
    void note_all()
    {
        for (std::uint64_t at = all_[0].begin; at < all_[0].end; at += kPage)
            pages_->note(at);
    }
    void step(int number) { steps_.steps.ask(number); }
    /** Numbers of those that are unchanged. */
    std::vector<std::uint64_t> unchanged() const
    {
        std::vector<std::uint64_t> found;
        std::uint64_t at = all_[0].begin;
        const auto all_until = [&](std::uint64_t end) {
            for (; at < end; at += kPage)
                found.push_back((at - all_[0].begin) / kPage);
        };
        for (const page_range &each : pages_->changed(all_[0])) {
            EXPECT_LT(each.begin, each.end);
            all_until(each.begin);
            at = each.end;
        }
        all_until(all_[0].end);
        return found;
    }

    struct shared {
        stepped steps;
        std::atomic<int> served;
    };
    shared &steps_ = *new (pages_of_memory(1, MAP_SHARED)) shared;
    char *at_ = nullptr;
    std::vector<page_range> all_;
    std::unique_ptr<forked> other_;
    std::unique_ptr<unchanged_pages> pages_;
};

TEST_F(UnchangedPagesTest, ArePagesThatWereProtectedAndReadAndNotWritten)
{
    begin(4, [this](int) { at_[2 * kPage + 17] = 1; });
    note_all();
    EXPECT_TRUE(unchanged().empty()) << "nothing is protected";
    protect();
    EXPECT_TRUE(unchanged().empty()) << "what was known of them is older";
    note_all();
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 1, 2, 3}));
    step(1);
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 1, 3}));
    protect();
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 1, 3})) << "it is to be read again";
    pages_->note(address(2));
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST_F(UnchangedPagesTest, AreNotThoseThatTheKernelWritesForIt)
{
    begin(8, [this](int) {
        const descriptor zero{open("/dev/zero", O_RDONLY)};
        EXPECT_EQ(read(zero.fd, at_ + kPage + 100, 2 * kPage), static_cast<ssize_t>(2 * kPage));
    });
    protect();
    note_all();
    step(1);
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 4, 5, 6, 7}));
}

/** As libzc rebinds them. */
TEST_F(UnchangedPagesTest, AreNotThoseThatOthersHaveTakenThePlaceOf)
{
    begin(8, [this](int number) {
        if (number == 1) { /* two of these, over another one */
            mremap(at_ + kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                   at_ + 6 * kPage);
        } else if (number == 2) { /* and away, and back */
            char *const away = pages_of_memory(1);
            mremap(at_ + 3 * kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, away);
            mremap(away, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, at_ + 3 * kPage);
        } else {
            munmap(at_ + 4 * kPage, kPage);
            mmap(at_ + 4 * kPage, kPage, PROT_READ | PROT_WRITE,
                 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(at_ + 5 * kPage, kPage, MADV_DONTNEED);
            at_[4 * kPage] = at_[5 * kPage] = 1;
        }
    });
    protect();
    note_all();
    step(1);
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 2, 3, 4, 5, 7}));
    step(2);
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 2, 4, 5, 7}));
    step(3);
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 2, 7}));
    protect(); /* the new ones, too */
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{0, 2, 7})) << "they are to be read again";
}

/** More ranges than the kernel tells at once. */
TEST_F(UnchangedPagesTest, AreToldOfManyRanges)
{
    constexpr std::size_t kMany = 20000;
    begin(kMany, [this](int) {
        for (std::size_t i = 0; i < kMany; i += 2)
            at_[i * kPage] = 1;
    });
    protect();
    note_all();
    step(1);
    for (int times = 0; times < 2; times++) {
        const std::vector<std::uint64_t> found = unchanged();
        ASSERT_EQ(found.size(), kMany / 2);
        for (std::size_t i = 0; i < found.size(); i++)
            ASSERT_EQ(found[i], 2 * i + 1);
        protect();
    }
}

TEST_F(UnchangedPagesTest, AreNoMoreThanTheyWereWhereSomethingMayWriteBesides)
{
    begin(4, [this](int number) {
        if (number == 1) {
            io_uring_params how{};
            EXPECT_GE(syscall(SYS_io_uring_setup, 4, &how), 0);
            at_[0] = 1;
        }
    });
    protect();
    note_all();
    step(1);
    EXPECT_NE(pages_->protect(all_).find("io_uring"), std::string::npos);
    note_all();
    EXPECT_EQ(unchanged(), (std::vector<std::uint64_t>{1, 2, 3}));
}

/** What the kernel tells is that one's, which may begin anew at any time. */
TEST_F(UnchangedPagesTest, AreNoneWhereSomethingElseTracksThem)
{
    begin(4, [this](int number) {
        if (number == 1)
            steps_.served = own_userfault();
        else
            at_[0] = 1;
    });
    step(1);
    write_tracker others(other_->pid(), other_->take(steps_.served));
    const auto protect_theirs = [&] {
        others.follow(all_);
        others.protect([](const page_range &) {}, write_tracker::time_point::max());
    };
    protect_theirs();
    protect();
    note_all();
    step(2);
    protect_theirs();
    EXPECT_TRUE(unchanged().empty());
}

/** As where it was read before the rank could be stopped. */
TEST_F(UnchangedPagesTest, AreNotThoseThatWereReadAndNotProtected)
{
    begin(4, [this](int) {
        io_uring_params how{};
        steps_.served = static_cast<int>(syscall(SYS_io_uring_setup, 4, &how));
    });
    step(1);
    EXPECT_NE(pages_->protect(all_), "");
    note_all();
    EXPECT_TRUE(unchanged().empty());
}

TEST_F(UnchangedPagesTest, NoneAreFoundWhereTheProcessHasEnded)
{
    begin(4, {});
    protect();
    note_all();
    other_->end();
    EXPECT_NE(pages_->protect(all_), "");
    EXPECT_TRUE(unchanged().empty());
}

/** A process that writes its memory in every way at random, while it is protected and read; then it
 * is stopped, and what is said to be unchanged has to be what was read. */
TEST_F(UnchangedPagesTest, AreWhatTheyWereWhateverTheProcessDoes)
{
    constexpr std::size_t kMany = 64;
    const std::string path = ::testing::TempDir() + "/unchanged-" + std::to_string(getpid());
    descriptor file{open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600)};
    const bool direct = file.fd >= 0;
    if (direct) {
        unlink(path.c_str());
        char *const content = pages_of_memory(1);
        for (std::size_t i = 0; i < kMany; i++) {
            write_pages(content, 1000000 + i, 1);
            ASSERT_EQ(pwrite(file.fd, content, kPage, static_cast<off_t>(i * kPage)),
                      static_cast<ssize_t>(kPage));
        }
    }
    begin(kMany, [&](int) {
        const auto some_page = [](std::mt19937 &drawn) {
            return std::uniform_int_distribution<std::size_t>(0, kMany - 9)(drawn);
        };
        std::thread([&] { /* reads of a device that go on for a while */
                          for (std::mt19937 drawn(7); direct;)
                              EXPECT_GE(pread(file.fd, at_ + some_page(drawn) * kPage, 8 * kPage,
                                              static_cast<off_t>(some_page(drawn) * kPage)),
                                        0);
        })
            .detach();
        std::thread([&] {
            char *const spare = pages_of_memory(8);
            std::mt19937 drawn(8);
            for (std::uint64_t number = 2000000;; number += 8) {
                char *const to = at_ + some_page(drawn) * kPage;
                switch (drawn() % 4) {
                case 0:
                    write_pages(to, number, 8);
                    break;
                case 1: /* exchanged, as libzc does it */
                    write_pages(spare, number, 8);
                    mremap(spare, 8 * kPage, 8 * kPage,
                           MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
                    break;
                case 2:
                    madvise(to, kPage, MADV_DONTNEED);
                    break;
                default:
                    usleep(500);
                }
            }
        }).detach();
    });
    step(1);
    std::size_t found = 0;
    for (int times = 0; times < 1000; times++) {
        if (times % 2 == 0)
            protect();
        std::map<std::uint64_t, std::string> read;
        for (std::uint64_t at = all_[0].begin; at < all_[0].end; at += kPage) {
            std::string page;
            try {
                read_pages(other_->pid(), {{at, at + kPage}}, page);
            } catch (const error &) {
                continue; /* it is nowhere for the moment */
            }
            read[at] = page;
            pages_->note(at);
        }
        usleep(times % 4 * 100);
        while_stopped(
            other_->pid(),
            [&] {
                for (const std::uint64_t number : unchanged()) {
                    const std::uint64_t at = address(number);
                    std::string page;
                    read_pages(other_->pid(), {{at, at + kPage}}, page);
                    ASSERT_TRUE(page == read[at]) << times << ", page " << number;
                    found++;
                }
            },
            kPatience);
    }
    EXPECT_GT(found, 0u);
}

/** What is mapped needs no descriptor. */
TEST(DirectWritesTest, NamesMappingsOfWhatIsClosed)
{
    forked frames([] {
        const int fd = socket(AF_PACKET, SOCK_RAW, 0);
        const tpacket_req ring{kPage, 1, kPage / 2, 2};
        if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0 ||
            mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
            return; /* only root can */
        close(fd);
    });
    std::ifstream maps("/proc/" + std::to_string(frames.pid()) + "/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    if (text.find("socket:") == std::string::npos)
        GTEST_SKIP() << "no socket can be mapped";
    EXPECT_NE(direct_writer(frames.pid()).find("a mapping of socket:"), std::string::npos);
}

/** It need not be a child. */
TEST(DirectWritesTest, NamesAnotherProcessWithTheSameMemory)
{
    std::atomic<pid_t> &sharer = *new (pages_of_memory(1, MAP_SHARED)) std::atomic<pid_t>;
    forked one([&] {
        static std::array<char, 64 << 10> stack;
        sharer = clone(
            [](void *) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                    pause();
                return 0;
            },
            stack.data() + stack.size(), CLONE_VM | CLONE_PARENT | SIGCHLD, nullptr);
    });
    EXPECT_EQ(direct_writer(one.pid()),
              "memory that is that of process " + std::to_string(sharer) + ", too");
    kill(sharer, SIGKILL);
    waitpid(sharer, nullptr, 0);
    EXPECT_EQ(direct_writer(one.pid()), "");
}

TEST(DirectWritesTest, NamesWhatMayWriteBesides)
{
    forked nothing([] {});
    EXPECT_EQ(direct_writer(nothing.pid()), "");
    forked ring([] {
        io_uring_params how{};
        syscall(SYS_io_uring_setup, 4, &how);
    });
    EXPECT_NE(direct_writer(ring.pid()).find("io_uring"), std::string::npos);
    forked unnamed([] { /* as after io_uring_close_ring_fd(3) */
                        io_uring_params how{};
                        const int fd = static_cast<int>(syscall(SYS_io_uring_setup, 4, &how));
                        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                             IORING_OFF_SQ_RING);
                        close(fd);
    });
    EXPECT_EQ(direct_writer(unnamed.pid()), "a ring of io_uring(7)");
    forked apart([] {
        static std::atomic<bool> has_own = false;
        std::thread([] {
            unshare(CLONE_FILES);
            has_own = true;
            pause();
        }).detach();
        while (!has_own)
            usleep(100);
    });
    EXPECT_EQ(direct_writer(apart.pid()), "a thread with descriptors of its own");
    forked parent([] {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
        }
    });
    EXPECT_NE(direct_writer(parent.pid()).find("a child, process "), std::string::npos);
    forked frames([] { socket(AF_PACKET, SOCK_RAW, 0); });
    EXPECT_NE(direct_writer(frames.pid()).find("socket:"), std::string::npos);
    forked usual([] {
        socket(AF_INET, SOCK_STREAM, 0);
        socket(AF_UNIX, SOCK_STREAM, 0);
        eventfd(0, 0);
        epoll_create1(0);
        open("/dev/ptmx", O_RDWR);
        open("/proc/self/maps", O_RDONLY);
        std::thread([] { pause(); }).detach();
    });
    EXPECT_EQ(direct_writer(usual.pid()), "");
    forked requests([] {
        aio_context_t context = 0;
        syscall(SYS_io_setup, 4, &context);
    });
    EXPECT_EQ(direct_writer(requests.pid()), "requests of io_submit(2)");
    forked device([] { open("/dev/kmsg", O_RDONLY); });
    EXPECT_EQ(direct_writer(device.pid()), "/dev/kmsg");
    device.end();
    EXPECT_ANY_THROW(direct_writer(device.pid()));
}

} // namespace
} // namespace zc::holder
