/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <unistd.h>
#include <utility>

#include "agent_start.h"
#include "dispatch.h"
#include "error.h"

namespace zc::migrate {
namespace {

using nlohmann::json;
using steps = std::vector<std::string>;
using words = std::vector<std::string>;

const json kReady = {{"address", "tcp://a:1"}, {"socket", "/tmp/z/zcmd.sock"}};
const json kFirstReady = {
    {"address", "tcp://a:1"}, {"socket", "/tmp/z/zcmd.sock"}, {"public", "P"}, {"secret", "S"}};
const json kTogether = {{"together", true}};

/** Writes down what a dispatch wants. */
class DispatchTest : public testing::Test, public dispatch_actions {
  protected:
    dispatch &on(std::size_t hosts, double wait_s = 60, bool finds = false)
    {
        words all;
        for (std::size_t i = 0; i < hosts; i++)
            all.push_back(std::string(1, static_cast<char>('a' + i)));
        it_.emplace(all, json{{"version", 1}, {"mode", "move"}, {"config", "C"}}, wait_s, finds,
                    *this);
        it_->begin(0);
        return *it_;
    }
    /** Of three hosts, up to the job's start. */
    dispatch &running()
    {
        dispatch &it = on(3);
        it.agent_says(0, kFirstReady, 1);
        it.agent_says(1, kReady, 2);
        it.agent_says(2, kReady, 2);
        for (std::size_t i = 0; i < 3; i++)
            it.agent_says(i, kTogether, 3);
        EXPECT_EQ(take().back(), "job");
        return it;
    }
    steps take() { return std::exchange(done_, {}); }
    std::string said() { return std::exchange(said_, ""); }

    std::vector<json> orders_;

  private:
    void start_agent(std::size_t agent, const json &order) override
    {
        done_.push_back("start " + std::to_string(agent));
        orders_.push_back(order);
    }
    void release_agent(std::size_t agent) override
    {
        done_.push_back("release " + std::to_string(agent));
    }
    void kill_agent(std::size_t agent, int signal) override
    {
        done_.push_back("kill " + std::to_string(agent) + " " + std::to_string(signal));
    }
    void tell_agent(std::size_t agent, const json &what) override
    {
        done_.push_back("tell " + std::to_string(agent));
        orders_.push_back(what);
    }
    void start_job(const std::string &profiles) override
    {
        done_.emplace_back(profiles.empty() ? "job" : "job " + profiles);
    }
    void signal_job(int signal) override { done_.push_back("signal " + std::to_string(signal)); }
    void say(const std::string &text) override { said_ += text + "\n"; }

