/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_THINNING_H_INCLUDED
#define ZC_AGENT_THINNING_H_INCLUDED

#include <unordered_map>

#include "zcp/grouping.h"

#include "basics.h"

namespace zc::agent {

/**
 * Of messages that come fast, every k-th to each receiver, with the bytes of all k.
 *
 * The prediction engine remembers some 2,000 messages of each sender. It foretells a change of
 * partners from the last change of that kind, which must be among them: at 1,000 messages per
 * second they are two seconds, and all it can say is "as before". With at most some 32 per second
 * they are a minute. Thinned by number and not by time, as programs count iterations: so a phase
 * has as many messages each time, give or take one.
 */
class thinning {
  public:
    /** True if @e is to be told; then with the bytes of those before it that were not. */
    bool pass(zcp_event_t &e);

  private:
    struct sender {
        std::uint32_t every = 1;     /* 2^n */
        std::uint64_t window_ns = 0; /* beginning of this window */
        std::uint32_t told = 0;      /* in it */
        std::uint32_t quiet = 0;     /* windows in a row with far fewer than there may be */
    };
    struct pending {
        std::uint32_t count = 0;
        std::uint64_t bytes = 0;
        std::uint64_t told_ns = 0;
    };
    void end_window(sender &s, std::uint64_t now_ns);

    std::unordered_map<rank_id, sender> senders_;
    std::unordered_map<std::uint64_t, pending> pairs_; /* src << 32 | dst; of thinned senders */
};

} // namespace zc::agent

#endif
