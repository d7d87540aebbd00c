/* SPDX-License-Identifier: BSD-3-Clause */
#include "moves_together.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>

#include "descriptor.h"

namespace zc::control {
namespace {

constexpr double kFirstWait = 0.25, kMostWait = 4; /* seconds */

/** How far each rank is. */
class gathering {
  public:
    gathering(rank_mover &by, std::size_t ranks, const move_limits &limits)
        : by_(by), wait_s_(limits.wait_s), free_(std::max<std::size_t>(limits.at_once, 1))
    {
        all_.resize(ranks);
        for (std::size_t nth = 0; nth < ranks; nth++)
            all_[nth].group = by.group_of(nth);
    }
    /** Waits for a place. */
    void begin(std::size_t nth)
    {
        std::unique_lock lock(mutex_);
        place_.wait(lock, [this] { return free_ > 0; });
        free_--;
        member &one = all_[nth];
        /* Not sooner, or many ranks take more descriptors than there are. */
        if (has_others(nth))
            one.wake = descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        one.now = state::PREPARING;
        look(); /* it may have the last place */
    }
    void prepares(std::size_t nth)
    {
        const std::lock_guard lock(mutex_);
        all_[nth].now = state::PREPARING;
        take_wake(all_[nth]); /* it may have been let go where it was before */
        look();
    }
    void end(std::size_t nth, bool again)
    {
        const std::lock_guard lock(mutex_);
        free_++;
        place_.notify_one();
        all_[nth].wake = {};
        all_[nth].now = again ? state::RESTING : state::ENDED;
        look();
    }
    /** Nobody waits for it until it begins. */
    void put_off(std::size_t nth)
    {
        const std::lock_guard lock(mutex_);
        all_[nth].now = state::RESTING;
        look();
    }
    bool has_others(std::size_t nth)
    {
        return wait_s_ > 0 && std::ranges::count(all_, all_[nth].group, &member::group) > 1;
    }
    void ready(std::size_t nth, bool last)
    {
        const double now_s = by_.now_s();
        const std::lock_guard lock(mutex_);
        member &one = all_[nth];
        if (one.now == state::PREPARING)
            one.until_s = now_s + wait_s_;
        one.now = state::READY;
        one.last = last;
        look();
    }
    bool may_go_on(std::size_t nth)
    {
        const double now_s = by_.now_s();
        const std::lock_guard lock(mutex_);
        see_late(now_s);
        member &one = all_[nth];
        if (one.now == state::READY && now_s < one.until_s)
            return false;
        if (one.now == state::READY)
            one.now = state::LEAVING; /* by itself, whether it has to finish or not */
        take_wake(one);
        return true;
    }
    int wake_fd(std::size_t nth) const { return all_[nth].wake.fd; }

  private:
    enum class state { TO_BEGIN, PREPARING, READY, FINISHING, LEAVING, RESTING, ENDED };
    struct member {
        std::string group; /* this and the next never change */
        descriptor wake;   /* while it has a place; none: it is seen some time later */
        state now = state::TO_BEGIN;
        bool last = true; /* that it is READY */
        double until_s = 0;
    };
    bool is_waited_for(const member &one) const
    {
        return one.now == state::PREPARING || one.now == state::FINISHING ||
               (one.now == state::TO_BEGIN && free_ > 0);
    }
    static void take_wake(member &one)
    {
        eventfd_t taken;
        eventfd_read(one.wake.fd, &taken);
    }
    static void go_on(member &one)
    {
        one.now = one.last ? state::LEAVING : state::FINISHING;
        eventfd_write(one.wake.fd, 1);
    }
    /** Whose time was up when it was let go has left by itself, and is not READY once more: the
     * others would wait for the whole of its move. */
    void see_late(double now_s)
    {
        bool any = false;
        for (member &one : all_) {
            if (one.now == state::FINISHING && now_s >= one.until_s) {
                one.now = state::LEAVING;
                any = true;
            }
        }
        if (any)
            look();
    }
    /** Who may go on now that something has changed. */
    void look()
    {
        std::vector<std::string> incomplete, unfinished;
        for (const member &one : all_) {
            if (is_waited_for(one))
                incomplete.push_back(one.group);
            if (one.now == state::READY && !one.last)
                unfinished.push_back(one.group);
        }
        for (member &one : all_) {
            if (one.now == state::READY && std::ranges::count(incomplete, one.group) == 0 &&
                (!one.last || std::ranges::count(unfinished, one.group) == 0))
                go_on(one);
        }
    }

    rank_mover &by_;
    double wait_s_;
    std::mutex mutex_;
    std::condition_variable place_;
    std::size_t free_;
    std::vector<member> all_;
};

class departure_of final : public departure {
  public:
    departure_of(gathering &all, std::size_t nth) : all_(all), nth_(nth) {}
    bool has_others() const override { return all_.has_others(nth_); }
    void prepares() override { all_.prepares(nth_); }
    void ready(bool last) override { all_.ready(nth_, last); }
    bool may_go_on() override { return all_.may_go_on(nth_); }
    int wake_fd() const override { return all_.wake_fd(nth_); }

  private:
    gathering &all_;
    std::size_t nth_;
};

attempt try_once(rank_mover &by, std::size_t nth, gathering &all)
{
    departure_of leaving(all, nth);
    try {
        return by.move(nth, leaving);
    } catch (const std::exception &problem) {
        return {false, false, problem.what()};
    }
}

rank_outcome move_one(rank_mover &by, std::size_t nth, double end_s, gathering &all)
{
    rank_outcome one;
    for (double wait = kFirstWait;; wait = std::min(2 * wait, kMostWait)) {
        all.begin(nth);
        if (by.now_s() >= end_s) { /* when there was a place for it */
            all.end(nth, false);
            if (one.attempts == 0) {
                one.why = "the time was up";
                one.busy = true; /* others had all places */
            }
            return one;
        }
        const attempt said = try_once(by, nth, all);
        one.attempts++;
        one.moved = said.ok;
        one.why = said.why;
        one.busy = !said.ok && said.again;
        const bool again = one.busy && by.now_s() + wait <= end_s;
        all.end(nth, again);
        if (!again)
            return one;
        by.wait(wait);
    }
}

} // namespace

std::string rank_mover::group_of(std::size_t)
{
    return "";
}

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
    std::vector<rank_outcome> outcomes(ranks);
    if (ranks == 0)
        return outcomes;
    const double end_s = by.now_s() + limits.timeout_s;
    gathering all(by, ranks, limits);
    const auto move = [&](std::size_t nth) { outcomes[nth] = move_one(by, nth, end_s, all); };
    std::vector<std::jthread> others;
    others.reserve(ranks - 1);
    try {
        while (others.size() + 1 < ranks)
            others.emplace_back(move, others.size() + 1);
    } catch (const std::system_error &) { /* no more threads */
    }
    const std::size_t begun = others.size() + 1;
    for (std::size_t nth = begun; nth < ranks; nth++)
        all.put_off(nth);
    move(0);
    for (std::size_t nth = begun; nth < ranks; nth++)
        move(nth);
    others.clear(); /* joins them */
    return outcomes;
}

} // namespace zc::control
