/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_SENT_RATES_H_INCLUDED
#define ZC_AGENT_SENT_RATES_H_INCLUDED

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "profiling.h"
#include "zcp/grouping.h"

namespace zc::agent {

/** How much a rank sends to each other one in a second: means of its messages, in which the newest
 * reading has a weight of 0.3. */
class sent_rates {
  public:
    /** @events: all since the last reading but @missed, which are taken to be like the others.
     * @now_ns: of this reading; the first one tells no rate. */
    void add(std::uint64_t now_ns, std::span<const zcp_event_t> events, std::uint64_t missed);
    /** By receiver. */
    std::vector<flow> flows() const;

  private:
    std::map<rank_id, flow> rates_;
    std::uint64_t at_ns_ = 0;
};

} // namespace zc::agent

#endif