    std::optional<dispatch> it_;
    steps done_;
    std::string said_;
};

TEST_F(DispatchTest, TheFirstAgentMakesTheKeyAndTheOthersJoinByIt)
{
    dispatch &it = on(3);
    EXPECT_EQ(take(), steps{"start 0"});
    EXPECT_FALSE(orders_[0].contains("secret"));
    EXPECT_EQ(orders_[0]["seeds"], json::array());
    EXPECT_EQ(orders_[0]["host"], "a");
    it.agent_says(0, kFirstReady, 1);
    EXPECT_EQ(take(), (steps{"start 1", "start 2"}));
    for (const json &order : {orders_[1], orders_[2]}) {
        EXPECT_EQ(order["secret"], "S");
        EXPECT_EQ(order["public"], "P");
        EXPECT_EQ(order["seeds"], json{"tcp://a:1"});
        EXPECT_EQ(order["agents"], 3);
        EXPECT_EQ(order["version"], 1);
    }
}

TEST_F(DispatchTest, TheJobStartsWhenEachAgentKnowsAllOthers)
{
    dispatch &it = on(2);
    it.agent_says(0, kFirstReady, 1);
    it.agent_says(1, kReady, 1);
    it.agent_says(1, kTogether, 2);
    EXPECT_EQ(take(), (steps{"start 0", "start 1"}));
    it.agent_says(0, kTogether, 2);
    EXPECT_EQ(take(), steps{"job"});
    EXPECT_NE(said().find("zcctl nodes --agent /tmp/z/zcmd.sock"), std::string::npos);
}

TEST_F(DispatchTest, WhatIsNotUnderstoodIsShownUnlessAKeyMayBeInIt)
{
    dispatch &it = on(2);
    it.agent_prints(0, "Welcome to a", 1);
    EXPECT_EQ(said(), "a: Welcome to a\n");
    const std::string key = json{{"address", "tcp://a:1"}, {"secret", "S0S0"}}.dump();
    for (const std::string &line :
         {"Welcome" + key, key.substr(0, key.size() - 3), "[" + key + "]"}) {
        it.agent_prints(0, line, 1);
        EXPECT_EQ(said(), "a: what the agent says is not understood\n");
    }
    EXPECT_EQ(take(), steps{"start 0"});
    it.agent_prints(0, kFirstReady.dump(), 1);
    EXPECT_EQ(take(), steps{"start 1"});
    EXPECT_EQ(said(), "");
}

TEST_F(DispatchTest, OneHostNeedsNoOther)
{
    dispatch &it = on(1);
    it.agent_says(0, kFirstReady, 1);
    it.agent_says(0, kTogether, 1);
    EXPECT_EQ(take(), (steps{"start 0", "job"}));
}

TEST_F(DispatchTest, LaunchersAreStartedSoManyAtATime)
{
    dispatch &it = on(dispatch::kAtOnce + 3);
    it.agent_says(0, kFirstReady, 1);
    EXPECT_EQ(take().size(), 1 + dispatch::kAtOnce);
    it.agent_says(5, kReady, 1);
    EXPECT_EQ(take(), steps{"start " + std::to_string(dispatch::kAtOnce + 1)});
}

TEST_F(DispatchTest, AgentsEndWithTheJobAndItsStatusIsOurs)
{
    dispatch &it = running();
    it.job_ended(7, 10);
    EXPECT_EQ(take(), (steps{"release 0", "release 1", "release 2"}));
    for (std::size_t i = 0; i < 3; i++) {
        EXPECT_FALSE(it.is_over());
        it.agent_ended(i, "has ended with exit status 0", 11);
    }
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.status(), 7);
}

TEST_F(DispatchTest, AnAgentThatCannotBeStartedEndsTheOthersAndNoJobIsStarted)
{
    dispatch &it = on(3);
    it.agent_says(0, kFirstReady, 1);
    it.agent_says(1, kReady, 1);
    take();
    it.agent_ended(2, "has ended with exit status 127", 2);
    EXPECT_EQ(take(), (steps{"release 0", "release 1"}));
    EXPECT_EQ(said(), "the agent on c has ended with exit status 127, and so the job is not "
                      "started\n");
    it.agent_ended(1, "has ended with exit status 0", 3);
    it.agent_ended(0, "has ended with exit status 0", 3);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.status(), 1);
    EXPECT_EQ(said(), "");
}

TEST_F(DispatchTest, TheFirstAgentThatCannotBeStartedIsTheLast)
{
    dispatch &it = on(3);
    it.agent_ended(0, "has ended with exit status 255", 2);
    EXPECT_EQ(take(), steps{"start 0"});
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.status(), 1);
}

TEST_F(DispatchTest, AFirstAgentWithoutAKeyIsNone)
{
    dispatch &it = on(2);
    it.agent_says(0, kReady, 1);
    EXPECT_EQ(take(), (steps{"start 0", "release 0"}));
    EXPECT_NE(said().find("no key"), std::string::npos);
}

TEST_F(DispatchTest, TimeIsUpForAgentsThatDoNotFindEachOther)
{
    dispatch &it = on(3, 20);
    it.agent_says(0, kFirstReady, 1);
    it.agent_says(1, kReady, 1);
    take();
    it.tick(19.9);
    EXPECT_TRUE(take().empty());
    it.tick(20);
    EXPECT_EQ(take(), (steps{"release 0", "release 1", "release 2"}));
    const std::string text = said();
    EXPECT_NE(text.find("agent on b does not find all others"), std::string::npos) << text;
    EXPECT_NE(text.find("agent on c does not answer"), std::string::npos) << text;
    it.tick(20 + dispatch::kPolite);
    EXPECT_EQ(take(), (steps{"kill 0 15", "kill 1 15", "kill 2 15"}));
    it.agent_ended(0, "", 31);
    it.tick(20 + dispatch::kPolite + dispatch::kFirm);
    it.tick(21 + dispatch::kPolite + dispatch::kFirm);
    EXPECT_EQ(take(), (steps{"kill 1 9", "kill 2 9"}));
    it.agent_ended(1, "", 34);
    it.agent_ended(2, "", 34);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.status(), 1);
}

TEST_F(DispatchTest, AnAgentThatDiesCostsTheJobNothing)
{
    dispatch &it = running();
    said();
    it.agent_ended(1, "was killed by signal 9 (Killed)", 5);
    EXPECT_NE(said().find("agent on b was killed by signal 9 (Killed); the job goes on"),
              std::string::npos);
    EXPECT_TRUE(take().empty());
    EXPECT_FALSE(it.is_over());
    it.job_ended(0, 6);
    EXPECT_EQ(take(), (steps{"release 0", "release 2"}));
}

