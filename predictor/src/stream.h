/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_STREAM_H_INCLUDED
#define ZCP_STREAM_H_INCLUDED

#include <array>
#include <span>

#include "predictor.h"
#include "zeroed.h"

namespace zc::predict {

/**
 * The stream of all receives and the place in its past that the present
 * repeats: what followed there is expected now. Finds patterns as long as the
 * ring, nested ones too.
 *
 * What repeats is the order of the envelopes, their sizes taken roughly: not
 * the addresses, which have patterns of their own (see keyed.h), and not the
 * exact sizes, which drift in many programs.
 *
 *   ring   … a b c d e a b f a b c d │         match: the place after the
 *                  ▲         ^^^^^^^ │         longest earlier "…a b c d"
 *                  match             └ now
 *
 * A match is followed while it lasts. Where one that was going round in a loop
 * has ended, it is expected to end again after as many rounds (the loop
 * predictor of a processor): no suffix could tell the last round of a loop from
 * the others before the whole loop has been repeated.
 *
 * Candidates for a longer match come from tables that map the last 1, 2, 5, 12
 * and 32 receives to where they were last seen, the idea of LZ77 match finders;
 * each is verified before use.
 *
 * Sizes that differ a little from round to round go on as addresses of a key do
 * (history.h): they advance evenly, or recur.
 *
 * Blocks that lie side by side (the receives of a gather or an all-to-all) are
 * expected side by side again, wherever the first one goes. Side by side and
 * from consecutive ranks, they are expected to go on even where none was seen.
 */
class stream {
  public:
    explicit stream(size_t max_bytes);

    /** @nameless: tag and communicator are new every time, and say nothing. */
    void learn(const zcp_receive_t &receive, bool nameless) noexcept;

    /** Where something foretold is from: its like in the past, or the end of the one before. */
    enum class source { none, past, adjacent };
    /** A walk over the receives to come. */
    class walk {
      public:
        explicit walk(const stream &of);
        /** The next one, and where it is from. */
        source step(zcp_receive_t &out);
        /** The last one goes to @addr instead. */
        void correct(uint64_t addr) { previous_.addr = addr; }

      private:
        const stream &stream_;
        uint64_t at_;     /* position of what comes next; 0: nowhere */
        uint64_t lag_;    /* from there to what it foretells */
        uint32_t length_; /* of the match, if it goes on as foretold */
        uint32_t last_shape_;
        zcp_receive_t previous_;
    };

    size_t bytes() const noexcept;

  private:
    static constexpr std::array<uint32_t, 5> kOrders = {1, 2, 5, 12, 32};
    static constexpr size_t kMaxEntries = size_t{1} << 16;

    using position = uint64_t; /* number of a receive in the stream, from 1; 0: none */

    /** How a match that went round in a loop ended the last time. */
    struct loop_end {
        uint32_t tag;
        uint32_t length; /* of the match then */
        uint32_t after;  /* low half of the position of what came instead */
        uint16_t known;  /* 1: the others hold something */
        uint16_t steady; /* 1: it has not ended otherwise since this was noted */
    };

    size_t slot(position p) const { return p & mask_; }
    bool held(position p) const { return p != 0 && p + mask_ >= now_; }
    uint16_t &head(size_t order);
    uint32_t common_suffix(position after) const;
    void roll(uint32_t hash);
    void find_longer();
    size_t loop_slot(uint64_t lag, uint32_t shape, uint32_t &tag) const;
    void note_end_of_loop();
    position end_of_loop(uint64_t lag, uint32_t length, uint32_t shape) const;
    bool adjacent(position p) const;
    bool in_series() const;
    uint64_t size_in(position p, uint64_t lag, uint64_t rounds) const;

    uint64_t mask_;      /* ring entries - 1 */
    uint32_t shift_;     /* leaves as many bits of a hash */
    position now_ = 0;   /* of the last receive */
    position match_ = 0; /* of the receive expected next */
    uint32_t length_ = 0;
    uint32_t lost_ = 0; /* receives in a row that were not foretold, up to a bound */
    std::array<uint64_t, kOrders.size()> suffix_{}; /* rolling hash of the last kOrders[i] */
    zeroed<zcp_receive_t> ring_;
    zeroed<uint32_t> hashes_; /* of shapes */
    zeroed<loop_end> loops_;
    zeroed<uint16_t> heads_; /* low bits of the position after the suffix */
};

} // namespace zc::predict

#endif
