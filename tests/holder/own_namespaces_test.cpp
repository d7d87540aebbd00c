/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <iterator>
#include <sched.h>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/uio.h>

#include <gtest/gtest.h>

#include "capabilities.h"
#include "error.h"
#include "forked.h"
#include "own_namespaces.h"
#include "time_namespace.h"

namespace zc::holder {
namespace {

constexpr uid_t kNobody = 65534;

/** Of a user without privilege, as if it had been executed by one. */
void become_ordinary()
{
    if (geteuid() == 0 &&
        (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
         setresuid(kNobody, kNobody, kNobody) != 0))
        _exit(1);
    prctl(PR_SET_DUMPABLE, 1);
}

/** What a process that is of no privilege at first finds out; 0: all as expected. */
template <typename F>
int ordinary(F f)
{
    const pid_t pid = fork();
    if (pid == 0) {
        become_ordinary();
        try {
            _exit(f());
        } catch (const error &problem) {
            _exit(problem.code() == EPERM || problem.code() == ENOSPC ? 77 : 99);
        }
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string field(const std::string &file, const std::string &name)
{
    std::ifstream status(file);
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name))
            return line.substr(line.find_first_not_of(" \t", name.size()));
    return "";
}

std::uint64_t capabilities_in(const std::string &file)
{
    return std::stoull(field(file, "CapEff:"), nullptr, 16);
}

#define ZCH_EXPECT_ORDINARY(...)                                                                   \
    do {                                                                                           \
        const int outcome = ordinary(__VA_ARGS__);                                                 \
        if (outcome == 77)                                                                         \
            GTEST_SKIP() << "this kernel lets no user without privilege have a user namespace";    \
        EXPECT_EQ(outcome, 0);                                                                     \
    } while (0)

TEST(OwnNamespacesTest, AreForUsersWithoutPrivilege)
{
    if (geteuid() == 0) {
        EXPECT_FALSE(needs_user_namespace());
    }
    EXPECT_EQ(ordinary([] { return needs_user_namespace() ? 0 : 1; }), 0);
}

TEST(OwnNamespacesTest, KeepTheNumbersOfUserAndGroup)
{
    ZCH_EXPECT_ORDINARY([] {
        const uid_t number = getuid();
        const gid_t group = getgid();
        enter_user_namespace();
        return getuid() == number && geteuid() == number && getgid() == group && getegid() == group
                   ? 0
                   : 1;
    });
}

TEST(OwnNamespacesTest, GiveWhatCriuNeeds)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        return needs_user_namespace() || !makes_time_namespaces() ? 1 : 0;
    });
}

/** What @keep leaves to a program that is executed, as /proc shows it. */
template <typename F>
std::uint64_t left_over_exec(F keep)
{
    int ends[2];
    if (pipe(ends) != 0)
        return ~std::uint64_t{0};
    if (fork() == 0) {
        dup2(ends[1], STDOUT_FILENO);
        keep();
        execl("/bin/cat", "cat", "/proc/self/status", nullptr);
        _exit(1);
    }
    close(ends[1]);
    wait(nullptr);
    const std::string name = "/proc/self/fd/" + std::to_string(ends[0]);
    const std::uint64_t found = capabilities_in(name);
    close(ends[0]);
    return found;
}

TEST(OwnNamespacesTest, LeaveARankNoCapability)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        return left_over_exec([] {}) == 0 ? 0 : 1;
    });
}

TEST(OwnNamespacesTest, LeaveAHolderAll)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        return left_over_exec(keep_capabilities) == capabilities_in("/proc/self/status") ? 0 : 1;
    });
}

/** CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_SETPCAP: with CAP_SETUID it would become root. */
TEST(OwnNamespacesTest, LeaveCriuThree)
{
    ZCH_EXPECT_ORDINARY([] {
        constexpr std::uint64_t three = 1ULL << 40 | 1ULL << 19 | 1ULL << 8;
        enter_user_namespace();
        const bool at_once = left_over_exec(keep_capabilities_for_criu) == three;
        const bool afterwards = left_over_exec([] {
                                    keep_capabilities();
                                    keep_capabilities_for_criu();
                                }) == three;
        return at_once && afterwards ? 0 : 1;
    });
}

