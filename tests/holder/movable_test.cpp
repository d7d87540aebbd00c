/* SPDX-License-Identifier: BSD-3-Clause */
#include <map>

#include <gtest/gtest.h>

#include "movable.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

/** What the user has set. */
std::map<std::string, std::string> user;

std::string of_user(const char *name)
{
    const auto found = user.find(name);
    return found == user.end() ? "" : found->second;
}

movable_settings with(std::map<std::string, std::string> set)
{
    user = std::move(set);
    return settings_of_movable(of_user);
}

using pairs = std::vector<std::pair<std::string, std::string>>;

TEST(MovableTest, SetsAllThatARankNeeds)
{
    const movable_settings made = with({{"PMI_RANK", "0"}});
    EXPECT_EQ(
        made.added,
        (pairs{{"MPIR_CVAR_CH4_ZC_DETACH", "1"}, {"MPIR_CVAR_NOLOCAL", "1"}, {"UCX_TLS", "^sm"}}));
    EXPECT_TRUE(made.kept.empty());
    EXPECT_TRUE(made.moves);
}

TEST(MovableTest, KeepsWhatTheUserHasSetAndSaysWhatComesOfIt)
{
    const movable_settings made = with({{"MPICH_NOLOCAL", "0"}, {"UCX_TLS", "tcp,sm,self"}});
    EXPECT_EQ(made.added, (pairs{{"MPIR_CVAR_CH4_ZC_DETACH", "1"}}));
    ASSERT_EQ(made.kept.size(), 2u);
    EXPECT_NE(made.kept[0].find("MPICH_NOLOCAL=0 is kept"), std::string::npos);
    EXPECT_NE(made.kept[0].find("POSIX shared memory"), std::string::npos);
    EXPECT_NE(made.kept[1].find("UCX uses shared memory"), std::string::npos);
}

TEST(MovableTest, SaysNothingOfWhatIsAsItHasToBe)
{
    const movable_settings made = with(
        {{"MPIR_CVAR_CH4_ZC_DETACH", "1"}, {"MPIR_PARAM_NOLOCAL", "yes"}, {"UCX_TLS", "tcp,self"}});
    EXPECT_TRUE(made.added.empty());
    EXPECT_TRUE(made.kept.empty());
    EXPECT_TRUE(with({{"UCX_TLS", "^cuda,shm"}}).kept.empty());
    EXPECT_FALSE(with({{"UCX_TLS", "^cuda"}}).kept.empty());
    EXPECT_FALSE(with({{"UCX_TLS", "all"}}).kept.empty());
}

/** Then nothing else is of use, and shared memory is faster. */
TEST(MovableTest, SetsNothingForRanksThatAreNotToMove)
{
    const movable_settings made = with({{"MPIR_CVAR_CH4_ZC_DETACH", "0"}});
    EXPECT_TRUE(made.added.empty());
    EXPECT_EQ(made.kept.size(), 1u);
    EXPECT_FALSE(made.moves);
    EXPECT_FALSE(with({{"OMPI_COMM_WORLD_RANK", "2"}}).moves);
    EXPECT_FALSE(with({{"MPIR_CVAR_CH4_NETMOD", "ucx"}}).moves);
    EXPECT_TRUE(with({{"OMPI_COMM_WORLD_RANK", "2"}}).added.empty());
    EXPECT_TRUE(with({{"PMIX_RANK", "0"}}).added.empty());
    EXPECT_TRUE(with({{"MPIR_CVAR_CH4_NETMOD", "ucx"}}).added.empty());
    EXPECT_FALSE(with({{"MPIR_CVAR_CH4_NETMOD", "zc"}}).added.empty());
}

TEST(RankMarkTest, IsReadAsItWasWritten)
{
    held_rank one;
    one.job = "h1:41234 of mine";
    one.rank = 3;
    one.size = 8;
    one.home = "h2";
    one.pid = 4711;
    const auto read = read_mark(mark_of(one));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->job, one.job);
    EXPECT_EQ(read->rank, 3);
    EXPECT_EQ(read->size, 8);
    EXPECT_EQ(read->home, "h2");
    EXPECT_EQ(read->pid, 4711);
}

TEST(RankMarkTest, IsNotTakenFromOtherText)
{
    for (const char *text :
         {"", "1", "1 2 3 h1", "x 2 3 h1 job", "0 2 3 h1 job", "1 -2 3 h1 job", "1 2 3 h1\njob"})
        EXPECT_FALSE(read_mark(text)) << text;
}

} // namespace
} // namespace zc::holder
