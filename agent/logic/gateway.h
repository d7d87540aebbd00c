/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_GATEWAY_H_INCLUDED
#define ZC_AGENT_GATEWAY_H_INCLUDED

#include <deque>
#include <set>

#include "effects.h"

namespace zc::agent::party {

/** The agent that reaches the job: it hands requests to the job, and the answers back. */
class gateway {
  public:
    explicit gateway(const membership &network) : network_(network) {}

    void on(node_id from, const msg::ask &m, effects &out);
    void on(node_id from, const msg::query &m, effects &out);
    /** From the job. An answer to ourselves is not sent. */
    void on_job(const msg::outcome &m, effects &out);

  private:
    void close(const txn_id &txn);

    const membership &network_;
    /* Requests that the job has never had, and that must no longer be let through. */
    std::set<txn_id> closed_;
    std::deque<txn_id> closed_order_;
};

} // namespace zc::agent::party

#endif
