/* SPDX-License-Identifier: BSD-3-Clause */
#include "moves_in_turn.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace zc::control {
namespace {

constexpr double kFirstWait = 0.25, kMostWait = 4; /* seconds */

rank_outcome move_one(rank_mover &by, std::size_t nth, double end_s)
{
    rank_outcome one;
    for (double wait = kFirstWait;; wait = std::min(2 * wait, kMostWait)) {
        const attempt said = by.move(nth);
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

std::vector<rank_outcome> move_in_turn(rank_mover &by, std::size_t ranks, double timeout_s,
                                       bool stops)
{
    std::vector<rank_outcome> all(ranks);
    const double end_s = by.now_s() + timeout_s;
    bool over = false;
    for (std::size_t nth = 0; nth < ranks; nth++) {
        if (over) {
            all[nth].why = "it was not tried, as one before it has stayed";
            continue;
        }
        if (nth > 0 && by.now_s() >= end_s) {
            all[nth].why = "the time was up";
            continue;
        }
        all[nth] = move_one(by, nth, end_s);
        over = stops && !all[nth].moved;
    }
    return all;
}

} // namespace zc::control
