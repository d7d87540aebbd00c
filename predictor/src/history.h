/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_HISTORY_H_INCLUDED
#define ZCP_HISTORY_H_INCLUDED

#include <array>
#include <cstdint>

namespace zc::predict {

/**
 * The recent addresses of one key and the lag at which they repeat best.
 *
 * Every lag has the length of its current run of matches (the periodicity
 * detector's d(m), counted instead of thresholded); the longest run is the
 * longest suffix of the stream that occurred before, and what followed it then
 * is expected now; equal runs vote. Double and triple buffers are found after one round, and a
 * phase change is forgotten after one mismatch.
 */
class history {
  public:
    static constexpr uint32_t kDepth = 64;

    /** As if @addr had been added @times times, to a history of zero bytes. */
    void fill(uint64_t addr, uint32_t times);
    void add(uint64_t addr);
    /** The @nth next address, from 1. Needs one address at least. */
    uint64_t next(uint32_t nth) const;
    /** Nothing but one address is left: a history is more than it takes. */
    bool constant() const { return count_ == kDepth && runs_[0] >= kDepth - 1; }

  private:
    static constexpr uint8_t kLongest = UINT8_MAX;

    uint64_t at_lag(uint32_t lag) const { return ring_[(head_ + kDepth - lag) % kDepth]; }
    void choose_lag();

    std::array<uint64_t, kDepth> ring_;
    std::array<uint8_t, kDepth> runs_; /* [m-1]: run of matches at lag m */
    uint32_t head_;                    /* where the next address goes */
    uint16_t count_;
    uint16_t lag_; /* 1 … count_ once there is an address */
};

} // namespace zc::predict

#endif
