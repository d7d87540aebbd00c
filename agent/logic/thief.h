/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_THIEF_H_INCLUDED
#define ZC_AGENT_THIEF_H_INCLUDED

#include "decision.h"
#include "effects.h"
#include "target.h"

namespace zc::agent::party {

/**
 * The agent that looks for work: it sends steal packets, and hands on those of others
 * to which this node gives nothing.
 */
class thief {
  public:
    thief(const settings &s, membership &network, const profiling &here, const decision &decide,
          const policy &chosen, const target &room, random_source &random);

    void look_for_work(nanos now, effects &out);
    /** Without success it has asked less and less often; now it begins anew. */
    void hurry() { steal_pause_ = s_.steal_least; }
    void on(nanos now, const msg::nudge &m, effects &out);
    void forward(msg::steal m, effects &out);

  private:
    bool wants() const;

    const settings &s_;
    membership &network_;
    const profiling &here_;
    const decision &decision_;
    const policy &policy_;
    const target &room_;
    random_source &random_;

    nanos next_steal_ = 0;
    nanos steal_pause_;
};

} // namespace zc::agent::party

#endif
