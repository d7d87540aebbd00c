/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission.h"

#include <algorithm>

namespace zc::agent {

flaw admission::admit(std::string_view bytes, nanos now, message &out)
{
    message m;
    flaw f = decode(bytes, m);
    if (f == flaw::none)
        f = fresh(m, now);
    counts_[static_cast<std::size_t>(f)]++;
    if (f == flaw::none)
        out = std::move(m);
    return f;
}

flaw admission::admit(const message &m, nanos now)
{
    flaw f = fresh(m, now);
    counts_[static_cast<std::size_t>(f)]++;
    return f;
}

flaw admission::fresh(const message &m, nanos now)
{
    if (m.sender == self_)
        return flaw::forged; /* no other node may send in our name */
    if (peers_.size() >= kMaxPeers && !peers_.contains(m.sender))
        forget_oldest();
    window &peer = peers_[m.sender];
    if (m.incarnation < peer.incarnation)
        return flaw::old_incarnation;
    if (m.incarnation > peer.incarnation)
        peer = {m.incarnation, 0, 0, now};
    peer.heard = now;
    if (m.sequence > peer.highest) {
        std::uint64_t step = m.sequence - peer.highest;
        peer.seen = step >= 64 ? 0 : peer.seen << step;
        peer.highest = m.sequence;
        peer.seen |= 1;
        return flaw::none;
    }
    std::uint64_t back = peer.highest - m.sequence;
    if (back >= 64 || (peer.seen >> back & 1))
        return flaw::replayed;
    peer.seen |= std::uint64_t{1} << back;
    return flaw::none;
}

void admission::forget_oldest()
{
    auto oldest = std::min_element(peers_.begin(), peers_.end(), [](const auto &a, const auto &b) {
        return a.second.heard < b.second.heard;
    });
    peers_.erase(oldest);
}

} // namespace zc::agent
