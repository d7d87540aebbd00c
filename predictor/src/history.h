/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_HISTORY_H_INCLUDED
#define ZCP_HISTORY_H_INCLUDED

#include <array>
#include <cstdint>

#include "trust.h"

namespace zc::predict {

/**
 * The recent addresses of one key, the lag at which they repeat, and the stride
 * at which they advance.
 *
 * The place in the past that is most like the present decides on the lag: the
 * longest suffix that occurred before, and where several are equally long, what
 * most of them were followed by. A lag that has been right for a whole round is
 * kept until it fails. Double and triple buffers are found after one round, and
 * a phase change is forgotten after one mismatch.
 *
 * Addresses that do not recur may advance evenly: rows of an array, or blocks
 * behind one that grows. The stride answers where it has been right more often
 * than the lag.
 *
 * Zero bytes are an empty history.
 */
template <uint32_t Depth>
class basic_history {
  public:
    static constexpr uint32_t kDepth = Depth;

    basic_history() = default;
    /** One that remembers more, and for now knows as much. */
    template <uint32_t Less>
    explicit basic_history(const basic_history<Less> &from);

    /** As if @addr had been added @times times, to an empty history. */
    void fill(uint64_t addr, uint32_t times);
    void add(uint64_t addr);
    /** The @nth next address, from 1. Needs one address at least. */
    uint64_t next(uint32_t nth) const
    {
        return strides() ? at_lag(1) + nth * stride_ : recurring(nth);
    }
    /** The same, strides left out of account. */
    uint64_t recurring(uint32_t nth) const { return at_lag(lag_ - (nth - 1) % lag_); }
    bool strides() const
    {
        return stride_ != 0 && !proven() && stride_trust_.value() > lag_trust_.value();
    }
    uint32_t period() const { return lag_; }
    bool full() const { return count_ == kDepth; }

  private:
    template <uint32_t Other>
    friend class basic_history;

    uint64_t at_lag(uint32_t lag) const
    {
        return ring_[lag > head_ ? head_ + kDepth - lag : head_ - lag];
    }
    /** Right for a whole round; twice the same address may be no more than a pause. */
    bool proven() const { return run_ >= lag_ && (lag_ > 1 || run_ > 2); }
    uint32_t length_at(uint32_t lag) const;
    void choose_lag();
    void follow_stride(uint64_t addr);

    std::array<uint64_t, kDepth> ring_;
    uint64_t stride_; /* modulo 2^64; 0: none */
    uint8_t head_;    /* where the next address goes */
    uint8_t count_;
    uint8_t lag_; /* 1 … count_ once there is an address */
    uint8_t run_; /* addresses in a row that agree with it, saturating */
    trust lag_trust_;
    trust stride_trust_;
};

using history = basic_history<40>;
/* Enough for two to four buffers in turn, which most keys that vary have: with a few
 * words of its owner it is a cache line. */
using short_history = basic_history<5>;

extern template class basic_history<history::kDepth>;
extern template class basic_history<short_history::kDepth>;

template <uint32_t Depth>
template <uint32_t Less>
basic_history<Depth>::basic_history(const basic_history<Less> &from)
    : ring_{}, stride_(from.stride_), head_(from.count_), count_(from.count_), lag_(from.lag_),
      run_(from.run_), lag_trust_(from.lag_trust_), stride_trust_(from.stride_trust_)
{
    static_assert(Less < Depth);
    for (uint32_t i = 0; i < count_; i++)
        ring_[i] = from.at_lag(count_ - i);
}

} // namespace zc::predict

#endif
