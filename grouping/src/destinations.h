/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_DESTINATIONS_H_INCLUDED
#define ZCP_GROUPING_DESTINATIONS_H_INCLUDED

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "flow.h"

namespace zc::groups {

/**
 * What each sender does next, from what it did after the last time things were
 * as they are now.
 *
 * Messages of different senders interleave almost at random, those of one sender
 * hardly ever: its stream of (destination, size class) is nearly periodic, often
 * in several nested periods. A few lags at which the stream has been repeating
 * itself are followed at once. One that misses is not dropped, so noise does no
 * harm; when the best one misses, the longest match of the latest events with the
 * history proposes another. A lag that spans a whole cycle of phases survives the
 * change from one phase to the next and thereby comes to be the best: it is what
 * foretells the next change.
 */
class destinations {
  public:
    /** @history: events kept per sender, a power of two. */
    destinations(uint32_t ranks, uint32_t history, std::pmr::memory_resource *memory);

    /** @tick: any steady clock, modulo 2^32. Most 2^26 destinations. */
    void learn(uint32_t src, uint32_t dst, uint64_t bytes, uint32_t tick);

    /**
     * Adds to @out what @src will send from @now until before @now + @horizon.
     * An event that should have come already is expected now, and what follows
     * it later by as much; a sender overdue by a whole horizon is silent.
     */
    void walk(uint32_t src, uint32_t now, uint32_t horizon, flow_table &out) const;

    static size_t bytes_needed(uint32_t ranks, uint32_t history);

  private:
    static constexpr uint32_t kLags = 4;

    /* A lag and how it has done: misses of late, decayed over 16 and 256 events. */
    struct lag {
        uint32_t distance; /* 0: none */
        float recent;
        float lasting;

        float badness() const { return recent / 16 + lasting / 1024; }
    };
    struct sender {
        uint64_t count; /* events ever */
        uint32_t best;  /* of lags */
        lag lags[kLags];
    };

    uint32_t symbol(uint32_t src, uint64_t nth) const
    {
        return symbols_[uint64_t{src} * history_ + (nth & (history_ - 1))];
    }
    uint32_t longest_match(uint32_t src, const sender &s) const;
    lag assess(uint32_t src, const sender &s, uint32_t distance) const;
    void propose(uint32_t src, sender &s);
    static void settle_best(sender &s);

    uint32_t history_;
    std::pmr::vector<sender> senders_;
    std::pmr::vector<uint32_t> symbols_; /* rings, one after another */
    std::pmr::vector<uint32_t> ticks_;
    std::pmr::vector<uint64_t> bytes_;
};

} // namespace zc::groups

#endif
