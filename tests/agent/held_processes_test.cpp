/* SPDX-License-Identifier: BSD-3-Clause */
#include <csignal>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include "descriptor.h"
#include "held_moves.h"
#include "held_processes.h"
#include "keys.h"
#include "line.h"
#include "listener.h"
#include "zch/rank_mark.h"
#include "zch/rank_traffic.h"

namespace zc::agent {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

constexpr std::uint64_t kOneSecond = 1'000'000'000;

/** Processes as files, as the kernel has them in /proc. */
class AgentHeldProcessesTest : public testing::Test {
  protected:
    AgentHeldProcessesTest()
    {
        char name[] = "/tmp/held-processes-XXXXXX";
        proc_ = mkdtemp(name);
        network(proc_ / "self", "net:[1]");
        process(10, 1, "/usr/bin/zc-hold\0./program\0"s, "PATH=/bin\0"s);
        rank(11, 10, "10 3 8 h1 h1:41234");
    }
    ~AgentHeldProcessesTest() override { fs::remove_all(proc_); }

    static void network(const fs::path &of, const std::string &name)
    {
        fs::create_directories(of / "ns");
        fs::remove(of / "ns/net");
        fs::create_symlink(name, of / "ns/net");
    }
    static void write(const fs::path &path, const std::string &text)
    {
        std::ofstream(path, std::ios::binary) << text;
    }
    void process(int pid, int parent, const std::string &words, const std::string &environment,
                 const std::string &start = "500")
    {
        const fs::path at = proc_ / std::to_string(pid);
        fs::create_directories(at / "task" / std::to_string(pid));
        std::string stat = std::to_string(pid) + " (a (name) R) S " + std::to_string(parent);
        for (int field = 5; field < 22; field++)
            stat += " 0";
        write(at / "stat", stat + " " + start + " 0\n");
        write(at / "cmdline", words);
        write(at / "environ", environment);
        write(at / "statm", "1000 25 3 0 0 0 0\n");
        network(at, "net:[1]");
        used(pid, 0);
    }
    void rank(int pid, int parent, const std::string &mark, const std::string &detach = "1",
              const std::string &start = "500")
    {
        process(pid, parent, "./program\0"s,
                "PATH=/bin\0MPIR_CVAR_CH4_ZC_DETACH="s + detach + "\0ZC_HOLD_RANK="s + mark + "\0"s,
                start);
    }
    void used(int pid, std::uint64_t ns)
    {
        const std::string name = std::to_string(pid);
        write(proc_ / name / "task" / name / "schedstat", std::to_string(ns) + " 0 7\n");
    }
    const rank_key key_{holder::number_of_job("h1:41234"), 3};
    fs::path proc_;
};

TEST_F(AgentHeldProcessesTest, ARankIsFoundByWhatZcHoldHasWritten)
{
    held_processes here("h1", proc_);
    const auto found = here.read(kOneSecond);
    ASSERT_EQ(found.size(), 1u);
    const rank_reading &one = found.at(key_);
    EXPECT_EQ(one.pid, 11u);
    EXPECT_EQ(one.world, 8u);
    EXPECT_EQ(one.job_name, "h1:41234");
    EXPECT_TRUE(one.profile.transparent);
    EXPECT_TRUE(one.profile.movable);
    EXPECT_FALSE(one.profile.idle); /* not known yet */
    EXPECT_EQ(one.profile.epoch, 1u);
    EXPECT_EQ(one.profile.image_bytes, 25u * static_cast<unsigned>(sysconf(_SC_PAGESIZE)));
    ASSERT_NE(here.origin_of(key_), nullptr);
    EXPECT_EQ(here.origin_of(key_)->home, "h1");
    EXPECT_EQ(here.origin_of(key_)->pid, 10);
}

/** Its parent is a holder that a listener has started, and its zc-hold is on the host it came
 * from. */
TEST_F(AgentHeldProcessesTest, ARankThatHasComeIsFoundToo)
{
    process(20, 1, "zc-hold\0--arrival\0h1\0"s, "");
    rank(21, 20, "77 5 8 h2 h1:41234");
    held_processes here("h1", proc_);
    const auto found = here.read(kOneSecond);
    ASSERT_EQ(found.size(), 2u);
    const rank_key came{key_.job, 5};
    EXPECT_EQ(found.at(came).profile.epoch, 2u);
    EXPECT_EQ(here.origin_of(came)->home, "h2");
    EXPECT_EQ(here.origin_of(came)->pid, 77);
}

TEST_F(AgentHeldProcessesTest, WhatIsNoRankOfThisNodeIsNotTaken)
{
    rank(30, 11, "10 3 8 h1 h1:41234"); /* a child of the rank */
    rank(31, 10, "no mark");
    rank(32, 10, "10 4 8 h1 h1:41234"); /* of another host */
    network(proc_ / "32", "net:[2]");
    held_processes here("h1", proc_);
    EXPECT_EQ(here.read(kOneSecond).size(), 1u);
    EXPECT_EQ(here.unread(), 0u);
    process(33, 10, "./program\0"s, ""); /* it may not be read */
    EXPECT_EQ(here.read(2 * kOneSecond).size(), 1u);
    EXPECT_EQ(here.unread(), 1u);
}

/** As while the proxy has forked, and not executed zc-hold. */
TEST_F(AgentHeldProcessesTest, AProcessThatBecomesARankIsSeen)
{
    process(40, 1, "proxy\0"s, "PATH=/bin\0"s);
    process(41, 40, "proxy\0"s, "PATH=/bin\0"s);
    held_processes here("h1", proc_);
    EXPECT_EQ(here.read(kOneSecond).size(), 1u);
    process(40, 1, "zc-hold\0"s, "PATH=/bin\0"s);
    rank(41, 40, "40 4 8 h1 h1:41234");
    EXPECT_EQ(here.read(2 * kOneSecond).size(), 2u);
}

/** However late that is, it is seen in the end. */
TEST_F(AgentHeldProcessesTest, AProcessThatBecomesARankLateIsSeen)
{
    process(41, 10, "sh\0"s, "PATH=/bin\0"s);
    held_processes here("h1", proc_);
    std::uint64_t at = 0;
    for (int i = 0; i < 100; i++)
        here.read(at += kOneSecond);
    rank(41, 10, "10 4 8 h1 h1:41234");
    std::size_t found = 0;
    for (int i = 0; i < 60 && found < 2; i++)
        found = here.read(at += kOneSecond).size();
    EXPECT_EQ(found, 2u);
}

TEST_F(AgentHeldProcessesTest, AnotherProcessOfTheSameNumberIsAnotherRank)
{
    held_processes here("h1", proc_);
    EXPECT_EQ(here.read(kOneSecond).size(), 1u);
    rank(11, 10, "10 6 8 h1 other", "1", "900");
    const auto found = here.read(2 * kOneSecond);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found.contains({holder::number_of_job("other"), 6}));
    EXPECT_EQ(here.origin_of(key_), nullptr);
    fs::remove_all(proc_ / "11");
    EXPECT_TRUE(here.read(3 * kOneSecond).empty());
}

