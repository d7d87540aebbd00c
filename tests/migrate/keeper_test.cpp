/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "launcher.h"
#include "scratch_directory.h"

namespace zc::migrate {
namespace {

using nlohmann::json;

/** A keeper, whose successor is a script of the shell, which may wait for a file. */
class Keeper : public testing::Test {
  protected:
    /** Its successor runs @script, where "told" is what tells the keeper something. */
    void start(const std::string &script)
    {
        pid_ = fork();
        if (pid_ == 0) {
            setpgid(0, 0);
            keep(calls_.card().to_text());
            _exit(0);
        }
        const std::string told = "told() { eval \"echo '$1' >&${ZC_MIGRATE_SUCCESSOR#fd:}\"; }; "
                                 "wait_for() { until [ -e $1 ]; do sleep 0.01; done; }; ";
        start_order order{"/bin/sh", {"-c", told + script}, here_.path(), {}, {calls_.card()}};
        hear("order")->send(order.to_json());
        leaver_ = hear("successor");
    }
    /** The next object that it tells the leaver. */
    json told()
    {
        for (;; std::this_thread::yield())
            if (const auto said = leaver_->poll(); said || leaver_->is_closed())
                return said.value_or(json());
    }
    void say_go()
    {
        leaver_->send({{"go", true}});
        EXPECT_EQ(told(), json({{"noted", true}}));
        std::ofstream(here_.path() + "/go");
    }
    void end_group() const { kill(-pid_, SIGTERM); }
    /** How it ends once its leaver is gone. */
    std::string end()
    {
        leaver_.reset();
        return end_by_itself();
    }
    std::string end_by_itself() const
    {
        int status = 0;
        EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
        return describe_end(status);
    }

  private:
    std::unique_ptr<wire> hear(const std::string &why)
    {
        std::string said;
        for (;; std::this_thread::yield())
            if (auto caller = calls_.poll(said); caller && said == why)
                return caller;
    }

    scratch_directory here_;
    call_receiver calls_;
    std::unique_ptr<wire> leaver_;
    pid_t pid_ = -1;
};

constexpr const char *kWell = "has ended with exit status 0";
constexpr const char *kKilled = "was killed by signal 9 (Killed)";

TEST_F(Keeper, EndsWellWithASuccessorThatIsKilled)
{
    start("kill -9 $$");
    EXPECT_EQ(told().value("ended", ""), kKilled);
    EXPECT_EQ(end(), kWell);
}

TEST_F(Keeper, EndsWellWithASuccessorThatExits)
{
    start("exit 3");
    EXPECT_EQ(told().value("ended", ""), "has ended with exit status 3");
    EXPECT_EQ(end(), kWell);
}

TEST_F(Keeper, EndsASuccessorWhoseLeaverIsGone)
{
    start("wait_for go");
    EXPECT_EQ(end(), kWell);
}

TEST_F(Keeper, HandsOnWhatItsSuccessorSays)
{
    start(R"(told "{\"port\": \"here\"}"; wait_for go)");
    EXPECT_EQ(told(), json({{"port", "here"}}));
    EXPECT_EQ(end(), kWell);
}

TEST_F(Keeper, EndsAsARankThatIsKilled)
{
    start("wait_for go; kill -9 $$");
    say_go();
    EXPECT_EQ(end_by_itself(), kKilled);
}

TEST_F(Keeper, EndsAsARankThatExits)
{
    start("wait_for go; exit 5");
    say_go();
    EXPECT_EQ(end_by_itself(), "has ended with exit status 5");
}

TEST_F(Keeper, DoesNotEndWellWithARankThatHasNotFinalized)
{
    start("wait_for go");
    say_go();
    EXPECT_EQ(end_by_itself(), "has ended with exit status 1");
}

TEST_F(Keeper, EndsWellWithARankThatHasFinalized)
{
    start(R"(wait_for go; told "{\"finalized\": true}")");
    say_go();
    EXPECT_EQ(end_by_itself(), kWell);
}

TEST_F(Keeper, EndsWithWhatARankAbortsTheJobWith)
{
    start(R"(wait_for go; told "{\"rank\": 2}"; told "{\"abort\": 7}"; sleep 60)");
    say_go();
    EXPECT_EQ(end_by_itself(), "has ended with exit status 7");
}

/** mpirun ends all of a process group. */
TEST_F(Keeper, LivesAsLongAsItsSuccessor)
{
    start(
        "trap 'exit 4' TERM; told \"{\\\"port\\\": \\\"here\\\"}\"; while :; do sleep 0.01; done");
    EXPECT_EQ(told(), json({{"port", "here"}}));
    say_go();
    end_group();
    EXPECT_EQ(end_by_itself(), "has ended with exit status 4");
}

} // namespace
} // namespace zc::migrate
