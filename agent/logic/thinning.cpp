/* SPDX-License-Identifier: BSD-3-Clause */
#include "thinning.h"

#include <algorithm>

namespace zc::agent {
namespace {

constexpr std::uint64_t kWindow = 4'000'000'000; /* ns */
constexpr std::uint32_t kMost = 128;             /* messages of a sender told in a window */
constexpr std::uint32_t kQuiet = 16;             /* windows with less than an eighth of that */
constexpr std::uint64_t kStale =
    30'000'000'000;                         /* ns; a pair that speaks so seldom is not thinned */
constexpr std::uint32_t kLargest = 1 << 20; /* of `every` */
constexpr std::size_t kMostPairs = 1 << 16;

} // namespace

void thinning::end_window(sender &s, std::uint64_t now_ns)
{
    /* A phase with few messages is no reason: it is followed by others. */
    s.quiet = s.told < kMost / 8 ? s.quiet + 1 : 0;
    if (s.quiet >= kQuiet && s.every > 1) {
        s.every /= 2;
        s.quiet = 0;
    }
    s.told = 0;
    s.window_ns = now_ns;
}

bool thinning::pass(zcp_event_t &e)
{
    sender &s = senders_[e.src];
    if (s.window_ns == 0 || e.time_ns >= s.window_ns + kWindow)
        end_window(s, e.time_ns);
    if (s.every > 1) {
        if (pairs_.size() > kMostPairs)
            pairs_.clear();
        pending &p = pairs_[std::uint64_t{e.src} << 32 | e.dst];
        p.count++;
        p.bytes += e.bytes;
        if (p.told_ns == 0)
            p.told_ns = e.time_ns;
        if (p.count < s.every && e.time_ns < p.told_ns + kStale)
            return false;
        e.bytes = p.bytes;
        p = {0, 0, e.time_ns};
    }
    if (++s.told > kMost && s.every < kLargest) {
        s.every *= 2;
        s.told = 0;
        s.window_ns = e.time_ns;
    }
    return true;
}

} // namespace zc::agent
