/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <algorithm>
#include <bit>

#include "hash.h"

namespace zc::predict {

static constexpr uint64_t kBase = 0x9e3779b97f4a7c15u; /* of the rolling hashes; odd */
static constexpr uint32_t kLongest = 64;               /* longer suffixes count as this long */

static constexpr uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t result = 1;
    while (exponent-- > 0)
        result *= base;
    return result;
}

static uint64_t receive_hash(const zcp_receive_t &r)
{
    const uint64_t match =
        (uint64_t{r.envelope.comm} << 32) | static_cast<uint32_t>(r.envelope.tag);
    return mix(sample_hash(r), match);
}

/* The largest power of two of ring entries that fits. */
static size_t entries_for(size_t max_bytes, size_t entry_bytes, size_t most)
{
    return std::min(std::bit_floor(std::max<size_t>(max_bytes / entry_bytes, 64)), most);
}

stream::stream(size_t max_bytes)
    : mask_(
          entries_for(max_bytes,
                      sizeof(zcp_receive_t) + sizeof(uint64_t) + kOrders.size() * sizeof(uint32_t),
                      kMaxEntries) -
          1),
      ring_(mask_ + 1), hashes_(mask_ + 1), heads_(kOrders.size() * (mask_ + 1))
{
}

uint32_t &stream::head(size_t order)
{
    const uint64_t hash = mix(kOrders[order], suffix_[order]);
    return heads_[order * (mask_ + 1) + (hash & mask_)];
}

/* How many receives before @after agree with the last ones, up to kLongest. */
uint32_t stream::common_suffix(position after) const
{
    uint32_t length = 0;
    while (length < kLongest && held(after - 1 - length) &&
           hashes_[slot(after - 1 - length)] == hashes_[slot(now_ - length)])
        length++;
    return length;
}

void stream::roll(uint64_t hash)
{
    static constexpr std::array<uint64_t, kOrders.size()> kLeaving = {
        power(kBase, kOrders[0]), power(kBase, kOrders[1]), power(kBase, kOrders[2]),
        power(kBase, kOrders[3])};
    for (size_t i = 0; i < kOrders.size(); i++) {
        const uint64_t leaving = now_ > kOrders[i] ? hashes_[slot(now_ - kOrders[i])] : 0;
        suffix_[i] = suffix_[i] * kBase + hash - leaving * kLeaving[i];
    }
}

void stream::find_longer()
{
    for (size_t i = kOrders.size(); i-- > 0 && kOrders[i] > length_;) {
        /* Heads hold the low half; a stale one is not held or fails to verify. */
        const uint32_t back = static_cast<uint32_t>(now_) - head(i);
        const position candidate = now_ > back ? now_ - back : 0;
        const uint32_t length = candidate > 1 ? common_suffix(candidate) : 0;
        if (length > length_) {
            match_ = candidate;
            length_ = length;
            return;
        }
    }
}

void stream::learn(const zcp_receive_t &receive) noexcept
{
    const uint64_t hash = receive_hash(receive);
    now_++;
    if (held(match_) && hashes_[slot(match_)] == hash) {
        match_++;
        length_ = std::min(length_ + 1, kLongest);
    } else {
        match_ = 0;
        length_ = 0;
    }
    roll(hash);
    ring_[slot(now_)] = receive;
    hashes_[slot(now_)] = hash;
    find_longer();
    for (size_t i = 0; i < kOrders.size(); i++)
        head(i) = static_cast<uint32_t>(now_ + 1);
}

uint32_t stream::next(std::span<zcp_receive_t> out) const noexcept
{
    if (!held(match_))
        return 0;
    const uint64_t lag = now_ + 1 - match_;
    for (size_t k = 0; k < out.size(); k++)
        out[k] = ring_[slot(match_ + k % lag)];
    return static_cast<uint32_t>(out.size());
}

size_t stream::bytes() const noexcept
{
    return ring_.bytes() + hashes_.bytes() + heads_.bytes();
}

} // namespace zc::predict
