/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>

#include <gtest/gtest.h>

#include "moves_together.h"

namespace zc::control {
namespace {

using namespace std::chrono_literals;

const attempt kMoves{true, false, ""};
const attempt kAway{false, true, "no other rank stays"};
const attempt kNever{false, false, "it has a socket"};

/** Says of each rank in turn what it is told to; a move takes a second, of a clock that all ranks
 * have together, so it goes the faster the more of them there are. */
class told_mover : public rank_mover {
  public:
    attempt move(std::size_t nth, departure &) override
    {
        const std::lock_guard lock(mutex_);
        now_ += 1;
        tried[nth]++;
        std::deque<attempt> &left = says[nth];
        if (left.empty())
            return kMoves;
        const attempt next = left.front();
        if (left.size() > 1 || next.ok)
            left.pop_front();
        return next;
    }
    double now_s() override
    {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    void wait(double seconds) override
    {
        const std::lock_guard lock(mutex_);
        now_ += seconds;
    }

    std::map<std::size_t, std::deque<attempt>> says; /* the last again and again */
    std::map<std::size_t, int> tried;

  private:
    std::mutex mutex_;
    double now_ = 100;
};

/** Each move lasts until so many are under way, or have been. */
class gathering_mover final : public rank_mover {
  public:
    explicit gathering_mover(std::size_t wanted) : wanted_(wanted) {}
    attempt move(std::size_t, departure &) override
    {
        std::unique_lock lock(mutex_);
        most = std::max(most, ++now_);
        more_.notify_all();
        const bool come = more_.wait_for(lock, 30s, [this] { return most >= wanted_; });
        now_--;
        return {come, false, come ? "" : "it was alone"};
    }
    std::size_t most = 0; /* at a time */

  private:
    std::mutex mutex_;
    std::condition_variable more_;
    std::size_t wanted_, now_ = 0;
};

TEST(MovesTogetherTest, MovesAllAtOnce)
{
    gathering_mover by(20);
    for (const rank_outcome &one : move_together(by, 20, {60, 20})) {
        EXPECT_TRUE(one.moved) << one.why;
        EXPECT_EQ(one.attempts, 1);
    }
}

TEST(MovesTogetherTest, MovesNoMoreAtATimeThanItMay)
{
    gathering_mover by(3);
    for (const rank_outcome &one : move_together(by, 40, {60, 3}))
        EXPECT_TRUE(one.moved) << one.why;
    EXPECT_EQ(by.most, 3u);
}

TEST(MovesTogetherTest, MovesOneRankInTheCallersThread)
{
    class : public rank_mover {
        attempt move(std::size_t, departure &) override
        {
            return {std::this_thread::get_id() == caller, false, ""};
        }
        std::thread::id caller = std::this_thread::get_id();
    } by;
    EXPECT_TRUE(move_together(by, 1, {}).front().moved);
    EXPECT_TRUE(move_together(by, 0, {}).empty());
}

TEST(MovesTogetherTest, TriesAgainWhileAnotherMoveIsInTheWay)
{
    told_mover by;
    by.says[1] = {kAway, kAway, kMoves};
    const auto all = move_together(by, 3, {600, 8});
    EXPECT_EQ(by.tried, (std::map<std::size_t, int>{{0, 1}, {1, 3}, {2, 1}}));
    for (const rank_outcome &one : all) {
        EXPECT_TRUE(one.moved);
        EXPECT_FALSE(one.busy);
    }
    EXPECT_EQ(all[1].attempts, 3);
}

/** Or those that it waits for would not be moved. */
TEST(MovesTogetherTest, OneThatWaitsToBeTriedAgainKeepsNoOther)
{
    class : public told_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            const attempt said = told_mover::move(nth, leaving);
            const std::lock_guard lock(mutex_);
            moved_ += said.ok;
            return nth == 0 && moved_ < 2 ? kAway : said;
        }
        std::mutex mutex_;
        int moved_ = 0;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {1e6, 1}))
        EXPECT_TRUE(one.moved);
}

TEST(MovesTogetherTest, GivesUpWhenTheTimeIsUp)
{
    told_mover by;
    by.says[0] = {kAway};
    const double begin = by.now_s();
    const auto all = move_together(by, 1, {30, 1});
    EXPECT_FALSE(all[0].moved);
    EXPECT_TRUE(all[0].busy);
    EXPECT_GT(all[0].attempts, 3);
    EXPECT_EQ(all[0].why, kAway.why);
    EXPECT_LE(by.now_s() - begin, 32); /* 30 and the attempts at its end */
}

