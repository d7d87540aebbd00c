/* SPDX-License-Identifier: BSD-3-Clause */
#include "moves_together.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace zc::control {
namespace {

constexpr double kFirstWait = 0.25, kMostWait = 4; /* seconds */

/** Places for so many at a time. std::counting_semaphore has its most at compile time. */
class places {
  public:
    explicit places(std::size_t free) : free_(std::max<std::size_t>(free, 1)) {}
    void take()
    {
        std::unique_lock lock(mutex_);
        given_.wait(lock, [this] { return free_ > 0; });
        free_--;
    }
    void give()
    {
        const std::lock_guard lock(mutex_);
        free_++;
        given_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable given_;
    std::size_t free_;
};

attempt try_once(rank_mover &by, std::size_t nth)
{
    try {
        return by.move(nth);
    } catch (const std::exception &problem) {
        return {false, false, problem.what()};
    }
}

rank_outcome move_one(rank_mover &by, std::size_t nth, double end_s, places &free)
{
    rank_outcome one;
    for (double wait = kFirstWait;; wait = std::min(2 * wait, kMostWait)) {
        free.take();
        if (by.now_s() >= end_s) { /* when it was its turn */
            free.give();
            if (one.attempts == 0)
                one.why = "the time was up";
            return one;
        }
        const attempt said = try_once(by, nth);
        free.give();
        one.attempts++;
        one.moved = said.ok;
        one.why = said.why;
        one.busy = !said.ok && said.again;
        if (!one.busy || by.now_s() + wait > end_s)
            return one;
        by.wait(wait);
    }
}

} // namespace

double rank_mover::now_s()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void rank_mover::wait(double seconds)
{
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::vector<rank_outcome> move_together(rank_mover &by, std::size_t ranks,
                                        const move_limits &limits)
{
    std::vector<rank_outcome> all(ranks);
    if (ranks == 0)
        return all;
    const double end_s = by.now_s() + limits.timeout_s;
    places free(limits.at_once);
    const auto move = [&](std::size_t nth) { all[nth] = move_one(by, nth, end_s, free); };
    std::vector<std::jthread> others;
    others.reserve(ranks - 1);
    try {
        while (others.size() + 1 < ranks)
            others.emplace_back(move, others.size() + 1);
    } catch (const std::system_error &) { /* no more threads */
    }
    const std::size_t begun = others.size() + 1;
    move(0);
    for (std::size_t nth = begun; nth < ranks; nth++)
        move(nth);
    others.clear(); /* joins them */
    return all;
}

} // namespace zc::control