TEST_F(AgentHeldProcessesTest, ProcessorTimeTellsWhatIsIdle)
{
    held_processes here("h1", proc_);
    here.read(kOneSecond);
    used(11, kOneSecond);
    EXPECT_NEAR(here.read(2 * kOneSecond).at(key_).profile.processors, 1, 1e-6);
    for (std::uint64_t s = 3; s < 20; s++)
        EXPECT_GE(here.read(s * kOneSecond).at(key_).profile.processors, 0);
    EXPECT_TRUE(here.read(20 * kOneSecond).at(key_).profile.idle);
}

/* As its MPI library writes it, into the file that its zc-hold has made. */
TEST_F(AgentHeldProcessesTest, WhatARankSendsIsRead)
{
    setenv("XDG_RUNTIME_DIR", proc_.c_str(), 1);
    holder::held_rank whose;
    whose.job = "h1:41234";
    whose.rank = 3;
    whose.size = 8;
    held_processes here("h1", proc_);
    EXPECT_TRUE(here.read(kOneSecond).at(key_).events.empty());
    EXPECT_FALSE(here.read(kOneSecond).at(key_).tells);
    const holder::traffic_file file(whose);
    holder::traffic_header header{};
    ASSERT_EQ(pread(file.fd(), &header, sizeof header, 0), ssize_t{sizeof header});
    for (std::uint32_t i = 0; i < 3; i++) {
        /* The last is of a clock that is ahead. */
        const holder::traffic_entry entry{i < 2 ? kOneSecond + i : UINT64_MAX, 5 + i % 2, 64};
        ASSERT_EQ(pwrite(file.fd(), &entry, sizeof entry,
                         static_cast<off_t>(sizeof header + i * sizeof entry)),
                  ssize_t{sizeof entry});
    }
    header.sent = 3;
    ASSERT_EQ(pwrite(file.fd(), &header, sizeof header, 0), ssize_t{sizeof header});
    const rank_reading found = here.read(2 * kOneSecond).at(key_);
    EXPECT_TRUE(found.tells);
    ASSERT_EQ(found.events.size(), 3u);
    EXPECT_EQ(found.events[1].src, 3u);
    EXPECT_EQ(found.events[1].dst, 6u);
    EXPECT_EQ(found.events[1].bytes, 64u << 10);
    EXPECT_EQ(found.events[1].time_ns, kOneSecond + 1);
    EXPECT_EQ(found.events[2].time_ns, 2 * kOneSecond);
    ASSERT_EQ(found.profile.flows.size(), 2u);
    EXPECT_GT(found.profile.flows[0].bytes_per_s, 0);
    EXPECT_TRUE(here.read(3 * kOneSecond).at(key_).events.empty());
    unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(AgentHeldProcessesTest, OneThatIsNotToMoveIsShownSo)
{
    rank(12, 10, "10 4 8 h1 h1:41234", "0");
    held_processes here("h1", proc_);
    EXPECT_FALSE(here.read(kOneSecond).at({key_.job, 4}).profile.movable);
}

TEST_F(AgentHeldProcessesTest, AProgramThatOffersSafePointsMovesByThem)
{
    rank(12, 10, "10 4 8 h1 h1:41234");
    held_processes here("h1", proc_);
    std::map<rank_key, rank_reading> found;
    const rank_key by_safe_points{99, 3};
    found[by_safe_points].pid = 11;
    add_held(found, here.read(kOneSecond), true);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_FALSE(found.contains(key_));
    EXPECT_FALSE(found.at(by_safe_points).observe);
    const rank_reading &other = found.at({key_.job, 4});
    EXPECT_TRUE(other.observe);
    EXPECT_TRUE(other.profile.transparent);
}

/** One order of magnitude more than a node of today has processors. */
TEST_F(AgentHeldProcessesTest, ManyRanksAreFound)
{
    for (int i = 0; i < 640; i++)
        rank(1000 + i, 10, "10 " + std::to_string(100 + i) + " 1000 h1 h1:41234");
    held_processes here("h1", proc_);
    EXPECT_EQ(here.read(kOneSecond).size(), 641u);
    EXPECT_EQ(here.read(2 * kOneSecond).size(), 641u);
}

/* ---- what is said of moves that cannot begin ---- */

class AgentHeldMovesTest : public testing::Test {
  protected:
    msg::outcome asked(const std::string &key_file, const std::vector<held_errand> &what)
    {
        held_moves by(key_file, 10);
        msg::ask wanted{{7, 1}, 1, 5, 1, 2, "h2", {}};
        while (wanted.ranks.size() < what.size())
            wanted.ranks.push_back(3 + static_cast<rank_id>(wanted.ranks.size()));
        by.ask(wanted, what);
        EXPECT_TRUE(by.knows({7, 1}));
        for (int i = 0; i < 1000; i++) {
            for (const msg::outcome &o : by.take()) {
                if (o.what != msg::verdict::running)
                    return o;
            }
            usleep(20'000);
        }
        ADD_FAILURE() << "no outcome";
        return {};
    }
};

TEST_F(AgentHeldMovesTest, WithoutAKeyNothingIsAsked)
{
    const msg::outcome o = asked("/nowhere/zcmd.key", {{{"h1", 10}, "", "127.0.0.1:9", ""}});
    EXPECT_NE(o.what, msg::verdict::moved);
    EXPECT_NE(o.reason.find("/nowhere/zcmd.key"), std::string::npos) << o.reason;
}

/** Then it is the target's fault, not the rank's. */
TEST_F(AgentHeldMovesTest, ATargetWithoutAListenerIsNamed)
{
    char name[] = "/tmp/held-moves-XXXXXX";
    const std::string key_file = std::string(mkdtemp(name)) + "/key";
    write_keys(key_file, make_keys());
    const msg::outcome o = asked(key_file, {{{"h1", 10}, "", "127.0.0.1:9", ""}});
    EXPECT_EQ(o.what, msg::verdict::failed);
    EXPECT_NE(o.reason.find("no zc-hold --listen answers at tcp://127.0.0.1:9"), std::string::npos)
        << o.reason;
    fs::remove_all(name);
}

/** A port that is free, or was. */
std::string free_place()
{
    const descriptor one{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in at{};
    socklen_t size = sizeof at;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(one.fd, reinterpret_cast<sockaddr *>(&at), size), 0);
    getsockname(one.fd, reinterpret_cast<sockaddr *>(&at), &size);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

/** Of four ranks none can move, each for a reason of its own. */
TEST_F(AgentHeldMovesTest, WhatCannotBeAskedIsRefusedByItself)
{
    char name[] = "/tmp/held-moves-XXXXXX";
    const std::string key_file = std::string(mkdtemp(name)) + "/key", target = free_place();
    write_keys(key_file, make_keys());
    const pid_t listens = fork();
    if (listens == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        holder::settings how;
        how.key_file = key_file;
        holder::network net(read_keys(key_file));
        holder::listener(how, net, target).run();
        _exit(0);
    }
    const msg::outcome o = asked(key_file, {{{"h1", 10}, "", target, "the rank has ended"},
                                            {{"h3", 10}, "127.0.0.1:9", target, ""},
                                            {{"h4", 11}, "127.0.0.1:11", target, ""},
                                            {{"h1", 1 << 29}, "", target, ""}});
    EXPECT_EQ(o.what, msg::verdict::refused);
    ASSERT_EQ(o.each.size(), 4u) << o.reason;
    for (std::size_t nth = 0; nth < 4; nth++) {
        EXPECT_EQ(o.each[nth].rank, 3 + nth);
        EXPECT_EQ(o.each[nth].what, msg::verdict::refused) << nth;
    }
    EXPECT_EQ(o.each[0].reason, "the rank has ended");
    EXPECT_TRUE(o.each[1].reason.starts_with("no zc-hold --listen answers at tcp://127.0.0.1:9,"))
        << o.each[1].reason;
    EXPECT_TRUE(o.each[2].reason.starts_with("no zc-hold --listen answers at tcp://127.0.0.1:11,"))
        << o.each[2].reason;
    EXPECT_EQ(o.each[3].reason.find("no zc-hold --listen"), std::string::npos) << o.each[3].reason;
    EXPECT_NE(o.each[3].reason, "");
    kill(listens, SIGKILL);
    waitpid(listens, nullptr, 0);
    fs::remove_all(name);
}

} // namespace
} // namespace zc::agent