TEST(MovesTogetherTest, TriesNothingWhenTheTimeIsUp)
{
    told_mover by;
    const auto all = move_together(by, 3, {0.5, 1});
    EXPECT_EQ(std::ranges::count_if(all, &rank_outcome::moved), 1);
    for (const rank_outcome &one : all) {
        if (!one.moved) {
            EXPECT_EQ(one.attempts, 0);
            EXPECT_EQ(one.why, "the time was up");
            EXPECT_TRUE(one.busy) << "the first was in the way";
        }
    }
}

TEST(MovesTogetherTest, WhatHasMovedStaysAndAllAreTried)
{
    told_mover by;
    by.says[1] = {kNever};
    const auto all = move_together(by, 3, {60, 8});
    EXPECT_TRUE(all[0].moved);
    EXPECT_FALSE(all[1].moved);
    EXPECT_FALSE(all[1].busy);
    EXPECT_EQ(all[1].why, kNever.why);
    EXPECT_TRUE(all[2].moved);
}

TEST(MovesTogetherTest, AnErrorIsTheOutcomeOfItsRank)
{
    class : public rank_mover {
        attempt move(std::size_t nth, departure &) override
        {
            if (nth == 1)
                throw std::runtime_error("no key");
            return kMoves;
        }
    } by;
    const auto all = move_together(by, 2, {60, 8});
    EXPECT_TRUE(all[0].moved);
    EXPECT_FALSE(all[1].moved);
    EXPECT_EQ(all[1].why, "no key");
}

/* ---- ranks that leave together ---- */

/** Each rank takes as long to be ready as it is told, and goes on when it may; -1: it is refused
 * instead. */
class leaving_mover final : public rank_mover {
  public:
    explicit leaving_mover(std::vector<int> ready_ms, std::string groups = "", bool copies = false)
        : ready_ms_(std::move(ready_ms)), groups_(std::move(groups)), copies_(copies),
          went(ready_ms_.size()), left(ready_ms_.size())
    {
    }
    attempt move(std::size_t nth, departure &leaving) override
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(std::abs(ready_ms_[nth])));
        if (ready_ms_[nth] < 0)
            return kNever;
        if (leaving.has_others() && copies_)
            went[nth] = wait_for_others(leaving, nth, false);
        if (leaving.has_others())
            left[nth] = wait_for_others(leaving, nth, true);
        return kMoves;
    }
    std::string group_of(std::size_t nth) override
    {
        return groups_.empty() ? "" : groups_.substr(nth, 1);
    }

  private:
    int wait_for_others(departure &leaving, std::size_t nth, bool last)
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(last && copies_ ? 20 * nth : 0));
        {
            const std::lock_guard lock(mutex_);
            ready_++;
        }
        leaving.ready(last);
        while (!leaving.may_go_on()) {
            pollfd wake{leaving.wake_fd(), POLLIN, 0};
            poll(&wake, 1, 100);
        }
        pollfd wake{leaving.wake_fd(), POLLIN, 0};
        EXPECT_EQ(poll(&wake, 1, 0), 0) << "it would turn for ever";
        const std::lock_guard lock(mutex_);
        return ready_;
    }
    std::vector<int> ready_ms_;
    std::string groups_;
    bool copies_;
    std::mutex mutex_;
    int ready_ = 0;

  public:
    std::vector<int> went, left; /* of each rank, how often any was ready then */
};

TEST(MovesTogetherTest, NoneLeavesBeforeAllHaveFinished)
{
    leaving_mover by({1, 100, 1}, "", true);
    for (const rank_outcome &one : move_together(by, 3, {60, 8, 60}))
        EXPECT_TRUE(one.moved);
    EXPECT_GE(*std::ranges::min_element(by.went), 3);
    EXPECT_EQ(by.left, (std::vector<int>{6, 6, 6}));
}

TEST(MovesTogetherTest, NoneLeavesBeforeAllAreReady)
{
    leaving_mover by({1, 200, 1, 50});
    for (const rank_outcome &one : move_together(by, 4, {60, 8, 60}))
        EXPECT_TRUE(one.moved);
    EXPECT_EQ(by.left, (std::vector<int>{4, 4, 4, 4}));
}

