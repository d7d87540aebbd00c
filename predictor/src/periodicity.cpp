/* SPDX-License-Identifier: BSD-3-Clause */
#include "periodicity.h"

#include <algorithm>

#include "hash.h"

namespace zc::predict {

periodicity::periodicity(uint32_t window, uint32_t least)
    : window_(window), least_(least), samples_(window), prints_(window), runs_(window)
{
}

size_t periodicity::bytes_needed(uint32_t window)
{
    return sizeof(periodicity) +
           size_t{window} * (sizeof(zcp_receive_t) + sizeof(uint32_t) + sizeof(uint32_t));
}

/* A print is 32 bits wide: a period needs N equal ones in a row, chance cannot
 * produce that. 0 is kept for "no sample yet". */
static uint32_t print_of(const zcp_receive_t &receive)
{
    return static_cast<uint32_t>(sample_hash(receive) >> 32) | 1;
}

/* Branch-free, for the compiler to vectorise: it runs once per lag and event. */
static void extend_runs(uint32_t *runs, const uint32_t *prints, uint32_t nr, uint32_t print,
                        uint32_t most)
{
    for (uint32_t i = 0; i < nr; i++) {
        const uint32_t longer = runs[i] + (runs[i] < most ? 1u : 0u);
        runs[i] = prints[i] == print ? longer : 0u;
    }
}

void periodicity::compare(uint32_t print)
{
    const uint32_t upper = window_ - head_; /* lags 1 … upper lie before the ring wraps */
    extend_runs(runs_.data(), prints_.data() + head_, upper, print, window_);
    extend_runs(runs_.data() + upper, prints_.data(), head_, print, window_);

    const uint32_t *first = runs_.data();
    const uint32_t *shortest = std::find(first, first + window_, window_);
    if (shortest != first + window_)
        period_ = static_cast<uint32_t>(shortest - first) + 1;
    else if (const uint32_t lag = fitted(); lag != 0)
        period_ = lag;
}

/* The shortest of the lags that have been equal for longest, for a whole period at least;
 * 0: none. */
uint32_t periodicity::fitted() const
{
    if (least_ == window_)
        return 0;
    uint32_t best = 0;
    uint32_t longest = least_ - 1;
    for (uint32_t lag = 1; lag <= window_; lag++) {
        const uint32_t run = runs_[lag - 1];
        if (run > longest && run >= lag) {
            best = lag;
            longest = run;
        }
    }
    return best;
}

void periodicity::learn(const zcp_receive_t &receive) noexcept
{
    const uint32_t print = print_of(receive);
    compare(print);
    head_ = (head_ + window_ - 1) % window_;
    samples_[head_] = receive;
    prints_[head_] = print;
}

uint32_t periodicity::next(std::span<zcp_receive_t> out) const noexcept
{
    if (period_ == 0)
        return 0;
    for (uint32_t k = 0; k < out.size(); k++) {
        const uint32_t lag = period_ - k % period_;
        out[k] = samples_[(head_ + lag - 1) % window_];
    }
    return static_cast<uint32_t>(out.size());
}

size_t periodicity::bytes() const noexcept
{
    return sizeof(*this) + samples_.bytes() + prints_.bytes() + runs_.bytes();
}

} // namespace zc::predict