TEST(OwnNamespacesTest, ShowTheProcessesOfThatNamespace)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ZCH_EXPECT_ORDINARY([&] {
        enter_user_namespace();
        become_first_of_namespaces(5000); /* what returns is a child: the parent has ended with 0 */
        const std::string self = field("/proc/self/status", "Pid:");
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        const char seen = getpid() == 1 && self == "1" && child == 5001 ? 'y' : 'n';
        return write(ends[1], &seen, 1) == 1 ? 0 : 1;
    });
    char seen = 0;
    close(ends[1]);
    EXPECT_EQ(read(ends[0], &seen, 1), 1);
    EXPECT_EQ(seen, 'y');
    close(ends[0]);
}

TEST(OwnNamespacesTest, DoNotHelpRootOfAPart)
{
    EXPECT_EQ(root_reason(), "");
    ZCH_EXPECT_ORDINARY([] {
        const std::string map = "0 " + std::to_string(geteuid()) + " 1";
        if (unshare(CLONE_NEWUSER) != 0)
            return 77;
        std::ofstream("/proc/self/uid_map") << map << std::flush;
        return root_reason() == "its zc-hold is root of a user namespace only" ? 0 : 1;
    });
}

std::string namespace_of(pid_t pid)
{
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/user");
}

/** A runtime folder of its own, in which no other process has a record. */
class SharedNamespaceTest : public ::testing::Test {
  protected:
    SharedNamespaceTest()
    {
        std::string name = "/tmp/holder-test-XXXXXX";
        folder_ = mkdtemp(name.data());
        std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
        if (geteuid() == 0 && chown(folder_.c_str(), kNobody, kNobody) != 0)
            throw std::runtime_error("chown");
        setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    }
    ~SharedNamespaceTest() override
    {
        unsetenv("XDG_RUNTIME_DIR");
        std::filesystem::remove_all(folder_);
    }
    std::size_t records() const
    {
        std::size_t count = 0;
        for (const auto &each : std::filesystem::recursive_directory_iterator(folder_))
            count += each.path().filename().string().starts_with("user-namespace-");
        return count;
    }

    std::string folder_;
};

/** Ranks of one host may look at each other's memory. */
TEST_F(SharedNamespaceTest, IsOneForAllOfAJob)
{
    ZCH_EXPECT_ORDINARY([] {
        const auto in_it = [] { enter_user_namespace("a"); };
        forked first(in_it);
        const std::string one = namespace_of(first.pid());
        const forked second(in_it), other([] { enter_user_namespace("b"); }),
            apart([] { enter_user_namespace(); });
        if (namespace_of(second.pid()) != one || namespace_of(apart.pid()) == one ||
            namespace_of(other.pid()) == one)
            return 1;
        first.end(); /* it made it, and is not needed for it */
        const forked third(in_it);
        if (namespace_of(third.pid()) != one)
            return 2;
        char byte = 'x';
        const iovec here{&byte, 1}, there{&byte, 1}; /* the same address in both */
        enter_user_namespace("a");
        return process_vm_readv(second.pid(), &here, 1, &there, 1, 0) == 1 ? 0 : 3;
    });
}

TEST_F(SharedNamespaceTest, IsMadeOnceByManyThatBeginAtOnce)
{
    ZCH_EXPECT_ORDINARY([] {
        constexpr int kMany = 100;
        const std::string before = namespace_of(getpid());
        int ends[2];
        if (pipe(ends) != 0)
            return 1;
        std::vector<pid_t> all;
        for (int i = 0; i < kMany; i++) {
            all.push_back(fork());
            if (all.back() == 0) {
                try {
                    enter_user_namespace("a");
                } catch (const error &) {
                    _exit(1);
                }
                const std::string now = namespace_of(getpid());
                _exit(write(ends[1], now.data(), now.size()) > 0 ? pause() : 1);
            }
        }
        const std::size_t length = before.size();
        std::set<std::string> found;
        for (int i = 0; i < kMany; i++) {
            std::string one(length, '\0');
            if (read(ends[0], one.data(), length) != static_cast<ssize_t>(length))
                return 2;
            found.insert(one);
        }
        for (const pid_t each : all)
            kill(each, SIGKILL);
        return found.size() == 1 && !found.contains(before) ? 0 : 3;
    });
}

