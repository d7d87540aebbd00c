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
 *   ring   … a b c d e a b f a b c d │         match: the place after the
 *                  ▲         ^^^^^^^ │         longest earlier "…a b c d"
 *                  match             └ now
 *
 * A match is followed while it lasts. Candidates for a longer one come from
 * tables that map the last 1, 3, 8 and 32 receives to where they were last
 * seen, the idea of LZ77 match finders; each is verified before use.
 */
class stream {
  public:
    explicit stream(size_t max_bytes);

    void learn(const zcp_receive_t &receive) noexcept;
    /** Continues the match, cyclically where it reaches the present. */
    uint32_t next(std::span<zcp_receive_t> out) const noexcept;
    size_t bytes() const noexcept;

  private:
    static constexpr std::array<uint32_t, 4> kOrders = {1, 3, 8, 32};
    static constexpr size_t kMaxEntries = size_t{1} << 16;

    using position = uint64_t; /* number of a receive in the stream, from 1; 0: none */

    size_t slot(position p) const { return p & mask_; }
    bool held(position p) const { return p != 0 && p + mask_ >= now_; }
    uint32_t &head(size_t order);
    uint32_t common_suffix(position after) const;
    void roll(uint64_t hash);
    void find_longer();

    uint64_t mask_;
    position now_ = 0;   /* of the last receive */
    position match_ = 0; /* of the receive expected next */
    uint32_t length_ = 0;
    std::array<uint64_t, kOrders.size()> suffix_{}; /* rolling hash of the last kOrders[i] */
    zeroed<zcp_receive_t> ring_;
    zeroed<uint64_t> hashes_;
    zeroed<uint32_t> heads_; /* low half of the position after the suffix */
};

} // namespace zc::predict

#endif