TEST(MovesTogetherTest, NobodyWaitsForOneThatHasFailed)
{
    leaving_mover by({1, -100, 1});
    const auto all = move_together(by, 3, {60, 8, 60});
    EXPECT_EQ(by.left, (std::vector<int>{2, 0, 2}));
    EXPECT_FALSE(all[1].moved);
    EXPECT_TRUE(all[0].moved && all[2].moved);
}

TEST(MovesTogetherTest, NobodyWaitsForOneThatHasNoPlaceYet)
{
    leaving_mover by({1, 1, 1, 1, 1});
    for (const rank_outcome &one : move_together(by, 5, {60, 2, 60}))
        EXPECT_TRUE(one.moved);
    EXPECT_GE(*std::ranges::min_element(by.left), 2) << "the first did not wait for the second";
}

TEST(MovesTogetherTest, NobodyWaitsForAnotherGroup)
{
    leaving_mover by({1, 1, 1000, 1000}, "aabb");
    for (const rank_outcome &one : move_together(by, 4, {60, 8, 60}))
        EXPECT_TRUE(one.moved);
    EXPECT_EQ(by.left, (std::vector<int>{2, 2, 4, 4}));
}

TEST(MovesTogetherTest, OneThatIsAloneWaitsForNobody)
{
    leaving_mover by({1, 1}, "ab");
    move_together(by, 2, {60, 8, 60});
    EXPECT_EQ(by.left, (std::vector<int>{0, 0})) << "it was asked to be ready";
}

TEST(MovesTogetherTest, NobodyWaitsIfThatIsNotWanted)
{
    leaving_mover by({1, 1});
    move_together(by, 2, {60, 8, 0});
    EXPECT_EQ(by.left, (std::vector<int>{0, 0}));
}

TEST(MovesTogetherTest, NobodyWaitsLongerThanThat)
{
    leaving_mover by({1, 1000});
    move_together(by, 2, {60, 8, 0.1});
    EXPECT_EQ(by.left, (std::vector<int>{1, 2}));
}

/** It would wait for the others, which would wait for it. */
TEST(MovesTogetherTest, NobodyWaitsForOneThatIsToBeTriedAgain)
{
    class : public rank_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            std::unique_lock lock(mutex_);
            if (nth == 1 && moved_ < 2)
                return kAway;
            lock.unlock();
            leaving.ready(true);
            while (!leaving.may_go_on())
                std::this_thread::sleep_for(1ms);
            lock.lock();
            moved_++;
            more_.notify_all();
            return kMoves;
        }
        void wait(double) override
        {
            std::unique_lock lock(mutex_);
            EXPECT_TRUE(more_.wait_for(lock, 30s, [this] { return moved_ == 2; }));
        }
        std::mutex mutex_;
        std::condition_variable more_;
        int moved_ = 0;
    } by;
    for (const rank_outcome &one : move_together(by, 3, {60, 8, 60}))
        EXPECT_TRUE(one.moved) << one.why;
}

void wait_until_it_may(departure &leaving)
{
    while (!leaving.may_go_on())
        std::this_thread::sleep_for(1ms);
}

bool is_readable(int fd)
{
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) > 0;
}

template <class F>
void wait_for(F done)
{
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!done() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(done());
}

TEST(MovesTogetherTest, OneThatIsToGoToAnotherHostIsWaitedForOnceMore)
{
    class : public rank_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            if (nth == 0) {
                leaving.ready(true);
                leaving.prepares(); /* for another host */
                anew_ = true;
                std::this_thread::sleep_for(200ms);
                copied_ = true;
            } else {
                wait_for([this] { return anew_.load(); });
            }
            leaving.ready(true);
            wait_until_it_may(leaving);
            EXPECT_TRUE(copied_) << "it has left alone";
            return kMoves;
        }
        std::atomic<bool> anew_ = false, copied_ = false;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {60, 8, 60}))
        EXPECT_TRUE(one.moved) << one.why;
}