/** Nor is that of a process that has the number of one that has ended. */
TEST_F(SharedNamespaceTest, IsNotThatOfAnotherProcess)
{
    ZCH_EXPECT_ORDINARY([this] {
        forked first([] { enter_user_namespace("a"); });
        const std::string one = namespace_of(first.pid());
        first.end();
        const forked other([] { enter_user_namespace(); });
        for (const auto &each : std::filesystem::recursive_directory_iterator(folder_)) {
            if (each.path().filename().string().starts_with("user-namespace-"))
                std::ofstream(each.path()) << other.pid() << " 1\n0 0\nx";
        }
        const forked second([] { enter_user_namespace("a"); });
        const std::string now = namespace_of(second.pid());
        return now != one && now != namespace_of(other.pid()) && now != namespace_of(getpid()) ? 0
                                                                                               : 1;
    });
}

TEST_F(SharedNamespaceTest, IsNotThatOfAnotherGroup)
{
    if (geteuid() != 0)
        GTEST_SKIP() << "it needs root to have another group";
    forked first([] {
        become_ordinary();
        enter_user_namespace("a");
    });
    forked second([] {
        if (setgroups(0, nullptr) != 0 || setresgid(100, 100, 100) != 0 ||
            setresuid(kNobody, kNobody, kNobody) != 0)
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        enter_user_namespace("a");
        if (getegid() != 100)
            _exit(1);
    });
    EXPECT_NE(namespace_of(first.pid()), namespace_of(second.pid()));
    EXPECT_EQ(records(), 2u);
}

TEST_F(SharedNamespaceTest, LeavesNoRecordsOfJobsThatHaveEnded)
{
    ZCH_EXPECT_ORDINARY([this] {
        forked first([] { enter_user_namespace("a"); });
        const forked second([] { enter_user_namespace("b"); });
        if (records() != 2)
            return 1;
        first.end();
        const forked third([] { enter_user_namespace("c"); });
        return records() == 2 ? 0 : 2;
    });
}

/** They would be in another one. */
TEST_F(SharedNamespaceTest, IsNotEnteredWhereTheOthersCannotBeFound)
{
    ZCH_EXPECT_ORDINARY([this] {
        const forked first([] { enter_user_namespace("a"); });
        std::string record;
        for (const auto &each : std::filesystem::recursive_directory_iterator(folder_)) {
            if (each.path().filename().string().starts_with("user-namespace-"))
                record = each.path();
        }
        const descriptor locked{open(record.c_str(), O_RDWR | O_CLOEXEC)};
        if (flock(locked.fd, LOCK_EX) != 0)
            return 1;
        const std::string before = namespace_of(getpid());
        try {
            enter_user_namespace("a");
        } catch (const error &problem) {
            return namespace_of(getpid()) == before && problem.code() == EBUSY ? 0 : 2;
        }
        return 3;
    });
}

/** In one without maps a process is nobody. */
TEST(OwnNamespacesTest, AreNotEnteredIfTheirMapsCannotBeWritten)
{
    ZCH_EXPECT_ORDINARY([] {
        const std::string before = namespace_of(getpid());
        prctl(PR_SET_DUMPABLE, 0); /* so its files in /proc are root's */
        try {
            enter_user_namespace();
        } catch (const error &problem) {
            return problem.code() == EACCES && namespace_of(getpid()) == before ? 0 : 1;
        }
        return 2;
    });
}

TEST(OwnNamespacesTest, AreTold)
{
    EXPECT_FALSE(is_in_own_user_namespace());
    ZCH_EXPECT_ORDINARY([] {
        if (is_in_own_user_namespace())
            return 1;
        enter_user_namespace();
        return is_in_own_user_namespace() ? 0 : 2;
    });
}

