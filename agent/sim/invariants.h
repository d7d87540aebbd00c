/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_INVARIANTS_H_INCLUDED
#define ZC_AGENT_INVARIANTS_H_INCLUDED

#include <map>
#include <set>
#include <string>
#include <vector>

#include "world.h"

namespace zc::agent::sim {

/** What must hold whatever goes wrong. Each check notes what it finds violated. */
class invariants {
  public:
    explicit invariants(const world &w) : world_(w) {}

    /** A rank has one decider: no agent asks for a rank that another agent is moving. */
    void one_decider(const job &j, const msg::ask &a);
    /** An agent that asks for ranks to move hosts them, or has borrowed them. */
    void hosts_or_borrowed(const job &j, const msg::ask &a);
    /** Under constant load no rank comes back, or moves again and again. */
    void no_oscillation(const rank_key &rank, std::uint32_t from, std::uint32_t to);
    /** Agents understand each other: what is refused is old. */
    void understood(flaw f);
    /** Of the whole run: nothing grew that should fall, and all is quiet at last. */
    void at_the_end(const result &r);

    /**
     * Does the true gain of a move differ from the one demanded by less than the noise of the
     * samples? The noise then decides when it is made: at some time, perhaps late. It is a gain,
     * so there are only so many.
     */
    bool is_marginal(const job &j, const msg::ask &a) const;
    const std::vector<std::string> &violations() const { return violations_; }

  private:
    bool may_move(const job &j, const msg::ask &a, rank_id rank) const;
    bool has_lent(std::uint32_t host, const rank_key &rank, const txn_id &txn) const;
    void balance(const result &r);
    void quiet(const result &r);
    void violated(const std::string &text);

    const world &world_;
    std::map<rank_key, std::set<std::uint32_t>> left_in_calm_; /* nodes that the rank has left */
    std::vector<std::string> violations_;
};

} // namespace zc::agent::sim

#endif
