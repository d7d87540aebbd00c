/* SPDX-License-Identifier: BSD-3-Clause */
#include "history.h"

#include <algorithm>

namespace zc::predict {

template <uint32_t Depth>
void basic_history<Depth>::fill(uint64_t addr, uint32_t times)
{
    times = std::min(times, kDepth);
    std::fill_n(ring_.begin(), times, addr);
    head_ = static_cast<uint8_t>(times % kDepth);
    count_ = static_cast<uint8_t>(times);
    lag_ = 1;
    run_ = static_cast<uint8_t>(times - 1);
    lag_trust_ = trust::half();
}

template <uint32_t Depth>
void basic_history<Depth>::add(uint64_t addr)
{
    const bool right = at_lag(lag_) == addr;
    lag_trust_.count(right);
    follow_stride(addr);

    ring_[head_] = addr;
    head_ = static_cast<uint8_t>(head_ + 1u == kDepth ? 0 : head_ + 1);
    if (count_ < kDepth)
        count_++;
    run_ = right ? static_cast<uint8_t>(std::min(run_ + 1, UINT8_MAX)) : 0;
    if (!proven())
        choose_lag();
}

/* A step seen twice in a row, pauses not counted, is a stride. */
template <uint32_t Depth>
void basic_history<Depth>::follow_stride(uint64_t addr)
{
    const uint64_t step = addr - at_lag(1);
    if (stride_ != 0)
        stride_trust_.count(step == stride_);
    if (step == 0 || step == stride_)
        return;
    uint32_t lag = 2;
    while (lag < count_ && at_lag(lag) == at_lag(1))
        lag++;
    if (lag <= count_ && at_lag(1) - at_lag(lag) == step) {
        stride_ = step;
        stride_trust_ = trust::half();
    }
}

/* How many addresses up to those at @lag agree with the last ones, as far as is known. */
template <uint32_t Depth>
uint32_t basic_history<Depth>::length_at(uint32_t lag) const
{
    if (lag == lag_ && run_ != 0)
        return run_; /* further back than the ring reaches */
    uint32_t length = 0;
    while (length + lag < count_ && at_lag(1 + length) == at_lag(1 + length + lag))
        length++;
    return length;
}

template <uint32_t Depth>
void basic_history<Depth>::choose_lag()
{
    /* Often many lags match equally well: after A A A B A they are all those
     * that lead from one A to the next, but for one that leads to B. Their
     * majority decides (Boyer and Moore's vote), then the longest lag: what
     * follows a short one soon reaches the present, and the odd address in it. */
    uint32_t longest = 0;
    uint32_t votes = 0;
    uint32_t elected = 0;
    for (uint32_t lag = 1; lag < count_; lag++) {
        const uint32_t length = length_at(lag);
        if (length < longest || length == 0)
            continue;
        if (length > longest) {
            longest = length;
            votes = 0;
        }
        if (votes == 0)
            elected = lag;
        votes += at_lag(lag) == at_lag(elected) ? 1u : -1u;
    }
    /* After an address that was never seen the lag in use stays the best guess. */
    if (longest == 0)
        return;
    uint32_t lag = count_ - 1u;
    while (at_lag(lag) != at_lag(elected) || length_at(lag) != longest)
        lag--;
    lag_ = static_cast<uint8_t>(lag);
    run_ = static_cast<uint8_t>(longest);
}

template class basic_history<history::kDepth>;
template class basic_history<short_history::kDepth>;

} // namespace zc::predict