TEST(OwnNamespacesTest, AreRefusedWithTheReason)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        std::ofstream("/proc/sys/user/max_user_namespaces") << "0" << std::flush;
        try {
            enter_user_namespace();
        } catch (const error &problem) {
            const std::string text = problem.what();
            return problem.code() == ENOSPC && text.find("a user namespace") != std::string::npos
                       ? 0
                       : 1;
        }
        return 2;
    });
}

// ---- clocks ----

constexpr auto kAhead = std::chrono::hours(24);
constexpr auto kNear = std::chrono::milliseconds(500);

bool is_near(std::chrono::nanoseconds a, std::chrono::nanoseconds b)
{
    return std::chrono::abs(a - b) < kNear;
}

std::chrono::nanoseconds monotonic()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/** What a child sees. */
std::chrono::nanoseconds monotonic_of_a_child()
{
    int ends[2];
    if (pipe(ends) != 0)
        return {};
    if (fork() == 0) {
        const auto now = monotonic();
        _exit(write(ends[1], &now, sizeof now) == sizeof now ? 0 : 1);
    }
    std::chrono::nanoseconds found{};
    if (read(ends[0], &found, sizeof found) != sizeof found)
        found = {};
    wait(nullptr);
    close(ends[0]);
    close(ends[1]);
    return found;
}

TEST(TimeNamespaceTest, HasTheClocksOfTheHostAtFirst)
{
    EXPECT_TRUE(is_near(clocks_of(getpid()).monotonic, monotonic()));
    EXPECT_TRUE(is_near(monotonic_of_a_child(), monotonic()));
}

TEST(TimeNamespaceTest, GoesOnFromClocksThatAreAhead)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        const auto here = monotonic();
        go_on_from({here + kAhead, here + 2 * kAhead});
        return is_near(monotonic_of_a_child(), here + kAhead) ? 0 : 1;
    });
}

TEST(TimeNamespaceTest, GoesOnFromClocksThatHaveJustBegun)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        go_on_from({std::chrono::milliseconds(1), std::chrono::milliseconds(1500)});
        const auto there = monotonic_of_a_child();
        return there.count() > 0 && is_near(there, {}) ? 0 : 1;
    });
}

TEST(TimeNamespaceTest, IsToldOfAnotherProcess)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        const auto here = monotonic();
        const pid_t child = fork();
        if (child == 0) {
            go_on_from({here + kAhead, here + kAhead});
            for (;;)
                pause();
        }
        std::chrono::nanoseconds found{};
        for (int tries = 0; tries < 5000 && !is_near(found, monotonic() + kAhead); tries++) {
            usleep(1000);
            found = clocks_of(child).monotonic;
        }
        kill(child, SIGKILL);
        return is_near(found, monotonic() + kAhead) ? 0 : 1;
    });
}

TEST(TimeNamespaceTest, IsShared)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        const auto here = monotonic();
        share_clocks(getpid());
        if (!is_near(monotonic(), here))
            return 1;
        const forked other([&] { go_on_from({here + kAhead, here + kAhead}); });
        share_clocks(other.pid());
        return is_near(monotonic(), here + kAhead) ? 0 : 2;
    });
}

/** CRIU does, and before Linux 6.3 that needs more than an execve(2). */
TEST(TimeNamespaceTest, LetsAProcessMakeOneThatSharesItsMemory)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        const auto here = monotonic();
        go_on_from({here + kAhead, here + kAhead});
        const pid_t child = vfork(); /* CLONE_VM */
        if (child == 0)
            _exit(0);
        return child > 0 && is_near(monotonic(), here + kAhead) ? 0 : 1;
    });
}

TEST(TimeNamespaceTest, CannotGoOnFromNegativeTime)
{
    ZCH_EXPECT_ORDINARY([] {
        enter_user_namespace();
        try {
            go_on_from({-kAhead, -kAhead});
        } catch (const error &) {
            return 0;
        }
        return 1;
    });
}

} // namespace
} // namespace zc::holder
