/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_TARGET_H_INCLUDED
#define ZC_AGENT_TARGET_H_INCLUDED

#include <map>

#include "effects.h"
#include "profiling.h"

namespace zc::agent::party {

/** The agent of the node that ranks are to go to. It keeps room for them. */
class target {
  public:
    target(const settings &s, const membership &network, profiling &here)
        : s_(s), network_(network), here_(here)
    {
    }

    /** @giving: this node has an attempt of its own under way. True if room is kept now. */
    bool on(nanos now, node_id from, const msg::reserve &m, bool giving, effects &out);
    void on(nanos now, const msg::release &m);
    void expire(nanos now);
    bool expects_ranks() const { return !reservations_.empty(); }

  private:
    const settings &s_;
    const membership &network_;
    profiling &here_;
    std::map<txn_id, nanos> reservations_; /* until when, should the release be lost */
};

} // namespace zc::agent::party

#endif
