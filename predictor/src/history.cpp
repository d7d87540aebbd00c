/* SPDX-License-Identifier: BSD-3-Clause */
#include "history.h"

#include <algorithm>

namespace zc::predict {

void history::fill(uint64_t addr, uint32_t times)
{
    times = std::min(times, kDepth);
    for (uint32_t i = 0; i < times; i++) {
        ring_[i] = addr;
        runs_[i] = static_cast<uint8_t>(times - 1 - i);
    }
    head_ = times % kDepth;
    count_ = static_cast<uint16_t>(times);
    lag_ = 1;
}

void history::add(uint64_t addr)
{
    for (uint32_t lag = 1; lag <= count_; lag++) {
        uint8_t &run = runs_[lag - 1];
        if (at_lag(lag) != addr)
            run = 0;
        else if (run != kLongest)
            run++;
    }
    ring_[head_] = addr;
    head_ = (head_ + 1) % kDepth;
    if (count_ < kDepth)
        count_++;
    choose_lag();
}

void history::choose_lag()
{
    const uint8_t longest = *std::max_element(runs_.begin(), runs_.begin() + count_);
    /* After an address that matches nothing the lag in use stays the best guess. */
    if (longest == 0 && lag_ != 0)
        return;
    /* Often many lags match equally well: after A A A B A they are all those
     * that lead from one A to the next, but for one that leads to B. Their
     * majority decides (Boyer and Moore's vote), then the shortest lag. */
    uint64_t elected = 0;
    uint32_t votes = 0;
    for (uint32_t lag = 1; lag <= count_; lag++) {
        if (runs_[lag - 1] != longest)
            continue;
        if (votes == 0)
            elected = at_lag(lag);
        votes += at_lag(lag) == elected ? 1u : -1u;
    }
    uint32_t lag = count_;
    while (runs_[lag - 1] != longest || at_lag(lag) != elected)
        lag--;
    lag_ = static_cast<uint16_t>(lag);
}

uint64_t history::next(uint32_t nth) const
{
    return at_lag(lag_ - (nth - 1) % lag_);
}

} // namespace zc::predict
