/* SPDX-License-Identifier: BSD-3-Clause */
#include "singleton_manager.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace zc::migrate {
namespace {

class SingletonManager : public testing::Test {
  protected:
    SingletonManager()
    {
        int fds[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        manager_ = std::make_unique<singleton_manager>(fds[0]);
        rank_ = fds[1];
    }
    ~SingletonManager() override { hang_up(); }

    void hang_up()
    {
        if (rank_ >= 0)
            close(rank_);
        rank_ = -1;
    }
    void say(const std::string &text) const
    {
        EXPECT_EQ(write(rank_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    std::string heard() const
    {
        char text[2000];
        const ssize_t got = recv(rank_, text, sizeof text, MSG_DONTWAIT);
        return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    }
    /** What the rank gets for @line, which concerns its world only. */
    std::string reply(const std::string &line)
    {
        say(line + "\n");
        EXPECT_EQ(manager_->poll(), std::nullopt) << line;
        return heard();
    }

    std::unique_ptr<singleton_manager> manager_;
    int rank_ = -1;
};

TEST_F(SingletonManager, IsThatOfAWorldOfOne)
{
    EXPECT_EQ(reply("cmd=init pmi_version=1 pmi_subversion=1"),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    EXPECT_EQ(reply("cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
    EXPECT_EQ(reply("cmd=get_appnum"), "cmd=appnum appnum=0\n");
    EXPECT_EQ(reply("cmd=get_universe_size"), "cmd=universe_size size=1\n");
    EXPECT_EQ(reply("cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=singleton\n");
    EXPECT_EQ(reply("cmd=barrier_in"), "cmd=barrier_out\n");
    EXPECT_EQ(reply("cmd=finalize"), "cmd=finalize_ack\n");
}

TEST_F(SingletonManager, LeavesAnAbortToWhoeverKnowsWhatEndsWithIt)
{
    say("cmd=abort exitcode=3\n");
    const auto request = manager_->poll();
    ASSERT_EQ(request, "cmd=abort exitcode=3\n");
    EXPECT_TRUE(singleton_manager::is_abort(*request));
    EXPECT_EQ(heard(), "");
    manager_->let_end();
    EXPECT_EQ(heard(), "cmd=\n"); /* no command: MPICH says nothing of it, and ends */
}

TEST_F(SingletonManager, KeepsWhatIsPut)
{
    EXPECT_EQ(reply("cmd=get kvsname=singleton key=a"),
              "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    EXPECT_EQ(reply("cmd=put kvsname=singleton key=a value=1 b=2"),
              "cmd=put_result rc=0 msg=success\n");
    EXPECT_EQ(reply("cmd=get kvsname=singleton key=a"),
              "cmd=get_result rc=0 msg=success value=1 b=2\n");
}

TEST_F(SingletonManager, ForwardsASpawnWhenItIsWhole)
{
    say("mcmd=spawn\nnprocs=1\nexecname=x\nen");
    EXPECT_EQ(manager_->poll(), std::nullopt);
    say("dcmd\ncmd=get_appnum\n");
    EXPECT_EQ(manager_->poll(), "mcmd=spawn\nnprocs=1\nexecname=x\nendcmd\n");
    EXPECT_EQ(heard(), "");
    manager_->answer("cmd=spawn_result rc=0");
    EXPECT_EQ(heard(), "cmd=spawn_result rc=0\n");
    EXPECT_EQ(manager_->poll(), std::nullopt);
    EXPECT_EQ(heard(), "cmd=appnum appnum=0\n");
}

/* Command @number of @all, as MPI_Comm_spawn_multiple() has it. */
std::string command(int number, int all, const std::string &name)
{
    return "mcmd=spawn\nnprocs=1\nexecname=" + name + "\ntotspawns=" + std::to_string(all) +
           "\nspawnssofar=" + std::to_string(number) + "\narg1=totspawns=1\nargcnt=1\nendcmd\n";
}

TEST_F(SingletonManager, ForwardsASpawnOfSeveralCommandsWhenAllAreThere)
{
    say(command(1, 3, "a"));
    EXPECT_EQ(manager_->poll(), std::nullopt);
    EXPECT_EQ(reply("cmd=get_appnum"), "cmd=appnum appnum=0\n");
    say(command(2, 3, "b") + command(3, 3, "c"));
    EXPECT_EQ(manager_->poll(), command(1, 3, "a") + command(2, 3, "b") + command(3, 3, "c"));
    EXPECT_EQ(manager_->poll(), std::nullopt);
    say(command(1, 1, "d"));
    EXPECT_EQ(manager_->poll(), command(1, 1, "d"));
}

TEST_F(SingletonManager, DropsWhatWasGivenUpOfASpawn)
{
    say(command(1, 2, "a"));
    EXPECT_EQ(manager_->poll(), std::nullopt);
    say(command(1, 2, "b"));
    EXPECT_EQ(manager_->poll(), std::nullopt);
    say(command(2, 2, "c"));
    EXPECT_EQ(manager_->poll(), command(1, 2, "b") + command(2, 2, "c"));
}

TEST_F(SingletonManager, ForwardsWhatIsAskedOfASpawn)
{
    say("cmd=spawn_state spawned=3\n");
    EXPECT_EQ(manager_->poll(), "cmd=spawn_state spawned=3\n");
    manager_->answer("cmd=spawn_state_result rc=0 failed=0");
    EXPECT_EQ(heard(), "cmd=spawn_state_result rc=0 failed=0\n");
}

TEST_F(SingletonManager, ForwardsPublishedNames)
{
    for (const std::string command : {"publish_name", "lookup_name", "unpublish_name"}) {
        say("cmd=" + command + " service=s\n");
        EXPECT_EQ(manager_->poll(), "cmd=" + command + " service=s\n");
    }
}

TEST_F(SingletonManager, FindsThatTheRankIsGone)
{
    EXPECT_FALSE(manager_->is_closed());
    hang_up();
    EXPECT_EQ(manager_->poll(), std::nullopt);
    EXPECT_TRUE(manager_->is_closed());
    manager_->answer("cmd=spawn_result rc=0"); /* does not end this process */
}

} // namespace
} // namespace zc::migrate
