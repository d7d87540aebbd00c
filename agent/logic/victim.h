/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_VICTIM_H_INCLUDED
#define ZC_AGENT_VICTIM_H_INCLUDED

#include <optional>
#include <set>
#include <string>

#include "decision.h"
#include "effects.h"
#include "load_history.h"
#include "refusals.h"
#include "state.h"

namespace zc::agent::party {

constexpr std::uint32_t kMostDoublings = 6; /* of a time that grows by doubling */

/**
 * The agent that work is stolen from. It decides which of its ranks go, and sees its
 * one attempt through: room at the target, partners on loan, the request to the job.
 * The picture is in protocol.h.
 */
class victim {
  public:
    victim(const settings &s, membership &network, profiling &here, decision &decide,
           experience &past, history &log);

    void start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved);
    /** Ends an attempt that has waited for too long, and asks how a move goes. */
    void tick(nanos now, effects &out);
    /** When the attempt needs tick() next; kNever: there is none. */
    nanos due() const;
    /** If this node is overloaded, tells the best two thieves so. */
    void nudge_thieves(nanos now, effects &out);
    /** The load has changed, so that nudges may have more success. */
    void load_changed(nanos now);

    /** Answers a steal packet: true if an attempt to give the thief ranks has begun. */
    bool gives(nanos now, const msg::steal &m, const free_check &free, effects &out);
    void on(nanos now, node_id from, const msg::reserved &m, effects &out);
    void on(nanos now, node_id from, const msg::lent &m, effects &out);
    void on(nanos now, node_id from, const msg::outcome &m, effects &out);

    bool busy() const { return attempt_.has_value(); }
    bool moves_ranks_of(job_id job) const { return attempt_ && attempt_->what.job == job; }
    std::string busy_with() const;
    void save_to(saved_state &state) const;
    /** Of ranks below zc-hold. */
    const refusals &refused() const { return refusals_; }

  private:
    enum class step { reserving, borrowing, moving };
    struct attempt {
        txn_id txn;
        plan what;
        step at = step::reserving;
        nanos begun = 0;
        nanos asked = 0;
        nanos next_query = 0;
        nanos query_pause = 0;
        std::set<node_id> waiting_for;
        std::uint64_t free_bytes = 0; /* at the target, which had room for our own; 0: not known */
        node_id asked_of = kNoNode;   /* the agent that reaches the job */
        std::uint64_t its_life = 0;
    };

    void resume(nanos now, const saved_state::intent &asked);
    void begin(nanos now, plan p, effects &out);
    void borrow(nanos now, effects &out);
    void ask(nanos now, effects &out);
    void reach_job(effects &out);
    void query_job(nanos now, effects &out);
    bool was_asked(node_id agent) const;
    void abandon(nanos now, const std::string &why, effects &out);
    void release_all(bool moved, effects &out);
    void pause(nanos now, bool success);
    /** Ranks of the attempt of which the same is to be said. */
    struct part {
        std::vector<rank_id> ranks;
        msg::verdict what;
        std::string why;
    };
    void end_move(nanos now, const msg::outcome &m, const std::vector<part> &parts, effects &out);
    std::vector<part> learn_of_each(nanos now, const msg::outcome &m);
    std::string learn_of(nanos now, const msg::rank_result &one, bool is_first);
    bool has_left() const;
    record note(nanos now, std::string what, std::string why) const;
    record note(nanos now, const part &one, const msg::outcome &m, bool is_all) const;
    node_id gateway_of(job_id job) const;

    const settings &s_;
    membership &network_;
    profiling &here_;
    decision &decision_;
    experience &past_;
    history &history_;
    refusals refusals_;

    std::uint64_t next_number_ = 0;
    std::optional<attempt> attempt_;
    nanos next_decision_ = 0;
    std::uint32_t failures_ = 0;
    nanos next_nudge_ = 0;
    nanos nudge_pause_;
};

} // namespace zc::agent::party

#endif