TEST_F(DispatchTest, SignalsAreTheJobsWhileItRuns)
{
    dispatch &it = running();
    it.signalled(15, 5);
    EXPECT_EQ(take(), steps{"signal 15"});
    it.job_ended(143, 6);
    take();
    it.signalled(2, 7); /* impatience */
    EXPECT_EQ(take(), (steps{"kill 0 15", "kill 1 15", "kill 2 15"}));
}

TEST_F(DispatchTest, ASignalBeforeTheJobEndsTheAgents)
{
    dispatch &it = on(2);
    it.signalled(2, 0.5);
    EXPECT_EQ(take(), (steps{"start 0", "release 0"}));
    it.agent_ended(0, "", 1);
    EXPECT_TRUE(it.is_over());
    EXPECT_EQ(it.status(), 130);
}

TEST_F(DispatchTest, WhatComesTooLateStartsNothing)
{
    dispatch &it = on(2);
    it.signalled(2, 0.5);
    take();
    it.agent_says(0, kFirstReady, 1);
    EXPECT_TRUE(take().empty());
}

const json kNoAgent = {{"found", false}};

json found_at(const std::string &address, const std::string &secret = "S",
              const std::string &profiles = "/run/ranks")
{
    return {{"found", true},     {"address", address},   {"public", "P"}, {"secret", secret},
            {"mode", "observe"}, {"profiles", profiles}, {"socket", "/s"}};
}

TEST_F(DispatchTest, AgentsThatRunAlreadyAreHandedToTheJobAndNotEnded)
{
    dispatch &it = on(3, 60, true);
    EXPECT_EQ(take(), (steps{"start 0", "start 1", "start 2"}));
    EXPECT_EQ(orders_[0], (json{{"version", 1}, {"find", true}, {"config", "C"}}));
    it.agent_says(0, kNoAgent, 1);
    it.agent_says(1, found_at("tcp://b:1"), 1);
    EXPECT_NE(said().find("runs on b has a mode of its own: observe"), std::string::npos);
    EXPECT_TRUE(take().empty());
    orders_.clear();
    it.agent_says(2, kNoAgent, 1);
    EXPECT_EQ(take(), (steps{"tell 0", "tell 2"}));
    for (const json &order : orders_) {
        EXPECT_EQ(order["secret"], "S");
        EXPECT_EQ(order["seeds"], json{"tcp://b:1"});
        EXPECT_EQ(order["profiles"], "/run/ranks");
        EXPECT_EQ(order["agents"], 3);
    }
    orders_.clear();
    it.agent_says(0, {{"address", "tcp://a:1"}}, 2);
    it.agent_says(0, kTogether, 2);
    it.agent_says(2, {{"address", "tcp://c:1"}}, 2);
    EXPECT_EQ(take(), steps{"tell 1"});
    EXPECT_EQ(orders_[0], (json{{"others", {"tcp://a:1", "tcp://b:1", "tcp://c:1"}}}));
    it.agent_says(2, kTogether, 3);
    EXPECT_TRUE(take().empty());
    it.agent_says(1, kTogether, 3);
    EXPECT_EQ(take(), steps{"job /run/ranks"});
    EXPECT_NE(said().find("not to be ended: those on b"), std::string::npos);
    /* Its launcher is told; what was found hears nothing of it. */
    it.job_ended(0, 4);
    EXPECT_EQ(take(), (steps{"release 0", "release 1", "release 2"}));
}

TEST_F(DispatchTest, NoneIsStartedWhereAllRunAlready)
{
    dispatch &it = on(2, 60, true);
    it.agent_says(0, found_at("tcp://a:1"), 1);
    take();
    it.agent_says(1, found_at("tcp://b:1"), 1);
    EXPECT_EQ(take(), (steps{"tell 0", "tell 1"}));
    EXPECT_EQ(orders_.back(), (json{{"others", {"tcp://a:1", "tcp://b:1"}}}));
    it.agent_says(0, kTogether, 2);
    it.agent_says(1, kTogether, 2);
    EXPECT_EQ(take(), steps{"job /run/ranks"});
}

TEST_F(DispatchTest, WhereNoneRunsTheFirstMakesTheKey)
{
    dispatch &it = on(2, 60, true);
    take();
    it.agent_says(1, kNoAgent, 1);
    it.agent_says(0, kNoAgent, 1);
    EXPECT_EQ(take(), steps{"tell 0"});
    EXPECT_FALSE(orders_.back().contains("secret"));
    EXPECT_FALSE(orders_.back().contains("profiles"));
    it.agent_says(0, kFirstReady, 2);
    EXPECT_EQ(take(), steps{"tell 1"});
    EXPECT_EQ(orders_.back()["secret"], "S");
    it.agent_says(1, kReady, 2);
    it.agent_says(0, kTogether, 2);
    it.agent_says(1, kTogether, 2);
    EXPECT_EQ(take(), steps{"job"});
}