/** Who waits for what is to be read would turn for ever, as nobody reads it. */
TEST(MovesTogetherTest, WhatWasSaidBeforeItPreparesOnceMoreIsForgotten)
{
    class : public rank_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            const bool again = nth == 0 && ++tries_ > 1;
            EXPECT_FALSE(is_readable(leaving.wake_fd()));
            leaving.ready(true);
            if (nth == 1) {
                wait_until_it_may(leaving);
                return kMoves;
            }
            wait_for([&] { return is_readable(leaving.wake_fd()); });
            if (!again)
                return kAway;
            leaving.prepares();
            EXPECT_FALSE(is_readable(leaving.wake_fd()));
            return kMoves;
        }
        void wait(double) override {}
        int tries_ = 0;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {60, 8, 60}))
        EXPECT_TRUE(one.moved) << one.why;
}

/** By a clock that stands still but for what is said here. */
class timed_mover : public rank_mover {
  public:
    double now_s() override { return now; }
    std::atomic<double> now = 100;
};

/** Its own zc-hold may have let it leave in the same moment, and then does not say so. */
TEST(MovesTogetherTest, NobodyWaitsForOneThatHasLeftInsteadOfFinishing)
{
    class : public timed_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            if (nth == 0) {
                leaving.ready(false); /* until 110 */
                is_ready_ = true;
                wait_for([this] { return has_left_.load(); });
                leaving.ready(true); /* late: it waits no more */
                EXPECT_TRUE(leaving.may_go_on());
                return kMoves;
            }
            wait_for([this] { return is_ready_.load(); });
            now = 109.5;
            leaving.ready(false); /* until 119.5 */
            EXPECT_TRUE(leaving.may_go_on());
            leaving.ready(true);
            EXPECT_FALSE(leaving.may_go_on());
            now = 110.5;
            EXPECT_TRUE(leaving.may_go_on());
            has_left_ = true;
            return kMoves;
        }
        std::atomic<bool> is_ready_ = false, has_left_ = false;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {600, 8, 10}))
        EXPECT_TRUE(one.moved) << one.why;
}

TEST(MovesTogetherTest, OneThatHasToFinishWhenItsTimeIsUpWaitsNoSecondTime)
{
    class : public timed_mover {
        attempt move(std::size_t nth, departure &leaving) override
        {
            if (nth == 1) { /* it is PREPARING all the time */
                wait_for([this] { return has_left_.load(); });
                return kMoves;
            }
            leaving.ready(false);
            EXPECT_FALSE(leaving.may_go_on());
            now = 111;
            EXPECT_TRUE(leaving.may_go_on());
            leaving.ready(true);
            EXPECT_TRUE(leaving.may_go_on());
            has_left_ = true;
            return kMoves;
        }
        std::atomic<bool> has_left_ = false;
    } by;
    for (const rank_outcome &one : move_together(by, 2, {600, 8, 10}))
        EXPECT_TRUE(one.moved) << one.why;
}

/* ---- descriptors ---- */

int open_descriptors()
{
    int open = 0;
    for (int fd = 0; fd < 1024; fd++)
        open += fcntl(fd, F_GETFD) >= 0;
    return open;
}

TEST(MovesTogetherTest, OnlyRanksOnTheirWayHaveDescriptors)
{
    class counting_mover final : public rank_mover {
        attempt move(std::size_t, departure &leaving) override
        {
            EXPECT_GE(leaving.wake_fd(), 0);
            EXPECT_LE(open_descriptors(), before + 2);
            return kMoves;
        }

      public:
        int before = 1024;
    } by;
    /* UndefinedBehaviorSanitizer opens a pipe to look at the first object of each type, in one
     * thread while another one counts. */
    move_together(by, 2, {60, 2, 60});
    by.before = open_descriptors();
    for (const rank_outcome &one : move_together(by, 40, {60, 2, 60}))
        EXPECT_TRUE(one.moved) << one.why;
    EXPECT_EQ(open_descriptors(), by.before);
}

TEST(MovesTogetherTest, RanksLeaveTogetherWithoutDescriptors)
{
    /* As above, of UndefinedBehaviorSanitizer. */
    leaving_mover with_descriptors({1, 1, 1});
    move_together(with_descriptors, 3, {60, 8, 60});
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    leaving_mover by({1, 100, 1});
    const auto all = move_together(by, 3, {60, 8, 60});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (const rank_outcome &one : all)
        EXPECT_TRUE(one.moved) << one.why;
    EXPECT_EQ(by.left, (std::vector<int>{3, 3, 3}));
}

} // namespace
} // namespace zc::control
