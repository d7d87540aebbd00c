/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_ADMISSION_H_INCLUDED
#define ZC_AGENT_ADMISSION_H_INCLUDED

#include <array>
#include <unordered_map>

#include "message.h"

namespace zc::agent {

/**
 * Lets each message in once. Per sender the highest sequence and a window of 64
 * below it, as in IPsec (RFC 4303, section 3.4.3); an incarnation that was
 * followed by another does not come back. Refusals are counted by cause.
 *
 * Memory is bounded: of more than kMaxPeers senders, the one not heard of for the
 * longest time is forgotten. (What it sent could then be replayed once; its
 * incarnation and versions still keep old news from counting.)
 */
class admission {
  public:
    static constexpr std::size_t kMaxPeers = 16384;

    explicit admission(node_id self) : self_(self) {}

    /** decode(), then freshness. Sets @out only for flaw::none. */
    flaw admit(std::string_view bytes, nanos now, message &out);
    /** Freshness alone, for messages that did not travel as bytes. */
    flaw admit(const message &m, nanos now);

    std::uint64_t count(flaw f) const { return counts_[static_cast<std::size_t>(f)]; }
    void count_refusal(flaw f) { counts_[static_cast<std::size_t>(f)]++; }

  private:
    struct window {
        std::uint64_t incarnation = 0;
        std::uint64_t highest = 0;
        std::uint64_t seen = 0; /* bit i: highest - i */
        nanos heard = 0;
    };
    flaw fresh(const message &m, nanos now);
    void forget_oldest();

    node_id self_;
    std::unordered_map<node_id, window> peers_;
    std::array<std::uint64_t, kFlaws> counts_{};
};

} // namespace zc::agent

#endif
