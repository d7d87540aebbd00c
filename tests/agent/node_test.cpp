/* SPDX-License-Identifier: BSD-3-Clause */

/* What zcmd reads and writes, without a network: load, keys, answers of jobs. */
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include "job_socket.h"
#include "kernel_load.h"
#include "keys.h"
#include "state.h"

namespace zc::agent {
namespace {

namespace fs = std::filesystem;

class AgentNodeTest : public testing::Test {
  protected:
    AgentNodeTest()
    {
        char name[] = "/tmp/zca-node-XXXXXX";
        root_ = mkdtemp(name);
    }
    ~AgentNodeTest() override { fs::remove_all(root_); }
    void put(const std::string &path, const std::string &text)
    {
        fs::create_directories(fs::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    /** @ran: tenths of a second that it has had a processor. */
    void put_thread(const std::string &tid, char state, double ran)
    {
        put("/proc/" + tid + "/stat", tid + " (thread) " + state + " 1\n");
        put("/proc/" + tid + "/schedstat", std::to_string(static_cast<long>(ran * 1e8)) + " 5 5\n");
    }
    static std::uint64_t time_of(int look)
    {
        return 1'000'000'000 + static_cast<std::uint64_t>(look) * 100'000'000;
    }
    /** What is counted at the last of these looks, ten a second; @prepare(look) goes before each.
     */
    template <class F>
    static double counted(kernel_load &load, int first, int end, F prepare)
    {
        double runnable = 0;
        for (int look = first; look < end; look++) {
            prepare(look);
            runnable = load.runnable(time_of(look));
        }
        return runnable;
    }
    std::string root_;
};

TEST_F(AgentNodeTest, ReadsACgroupOfVersion2)
{
    put("/cg/cpu.max", "150000 100000\n");
    put("/cg/cgroup.threads", "11\n12\n13\n");
    put("/proc/11/stat", "11 (a b) R 1\n");
    put("/proc/12/stat", "12 (x) S 1\n");
    put("/proc/13/stat", "13 (R) D) R 1\n");
    put("/cg/cpu.stat", "usage_usec 1000\nthrottled_usec 0\n");
    put("/cg/cpu.pressure", "some avg10=12.50 avg60=0 avg300=0 total=1\n");
    kernel_load load("/cg", 0, root_);
    load.read(1'000'000'000);
    put("/cg/cpu.stat", "usage_usec 1001000\nthrottled_usec 500000\n");
    kernel_reading r = load.read(2'000'000'000);
    EXPECT_NEAR(r.cpus, 1.5, 1e-6);
    EXPECT_NEAR(r.runnable.value(), 2, 1e-6);
    EXPECT_NEAR(r.throttled.value(), 0.5, 1e-6);
    EXPECT_NEAR(r.used.value(), 1, 1e-6);
    EXPECT_NEAR(r.cpu_pressure.value(), 12.5, 1e-6);
}

TEST_F(AgentNodeTest, AThreadThatGivesWayCountsForLess)
{
    const std::string before_nice = " R 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 ";
    put("/cg/cpu.max", "100000 100000\n");
    put("/cg/cgroup.threads", "11\n12\n13\n");
    put("/proc/11/stat", "11 (rank)" + before_nice + "0 1 0 99\n");
    put("/proc/12/stat", "12 (leaver)" + before_nice + "10 1 0 99\n");
    put("/proc/13/stat",
        "13 (eager)" + before_nice + "-5 1 0 99\n"); /* one processor is all it can use */
    kernel_load load("/cg", 0, root_);
    EXPECT_NEAR(load.read(1'000'000'000).runnable.value(), 2.107, 1e-3);
}

/* As seen where the launcher hands on a rank's output in a cgroup that is always out of its quota.
 */
TEST_F(AgentNodeTest, AThreadThatSleepsCountsForWhatItUsesAndNotForItsWaiting)
{
    put("/cg/cpu.max", "40000 100000\n");
    put("/cg/cgroup.threads", "11\n12\n13\n");
    kernel_load load("/cg", 0, root_);
    auto greedy = [this](int look) {
        put_thread("11", 'R', 0.19 * look);
        put_thread("12", 'R', 0.19 * look);
        put_thread("13", look % 4 == 3 ? 'S' : 'R', 0.019 * look);
    };
    EXPECT_NEAR(counted(load, 0, 200, greedy), 2.1, 0.02); /* and not 2.75 */
    /* Without a greedy thread, one that waits half of the time is half a thread, as before. */
    put("/cg/cgroup.threads", "13\n");
    auto waiting = [this](int look) {
        put("/proc/13/stat", look % 2 == 0 ? "13 (proxy) S 1\n" : "13 (proxy) R 1\n");
    };
    EXPECT_NEAR(counted(load, 200, 400, waiting), 0.5, 0.1);
}

/* The kernel brings a thread's time up to date by ticks: between two looks in a row, all of one may
 * pass. */
TEST_F(AgentNodeTest, ASecondLookAtOnceTellsNothingOfWhatIsUsed)
{
    put("/cg/cpu.max", "40000 100000\n");
    put("/cg/cgroup.threads", "11\n12\n");
    kernel_load load("/cg", 0, root_);
    auto twice = [&](int look) {
        put_thread("11", 'R', 0.2 * look);
        put_thread("12", look % 2 == 0 ? 'S' : 'R', 0.1 * look);
        load.runnable(time_of(look) - 10'000);
        put_thread("11", 'R', 0.2 * look + 0.04); /* 4 ms */
    };
    EXPECT_NEAR(counted(load, 0, 200, twice), 1.5, 0.1);
}

TEST_F(AgentNodeTest, GreedyThreadsCountInFullHoweverUnevenTheirShares)
{
    put("/cg/cpu.max", "200000 100000\n");
    put("/cg/cgroup.threads", "11\n12\n13\n");
    kernel_load load("/cg", 0, root_);
    auto greedy = [this](int look) { /* three on two processors, never evened out */
                                     put_thread("11", 'R', look);
                                     put_thread("12", 'R', 0.5 * look);
                                     put_thread("13", 'R', 0.5 * look);
    };
    EXPECT_NEAR(counted(load, 0, 50, greedy), 3, 1e-6);
}

TEST_F(AgentNodeTest, FindsItsOwnCgroupOfVersion1IfThatIsLimited)
{
    put("/proc/self/cgroup", "3:memory:/x\n1:cpu,cpuacct:/jobs/7\n0::/\n");
    put("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000\n");
    kernel_load load("", 0, root_);
    EXPECT_EQ(load.cgroup(), "/sys/fs/cgroup/cpu,cpuacct/jobs/7");
    EXPECT_NEAR(load.read(1).cpus, 0.5, 1e-6);
}

TEST_F(AgentNodeTest, WithoutALimitItIsTheMachine)
{
    put("/proc/self/cgroup", "0::/user\n");
    put("/sys/fs/cgroup/user/cpu.max", "max 100000\n");
    put("/proc/stat", "cpu 1 1 1 1 1 1 1 1\nprocs_running 9\n");
    put("/proc/meminfo", "MemAvailable: 2048 kB\n");
    kernel_load load("", 3, root_);
    EXPECT_EQ(load.cgroup(), "");
    kernel_reading r = load.read(1);
    EXPECT_NEAR(r.runnable.value(), 8, 1e-6); /* without ourselves */
    EXPECT_NEAR(r.cpus, 3, 1e-6);             /* as told */
    EXPECT_EQ(r.free_bytes, 2048u << 10);
}

/* Version 2 keeps processes in the leaves, where controllers are handed down. */
TEST_F(AgentNodeTest, ACgroupsThreadsAreThoseOfItsChildrenToo)
{
    put("/sys/fs/cgroup/job/cgroup.threads", "");
    put("/sys/fs/cgroup/job/step/task/cgroup.threads", "11\n12\n");
    put("/sys/fs/cgroup/job/step/batch/cgroup.threads", "13\n");
    for (const char *tid : {"11", "12", "13"})
        put_thread(tid, 'R', 0);
    kernel_load load("/sys/fs/cgroup/job", 0, root_);
    EXPECT_EQ(load.read(1).runnable, 3);
}

/* A share of a machine by affinity or a cpuset: what runs on the other processors does not count.
 */
TEST_F(AgentNodeTest, OthersOnOtherProcessorsDoNotCount)
{
    cpu_set_t before;
    cpu_set_t one;
    sched_getaffinity(0, sizeof before, &before);
    unsigned mine = 0;
    while (!CPU_ISSET(mine, &before))
        mine++;
    CPU_ZERO(&one);
    CPU_SET(mine, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    auto stat = [&](double at, double ours) {
        std::string text = "cpu 0 0 0 0 0 0 0 0\n";
        for (unsigned i = 0; i < 64; i++) {
            double busy = i == mine ? ours : at;
            text += "cpu" + std::to_string(i) + " " + std::to_string(static_cast<long>(busy)) +
                    " 0 0 " + std::to_string(static_cast<long>(at - busy)) + " 0 0 0 0 0 0\n";
        }
        put("/proc/stat", text + "procs_running 65\n");
    };
    kernel_load load("", 0, root_);
    stat(1000, 500);
    load.read(1);
    double demand = -1;
    for (int i = 1; i <= 50; i++) { /* half a processor's worth */
        stat(1000 + 100 * i, 500 + 50 * i);
        demand = *load.read(1 + 1'000'000'000ull * static_cast<unsigned>(i)).runnable;
    }
    EXPECT_LT(demand, 0.6);
    for (int i = 1; i <= 50; i++) { /* all of it, and perhaps more */
        stat(6000 + 100 * i, 3000 + 100 * i);
        demand =
            *load.read(51'000'000'001ull + 1'000'000'000ull * static_cast<unsigned>(i)).runnable;
    }
    EXPECT_EQ(load.read(200'000'000'000ull).cpus, 1);
    sched_setaffinity(0, sizeof before, &before);
    EXPECT_LT(demand, 1.5);
}

TEST_F(AgentNodeTest, NothingReadableIsNoDisaster)
{
    kernel_load load("/nowhere", 0, root_);
    kernel_reading r = load.read(1);
    EXPECT_GT(r.cpus, 0);
    EXPECT_FALSE(r.cpu_pressure);
}

TEST_F(AgentNodeTest, KeysComeBack)
{
    std::string path = root_ + "/new/key";
    key_pair made = make_keys();
    write_keys(path, made);
    key_pair read = read_keys(path);
    EXPECT_EQ(read.public_key, made.public_key);
    EXPECT_EQ(read.secret_key, made.secret_key);
    EXPECT_THROW(write_keys(path, made), key_error); /* not over another */
}

TEST_F(AgentNodeTest, RefusesKeysThatOthersMayRead)
{
    std::string path = root_ + "/key";
    write_keys(path, make_keys());
    chmod(path.c_str(), 0640);
    EXPECT_THROW(read_keys(path), key_error);
}

TEST_F(AgentNodeTest, RefusesKeysThatAreNotAPair)
{
    EXPECT_THROW(read_keys(root_ + "/missing"), key_error);
    put("/noise", "hello\n");
    chmod((root_ + "/noise").c_str(), 0600);
    EXPECT_THROW(read_keys(root_ + "/noise"), key_error);
    key_pair mixed = make_keys();
    mixed.public_key = make_keys().public_key;
    write_keys(root_ + "/mixed", mixed);
    EXPECT_THROW(read_keys(root_ + "/mixed"), key_error);
}

msg::outcome answer(const std::string &line)
{
    msg::outcome o;
    read_answer(line, o);
    return o;
}

TEST_F(AgentNodeTest, UnderstandsTheAnswersOfAJob)
{
    msg::outcome o =
        answer(R"({"ok":true,"epoch":4,"bytes":77,"phases":{"spawn":12.5,"transfer":3}})");
    EXPECT_EQ(o.what, msg::verdict::moved);
    EXPECT_EQ(o.epoch, 4u);
    EXPECT_EQ(o.bytes, 77u);
    EXPECT_EQ(o.phase_ms[2], 12.5f);
    EXPECT_EQ(o.phase_ms[3], 3.0f);
    o = answer(
        R"({"ok":true,"bytes":{"data":9,"image":7,"zero":1},"phases_ms":{"spawn":2}})"); /* libzcm's
                                                                                          */
    EXPECT_EQ(o.bytes, 7u);
    EXPECT_EQ(o.phase_ms[2], 2.0f);
    auto refusal = [](int code) {
        return answer(R"({"ok":false,"code":)" + std::to_string(code) + R"(,"error":"no"})").what;
    };
    EXPECT_EQ(refusal(EBUSY), msg::verdict::refused);
    EXPECT_EQ(refusal(EINVAL), msg::verdict::refused);
    EXPECT_EQ(refusal(ETIMEDOUT), msg::verdict::timed_out);
    EXPECT_EQ(refusal(EIO), msg::verdict::failed);
}

TEST_F(AgentNodeTest, NonsenseFromAJobIsAFailureInWords)
{
    for (const char *line :
         {"", "[]", "{\"ok\":3}", "\x1b[31m", "{\"ok\":true,\"phases\":{\"spawn\":-1e999}}"}) {
        msg::outcome o = answer(line);
        for (char c : o.reason)
            EXPECT_GE(c, ' ');
        EXPECT_TRUE(o.what == msg::verdict::failed || o.what == msg::verdict::moved);
    }
}

TEST_F(AgentNodeTest, StateComesBack)
{
    saved_state s;
    s.id = 0xffffffffffffffff;
    s.incarnation = 9;
    const member target{5, 12, 13, member_state::suspect, "host", "tcp://host:1", {}};
    s.asked = saved_state::intent{{{1, 2}, 10, 3, 4, 5, "host", {6, 7}}, 11, {8}, {target}};
    s.leases = {{{1, 2}, {3, 4}}};
    s.draining = true;
    auto back = from_text(to_text(s));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->id, s.id);
    EXPECT_EQ(back->asked->ask, s.asked->ask);
    EXPECT_EQ(back->asked->lenders, s.asked->lenders);
    EXPECT_EQ(back->asked->by, s.asked->by);
    EXPECT_EQ(back->asked->agents, s.asked->agents);
    EXPECT_EQ(back->leases, s.leases);
    EXPECT_TRUE(back->draining);
}

TEST_F(AgentNodeTest, AStateOfBeforeIsUnderstood)
{
    auto old = from_text(
        R"({"version":1,"id":7,"incarnation":8,"leases":[],"asked":{"decider":7,"number":1,"job":2,)"
        R"("epoch":3,"target":4,"host":"h","ranks":[5],"lenders":[]}})");
    ASSERT_TRUE(old);
    EXPECT_EQ(old->asked->by, kNoNode);
    EXPECT_TRUE(old->asked->agents.empty());
    EXPECT_FALSE(old->draining);
}

TEST_F(AgentNodeTest, HalfAStateIsNone)
{
    saved_state s;
    s.asked = saved_state::intent{{{1, 2}, 0, 3, 4, 5, "host", {6, 7}}, 9, {8}, {}};
    std::string text = to_text(s);
    for (std::size_t length = 0; length < text.size(); length++)
        ASSERT_FALSE(from_text(std::string_view(text).substr(0, length)));
    EXPECT_FALSE(from_text(R"({"version":1,"id":"x","incarnation":0,"leases":[]})"));
}

} // namespace
} // namespace zc::agent
