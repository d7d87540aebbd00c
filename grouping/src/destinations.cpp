/* SPDX-License-Identifier: BSD-3-Clause */
#include "destinations.h"

#include <algorithm>
#include <bit>

namespace zc::groups {

constexpr uint32_t kClassBits = 6; /* bit widths of sizes are 0 … 64; 63 and 64 share a class */
constexpr uint32_t kLongest = 64;  /* matches longer than this are equally good */
constexpr uint32_t kAssessed = 512;
constexpr float kRecentDecay = 1 - 1.0f / 16;
constexpr float kLastingDecay = 1 - 1.0f / 256;
constexpr float kUnknownMisses = 0.25f; /* share taken for granted where nothing was compared */

static uint32_t symbol_of(uint32_t dst, uint64_t bytes)
{
    return dst << kClassBits | std::min(static_cast<uint32_t>(std::bit_width(bytes)), 63u);
}

destinations::destinations(uint32_t ranks, uint32_t history, std::pmr::memory_resource *memory)
    : history_(history), senders_(ranks, sender{}, memory),
      symbols_(size_t{ranks} * history, 0, memory), ticks_(size_t{ranks} * history, 0, memory),
      bytes_(size_t{ranks} * history, 0, memory)
{
}

size_t destinations::bytes_needed(uint32_t ranks, uint32_t history)
{
    return ranks * (sizeof(sender) + history * (2 * sizeof(uint32_t) + sizeof(uint64_t)));
}

void destinations::learn(uint32_t src, uint32_t dst, uint64_t bytes, uint32_t tick)
{
    sender &s = senders_[src];
    const uint32_t now = symbol_of(dst, bytes);
    bool missed = true;
    for (uint32_t i = 0; i < kLags; i++) {
        lag &l = s.lags[i];
        if (l.distance == 0)
            continue;
        const bool hit = symbol(src, s.count - l.distance) == now;
        l.recent = l.recent * kRecentDecay + (hit ? 0 : 1);
        l.lasting = l.lasting * kLastingDecay + (hit ? 0 : 1);
        if (i == s.best)
            missed = !hit;
    }
    const size_t at = size_t{src} * history_ + (s.count & (history_ - 1));
    symbols_[at] = now;
    ticks_[at] = tick;
    bytes_[at] = bytes;
    s.count++;
    if (missed)
        propose(src, s);
    settle_best(s);
}

/**
 * Distance back to where the latest events were last seen, as many of them as
 * possible; the nearest of equals; 0 if the very last one is new.
 */
uint32_t destinations::longest_match(uint32_t src, const sender &s) const
{
    const uint64_t newest = s.count - 1;
    const uint32_t reach = static_cast<uint32_t>(std::min<uint64_t>(newest, history_ - 1));
    const uint32_t *ring = symbols_.data() + size_t{src} * history_;
    const uint32_t mask = history_ - 1;
    const uint32_t now = ring[newest & mask];
    uint32_t found = 0;
    uint32_t longest = 0;
    for (uint32_t distance = 1; distance <= reach && longest < kLongest; distance++) {
        if (ring[(newest - distance) & mask] != now)
            continue;
        const uint32_t most = std::min(reach - distance + 1, kLongest);
        uint32_t length = 1;
        while (length < most &&
               ring[(newest - length) & mask] == ring[(newest - distance - length) & mask])
            length++;
        if (length > longest) {
            longest = length;
            found = distance;
        }
    }
    return found;
}

/** How @distance would have done until now. */
destinations::lag destinations::assess(uint32_t src, const sender &s, uint32_t distance) const
{
    const uint64_t newest = s.count - 1;
    const uint64_t reach = std::min<uint64_t>(newest, history_ - 1);
    const uint32_t compared =
        static_cast<uint32_t>(std::min<uint64_t>(reach - distance + 1, kAssessed));
    lag out{distance, 0, 0};
    float recent = 1;
    float lasting = 1;
    for (uint32_t back = 0; back < compared; back++) {
        if (symbol(src, newest - back) != symbol(src, newest - back - distance)) {
            out.recent += recent;
            out.lasting += lasting;
        }
        recent *= kRecentDecay;
        lasting *= kLastingDecay;
    }
    out.recent += recent * kUnknownMisses / (1 - kRecentDecay);
    out.lasting += lasting * kUnknownMisses / (1 - kLastingDecay);
    return out;
}

/** Takes up a new lag if it is better than the worst. */
void destinations::propose(uint32_t src, sender &s)
{
    const uint32_t distance = longest_match(src, s);
    const auto known = [distance](const lag &l) { return l.distance == distance; };
    if (distance == 0 || std::any_of(s.lags, s.lags + kLags, known))
        return;
    lag *worst = s.lags;
    for (lag &l : s.lags) {
        if (worst->distance != 0 && (l.distance == 0 || l.badness() > worst->badness()))
            worst = &l;
    }
    const lag fresh = assess(src, s, distance);
    if (worst->distance == 0 || fresh.badness() < worst->badness())
        *worst = fresh;
}

/* Not only after a miss: the best one for now may be about to miss. */
void destinations::settle_best(sender &s)
{
    for (uint32_t i = 0; i < kLags; i++) {
        const lag &l = s.lags[i];
        if (l.distance != 0 &&
            (s.lags[s.best].distance == 0 || l.badness() < s.lags[s.best].badness()))
            s.best = i;
    }
}

void destinations::walk(uint32_t src, uint32_t now, uint32_t horizon, flow_table &out) const
{
    const sender &s = senders_[src];
    const uint32_t distance = s.lags[s.best].distance;
    if (distance == 0)
        return;
    const uint64_t newest = s.count - 1;
    const size_t ring = size_t{src} * history_;
    const uint32_t mask = history_ - 1;
    const float confidence = 1 - std::min(1.0f, s.lags[s.best].recent / 16);

    /* Signed and wide: the sum of gaps must not wrap where the clock did. */
    int64_t due = static_cast<int32_t>(ticks_[ring + (newest & mask)] - now);
    int64_t delay = 0;
    for (uint32_t step = 0; step < 4 * history_; step++) {
        const uint64_t nth = newest - distance + 1 + step % distance;
        const size_t at = ring + (nth & mask);
        const int32_t gap = static_cast<int32_t>(ticks_[at] - ticks_[ring + ((nth - 1) & mask)]);
        due += std::max(gap, 0);
        if (step == 0 && due < 0) {
            delay = -due;
            if (delay > horizon)
                return;
        }
        if (due + delay >= horizon)
            return;
        flow *f = out.at(src, symbols_[at] >> kClassBits);
        if (f) {
            f->bytes += static_cast<double>(bytes_[at]);
            f->messages += 1;
            f->confidence = confidence;
        }
    }
}

} // namespace zc::groups
