/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PROTOCOL_H_INCLUDED
#define ZC_AGENT_PROTOCOL_H_INCLUDED

#include "gateway.h"
#include "lender.h"
#include "target.h"
#include "thief.h"
#include "victim.h"

namespace zc::agent {

/**
 * The protocol component: work stealing, and the way from a plan to a move. Every
 * agent is each of five parties, a class each; the job is the sixth.
 *
 *   thief, then target       victim                 lender           gateway         job
 *     │ steal, over ≤ hops     │                      │                 │              │
 *     ├───────────────────────▶│ decides              │                 │              │
 *     │◀─────────── reserve ───┤                      │                 │              │
 *     ├─ reserved, load now ──▶│ confirms             │                 │              │
 *     │  (room is kept)        ├─── lend ────────────▶│ lease, saved    │              │
 *     │                        │◀── lent ─────────────┤                 │              │
 *     │                        │ intent saved         │                 │              │
 *     │                        ├─── ask (txn, epoch) ─┼────────────────▶├─────────────▶│
 *     │                        │◀─────────────────────┼──────── outcome ┤◀─────────────┤
 *     │◀─────────── release ───┼─── release ─────────▶│                 │              │
 *
 * The job refuses another epoch than its own, and two requests at a time.
 *
 * Only the agent on whose node a rank runs decides about it, or the one it has lent
 * it to. A lease ends by release, or when it is older than any ask the borrower may
 * still send: the borrower asks within commit_window of its first message or not at
 * all, the lease lasts longer. Intent and leases survive a crash in the state file;
 * without that file nothing found at the start is decided on until leases have ended.
 */
class protocol {
  public:
    protocol(const settings &s, membership &network, profiling &here, decision &decide,
             const policy &chosen, experience &past, history &log, random_source &random);

    void start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved);
    void tick(nanos now, effects &out);
    nanos due() const;

    void on(nanos now, node_id from, const msg::steal &m, effects &out);
    void on(nanos now, node_id from, const msg::nudge &m, effects &out);
    void on(nanos now, node_id from, const msg::reserve &m, effects &out);
    void on(nanos now, node_id from, const msg::reserved &m, effects &out);
    void on(nanos now, node_id from, const msg::lend &m, effects &out);
    void on(nanos now, node_id from, const msg::lent &m, effects &out);
    void on(nanos now, node_id from, const msg::release &m, effects &out);
    void on(nanos now, node_id from, const msg::ask &m, effects &out);
    void on(nanos now, node_id from, const msg::query &m, effects &out);
    void on(nanos now, node_id from, const msg::outcome &m, effects &out);
    /** From the job, which we reach. */
    void on_job(nanos now, const msg::outcome &m, effects &out);

    void save_to(saved_state &state) const;
    /** Whether the rank is lent to that attempt; for checks. */
    bool lent_to(const rank_key &rank, const txn_id &txn) const
    {
        return lender_.lent_to(rank, txn);
    }
    std::string busy_with() const { return victim_.busy_with(); }
    /** Of ranks below zc-hold. */
    const party::refusals &refused() const { return victim_.refused(); }

  private:
    /* May the rank be decided on? */
    bool free_rank(nanos now, const local_rank &rank, node_id target, std::string &why) const;
    free_check free_at(nanos now) const;

    const settings &s_;
    membership &network_;
    profiling &here_;
    random_source &random_;

    party::lender lender_;
    party::target target_;
    party::gateway gateway_;
    party::victim victim_;
    party::thief thief_;           /* asks target_ whether ranks are expected */
    nanos next_look_ = 0;          /* for work, and for thieves to nudge */
    std::uint64_t generation_ = 0; /* of the load, when it was last looked at */
};

} // namespace zc::agent

#endif
