/* SPDX-License-Identifier: BSD-3-Clause */
#include "preflight.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "descriptor.h"
#include "forked.h"

namespace zc::holder {
namespace {

/** A child that has only what @make gives it. */
class victim : public forked {
  public:
    explicit victim(const std::function<void()> &make = [] {})
        : forked([&make] {
              const int null = open("/dev/null", O_RDWR);
              for (const int fd : {0, 1, 2})
                  dup2(null, fd);
              close_range(3, ~0u, 0);
              make();
          })
    {
        usleep(20000); /* until it sleeps */
    }
    std::string reasons(bool detached) const { return joined(cannot_move(pid(), {}, detached)); }
};

TEST(PreflightTest, FindsNothingInAPlainProcess)
{
    EXPECT_EQ(victim().reasons(true), "");
}

TEST(PreflightTest, NamesPipesToOthersButNotOwnOnes)
{
    EXPECT_EQ(victim([] {
                  int own[2];
                  EXPECT_EQ(pipe(own), 0);
              }).reasons(true),
              "");
    EXPECT_NE(victim([] {
                  int own[2];
                  EXPECT_EQ(pipe(own), 0);
                  close(own[0]);
              })
                  .reasons(false)
                  .find("a pipe to another process"),
              std::string::npos);
}

TEST(PreflightTest, ExpectsSocketsUntilTheRankIsDetached)
{
    const victim one([] { socket(AF_INET, SOCK_STREAM, 0); });
    EXPECT_EQ(one.reasons(false), "");
    EXPECT_NE(one.reasons(true).find("a socket"), std::string::npos);
}

TEST(PreflightTest, LeavesToCriuWhatItCarries)
{
    EXPECT_EQ(victim([] { epoll_create1(0); }).reasons(true), "");
}

TEST(PreflightTest, NamesSystemVSharedMemory)
{
    const victim one([] {
        const int id = shmget(IPC_PRIVATE, 4096, 0600);
        shmat(id, nullptr, 0);
        shmctl(id, IPC_RMID, nullptr);
    });
    for (const bool detached : {false, true}) /* before its memory is copied, too */
        EXPECT_NE(one.reasons(detached).find("System V shared memory"), std::string::npos);
}

TEST(PreflightTest, NamesPosixSharedMemory)
{
    const std::string name = "/holder-test-" + std::to_string(getpid());
    const victim one([&] {
        const int fd = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
        EXPECT_EQ(ftruncate(fd, 4096), 0);
        EXPECT_NE(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
        close(fd);
    });
    EXPECT_NE(one.reasons(true).find("POSIX shared memory, /dev/shm" + name), std::string::npos);
    shm_unlink(name.c_str());
}

TEST(PreflightTest, NamesDevices)
{
    const std::string found = victim([] { open("/dev/ptmx", O_RDWR | O_NOCTTY); }).reasons(false);
    EXPECT_NE(found.find("the device /dev/"), std::string::npos) << found;
}

TEST(PreflightTest, NamesFilesWithoutAName)
{
    const victim one([] {
        std::string name = "/tmp/holder-test-XXXXXX";
        mkstemp(name.data());
        unlink(name.c_str());
    });
    EXPECT_NE(one.reasons(true).find("has no name any more"), std::string::npos);
}

TEST(PreflightTest, NamesChildren)
{
    const victim one([] {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
            _exit(0);
        }
    });
    EXPECT_NE(one.reasons(false).find("it has a child, process "), std::string::npos);
}

TEST(PreflightTest, NamesLocks)
{
    const victim one([] { flock(open("/", O_RDONLY), LOCK_SH | LOCK_NB); });
    EXPECT_NE(one.reasons(false).find("a lock on a file"), std::string::npos);
}

TEST(PreflightTest, FindsItsNeedsHere)
{
    const victim one;
    const nlohmann::json needs = needs_of(one.pid());
    EXPECT_EQ(joined(lacks(needs)), "");
    EXPECT_TRUE(has_taken(needs));
}

TEST(PreflightTest, NamesWhatAHostLacks)
{
    const victim one;
    nlohmann::json needs = needs_of(one.pid());
    ASSERT_FALSE(needs.at("files").empty());
    const std::string path = needs.at("files").begin().key();
    needs["files"][path]["is"]["crc"] = 1;
    needs["files"]["/not/there"] = needs["files"][path];
    needs["features"].push_back("wings");
    needs["directory"] = "/not/here";
    const std::string found = joined(lacks(needs));
    EXPECT_NE(found.find("its file " + path + " is another"), std::string::npos) << found;
    EXPECT_NE(found.find("it has no file /not/there"), std::string::npos) << found;
    EXPECT_NE(found.find("its processor has not: wings"), std::string::npos) << found;
    EXPECT_NE(found.find("it has no folder /not/here"), std::string::npos) << found;
}

/** As what the rank sends: it is given up before the rank moves, whatever the name of its folder.
 */
TEST(PreflightTest, AFileThatIsGivenUpIsNotNeeded)
{
    char name[] = "/tmp/preflight-XXXXXX";
    const std::string folder = mkdtemp(name), link = folder + "/link", path = link + "/file";
    ASSERT_EQ(symlink(".", link.c_str()), 0);
    const descriptor file{open(path.c_str(), O_RDWR | O_CREAT, 0600)};
    ASSERT_EQ(ftruncate(file.fd, 4096), 0);
    const victim one([&] {
        const int fd = open(path.c_str(), O_RDWR);
        EXPECT_NE(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    });
    EXPECT_TRUE(needs_of(one.pid()).at("files").contains(folder + "/file"));
    EXPECT_FALSE(needs_of(one.pid(), file.fd).at("files").contains(folder + "/file"));
    EXPECT_EQ(needs_of(one.pid()).at("files").size(),
              needs_of(one.pid(), file.fd).at("files").size() + 1);
    std::filesystem::remove_all(folder);
}

TEST(PreflightTest, FindsNumbersThatTheRankHasNot)
{
    pid_t most = 0;
    std::ifstream("/proc/sys/kernel/pid_max") >> most;
    EXPECT_EQ(number_before_free({{"tasks", {3, 4, 7}}}), 300);
    EXPECT_EQ(number_before_free({{"tasks", {4711, 4713, 4712}}}), 300);
    EXPECT_EQ(number_before_free({{"tasks", {711, 713, 712}}}), 713);
    EXPECT_EQ(number_before_free({{"tasks", {most - 1}}}), 300);
    EXPECT_EQ(number_before_free({{"tasks", {most - 1, 305, 900}}}), 900);
}

/** CRIU would say so when the rank has left. */
TEST(PreflightTest, WhatOnlyRootCanDumpIsNamed)
{
    int reasons[2];
    ASSERT_EQ(pipe(reasons), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 &&
            (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1);
        const forked hidden([] { prctl(PR_SET_DUMPABLE, 0); });
        const forked filtered([] {
            sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
            const sock_fprog program{1, all};
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        });
        const std::string text = joined(cannot_move(hidden.pid(), {}, false)) + ";" +
                                 joined(cannot_move(filtered.pid(), {}, false));
        _exit(write(reasons[1], text.data(), text.size()) > 0 ? 0 : 1);
    }
    close(reasons[1]);
    std::string text(4096, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(read(reasons[0], text.data(), text.size()), 0)));
    close(reasons[0]);
    waitpid(child, nullptr, 0);
    EXPECT_NE(text.find("it is not dumpable"), std::string::npos) << text;
    EXPECT_NE(text.find("it has a filter of seccomp(2)"), std::string::npos) << text;
}

TEST(CredentialsTest, OfRootsNeedNotBeTheSame)
{
    const nlohmann::json one = {{"user", 0}, {"group", 0}, {"groups", {0}}, {"namespace", false}};
    nlohmann::json other = one;
    other["groups"] = {0, 4};
    EXPECT_EQ(credentials_reason(one, other), "");
}

TEST(CredentialsTest, InNamespacesAreTheSame)
{
    const nlohmann::json one = {
        {"user", 1001}, {"group", 100}, {"groups", {4, 100}}, {"namespace", true}};
    EXPECT_EQ(credentials_reason(one, one), "");
    nlohmann::json other = one;
    other["groups"] = {100};
    EXPECT_EQ(credentials_reason(one, other),
              "its zc-hold is of user 1001, group 100, groups [100], and the rank of user 1001, "
              "group 100, groups [4,100]");
}

TEST(CredentialsTest, AreOfOneKind)
{
    nlohmann::json with = {{"user", 0}, {"group", 0}, {"groups", {0}}, {"namespace", false}};
    nlohmann::json without = with;
    without["namespace"] = true;
    EXPECT_EQ(credentials_reason(without, with),
              "its zc-hold has the privilege to move ranks, and the rank's has not");
    EXPECT_EQ(credentials_reason(with, without),
              "its zc-hold has not the privilege to move ranks, and the rank's has it");
}

TEST(CredentialsTest, AreThoseOfThisProcess)
{
    const nlohmann::json ours = credentials();
    EXPECT_EQ(ours.at("user"), geteuid());
    EXPECT_EQ(ours.at("group"), getegid());
    EXPECT_EQ(ours.at("groups").size(), static_cast<std::size_t>(getgroups(0, nullptr)));
}

/** An ordinary user has no more than was given. */
TEST(PreflightTest, LimitsThatAreLowerAreNamed)
{
    const forked one([] {
        const rlimit many{512, 512};
        setrlimit(RLIMIT_NOFILE, &many);
    });
    const nlohmann::json needs = needs_of(one.pid());
    EXPECT_EQ(needs.at("limits").at("open files"), 512);
    const pid_t child = fork();
    if (child == 0) {
        const rlimit few{256, 256};
        setrlimit(RLIMIT_NOFILE, &few);
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(1);
        const std::string found = joined(lacks(needs));
        _exit(found.find("its limit of open files is 256, and the rank's is 512") !=
                      std::string::npos
                  ? 0
                  : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace zc::holder
