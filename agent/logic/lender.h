/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_LENDER_H_INCLUDED
#define ZC_AGENT_LENDER_H_INCLUDED

#include <map>
#include <optional>

#include "decision.h"
#include "effects.h"
#include "state.h"

namespace zc::agent::party {

/** The agent that owns partners of the ranks that are to move. It lends them to the victim. */
class lender {
  public:
    lender(const settings &s, profiling &here) : s_(s), here_(here) {}

    void start(nanos now, const std::optional<saved_state> &saved);
    /** Ends the leases that are over. */
    void tick(nanos now, effects &out);
    /** When the next lease is over; kNever: there is none. */
    nanos due() const;

    void on(nanos now, node_id from, const msg::lend &m, const free_check &free, effects &out);
    void on(nanos now, const msg::release &m, effects &out);

    bool lent(const rank_key &rank) const { return leases_.contains(rank); }
    bool lent_to(const rank_key &rank, const txn_id &txn) const;
    void save_to(saved_state &state) const;

  private:
    struct lease {
        txn_id txn;
        nanos until;
        node_id target; /* where the rank would go; not known of an earlier life's */
    };

    const settings &s_;
    profiling &here_;
    std::map<rank_key, lease> leases_;
};

} // namespace zc::agent::party

#endif
