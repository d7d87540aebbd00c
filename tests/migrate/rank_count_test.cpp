/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "rank_count.h"

namespace zc::migrate {
namespace {

/** In another process, which is killed then. */
void set_there(rank_count &ranks, int own)
{
    const pid_t child = fork();
    if (child == 0) {
        ranks.set_own(own + 1);
        ranks.set_own(own);
        raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
}

TEST(RankCount, IsKnownWhenWhoHasCountedIsKilled)
{
    rank_count all;
    EXPECT_EQ(all.get(), 0);
    set_there(all, 2);
    EXPECT_EQ(all.get(), 2);
}

TEST(RankCount, HasThoseOfItsParts)
{
    rank_count all;
    all.set_own(3);
    rank_count part(&all), other(&all);
    set_there(part, 2);
    other.set_own(1);
    EXPECT_EQ(part.get(), 2);
    EXPECT_EQ(other.get(), 1);
    EXPECT_EQ(all.get(), 6);
    other.set_own(0);
    all.set_own(0);
    EXPECT_EQ(all.get(), 2);
}

} // namespace
} // namespace zc::migrate