TEST_F(DispatchTest, AgentsThatAJobCannotHaveTogetherAreRefused)
{
    for (const json &other :
         {found_at("tcp://b:1", "T"), found_at("tcp://b:1", "S", "/tmp/ranks")}) {
        dispatch &it = on(3, 60, true);
        it.agent_says(0, found_at("tcp://a:1"), 1);
        take();
        it.agent_says(1, other, 1);
        EXPECT_EQ(take(), (steps{"release 0", "release 1", "release 2"}));
        EXPECT_NE(said().find("a job can have but one"), std::string::npos);
    }
}

TEST_F(DispatchTest, LookingTakesNoLongerThanTheJobWaits)
{
    dispatch &it = on(dispatch::kAtOnce + 2, 20, true);
    EXPECT_EQ(take().size(), dispatch::kAtOnce);
    it.agent_says(3, kNoAgent, 1);
    EXPECT_EQ(take(), steps{"start " + std::to_string(dispatch::kAtOnce)});
    it.tick(20);
    EXPECT_NE(said().find("the agent on a does not answer"), std::string::npos);
    EXPECT_EQ(take().size(), dispatch::kAtOnce + 1);
}

TEST_F(DispatchTest, ASearchThatFailsStartsNoJob)
{
    dispatch &it = on(2, 60, true);
    take();
    it.agent_ended(0, "has ended with exit status 4", 1);
    EXPECT_EQ(take(), steps{"release 1"});
}

/** Without the variables that say how processes are started. */
class AgentStartTest : public testing::Test {
  protected:
    AgentStartTest()
    {
        for (const char *name :
             {"HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCHER_EXTRA_ARGS", "SLURM_JOB_ID"})
            unsetenv(name);
    }
    ~AgentStartTest() override
    {
        for (const char *name :
             {"HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCHER_EXTRA_ARGS", "SLURM_JOB_ID"})
            unsetenv(name);
    }
    static words of(const words &mpiexec, const std::string &chosen = "",
                    const std::string &host = "b")
    {
        return find_agent_start(chosen, mpiexec).command(host, "/z/zcmd");
    }
};

TEST_F(AgentStartTest, SshUnlessMpiexecIsToldOtherwise)
{
    EXPECT_EQ(of({"mpiexec", "-hosts", "b", "p"}),
              (words{"ssh", "-T", "-o", "BatchMode=yes", "b", "/z/zcmd", "dispatched"}));
    EXPECT_EQ(of({"mpiexec", "-launcher", "rsh", "p"}),
              (words{"rsh", "b", "/z/zcmd", "dispatched"}));
    EXPECT_EQ(of({"mpiexec", "-launcher", "ssh", "-launcher-exec", "/x/on-host", "p"}),
              (words{"/x/on-host", "b", "/z/zcmd", "dispatched"}));
    setenv("HYDRA_LAUNCHER_EXEC", "/y", 1);
    setenv("HYDRA_LAUNCHER_EXTRA_ARGS", "-F my_config", 1);
    EXPECT_EQ(of({"mpiexec", "p"}), (words{"/y", "-F", "my_config", "b", "/z/zcmd", "dispatched"}));
}

TEST_F(AgentStartTest, SrunInAJobOfSlurm)
{
    setenv("SLURM_JOB_ID", "7", 1);
    EXPECT_EQ(of({"mpiexec", "p"}), (words{"srun", "--overlap", "--nodes=1", "--ntasks=1",
                                           "--nodelist=b", "/z/zcmd", "dispatched"}));
    EXPECT_EQ(of({"mpiexec", "-launcher", "ssh", "p"})[0], "ssh");
}

TEST_F(AgentStartTest, ALauncherThatIsNotKnownIsRefused)
{
    EXPECT_THROW(of({"mpiexec", "-launcher", "lsf", "p"}), error);
    EXPECT_EQ(of({"mpiexec", "-launcher", "lsf", "p"}, "blaunch")[0], "blaunch");
}

TEST_F(AgentStartTest, NothingIsNeededForThisHostUnlessACommandIsGiven)
{
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    for (const char *own : {static_cast<const char *>(name), "localhost"}) {
        EXPECT_EQ(of({"mpiexec", "p"}, "", own), (words{"/z/zcmd", "dispatched"}));
        EXPECT_EQ(of({"mpiexec", "p"}, "enter", own),
                  (words{"enter", own, "/z/zcmd", "dispatched"}));
    }
}

TEST_F(AgentStartTest, TheHostGoesWhereTheCommandWantsIt)
{
    EXPECT_EQ(of({}, "enter --host=%h -x"),
              (words{"enter", "--host=b", "-x", "/z/zcmd", "dispatched"}));
}

} // namespace
} // namespace zc::migrate
