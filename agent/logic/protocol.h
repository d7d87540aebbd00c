/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PROTOCOL_H_INCLUDED
#define ZC_AGENT_PROTOCOL_H_INCLUDED

#include <deque>
#include <map>
#include <optional>
#include <set>

#include "decision.h"
#include "load_history.h"
#include "membership.h"
#include "state.h"

namespace zc::agent {

/** What the logic wants done. If @save, state is written first; only then the rest. */
struct effects {
    outbox send;
    std::vector<msg::ask> ask;     /* of the job, which we reach */
    std::vector<msg::query> query; /* likewise */
    bool save = false;
};

/**
 * The protocol component: work stealing, and the way from a plan to a move.
 *
 *   thief                     victim (decides)            owners of partners      job
 *     │ steal, over ≤ hops      │                              │                   │
 *     ├────────────────────────▶│ decide                       │                   │
 *     │◀──────────── reserve ───┤                              │                   │
 *     ├─ reserved, load now ───▶│ confirm                      │                   │
 *     │  (room is kept)         ├──── lend ───────────────────▶│ lease, saved      │
 *     │                         │◀─── lent ────────────────────┤                   │
 *     │                         │ intent saved                 │                   │
 *     │                         ├── ask (txn, epoch) ──────────┼──────────────────▶│ refuses
 * another │                         │◀─────────────────────────────┼──── outcome ──────┤ epoch, or
 * two at │◀──────────── release ───┼──── release ────────────────▶│                   │ a time
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

    void start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved,
               effects &out);
    void tick(nanos now, effects &out);
    nanos due() const { return next_; }

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
    bool lent_to(const rank_key &rank, const txn_id &txn) const;
    std::string busy_with() const;

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
        node_id asked_of = kNobody;   /* the agent that reaches the job */
        std::uint64_t its_life = 0;
    };
    struct lease {
        txn_id txn;
        nanos until;
    };

    bool free_rank(nanos now, const local_rank &rank, node_id target, std::string &why) const;
    void begin(nanos now, plan p, effects &out);
    void borrow(nanos now, effects &out);
    void ask(nanos now, effects &out);
    void reach_job(nanos now, effects &out);
    void query_job(nanos now, effects &out);
    void conclude(nanos now, node_id from, const msg::outcome &m, effects &out);
    bool was_asked(node_id agent) const;
    void abandon(nanos now, const std::string &why, effects &out);
    void release_all(bool moved, effects &out);
    void pause(nanos now, bool success);
    void forward(nanos now, msg::steal m, effects &out);
    void look_for_work(nanos now, effects &out);
    void nudge_thieves(nanos now, effects &out);
    bool wants(nanos now) const;
    void remember_route(const txn_id &txn, node_id from);
    record note(nanos now, std::string what, std::string why) const;
    node_id gateway(job_id job) const;
    void schedule(nanos now);

    const settings &s_;
    membership &network_;
    profiling &here_;
    decision &decision_;
    const policy &policy_;
    experience &past_;
    history &history_;
    random_source &random_;

    std::uint64_t next_number_ = 0;
    std::optional<attempt> attempt_;
    std::map<rank_key, lease> leases_;
    std::map<txn_id, nanos> reservations_; /* until when, should the release be lost */
    nanos next_decision_ = 0;
    std::uint32_t failures_ = 0;

    nanos next_look_ = 0;
    nanos next_steal_ = 0;
    nanos steal_pause_ = 0;
    nanos next_nudge_ = 0;
    nanos nudge_pause_ = 0;
    std::uint64_t generation_ = 0;

    /* As the one that reaches the job: who asked, and what must no longer be let through. */
    std::map<txn_id, node_id> routes_;
    std::deque<txn_id> route_order_;
    std::set<txn_id> closed_;
    std::deque<txn_id> closed_order_;
    nanos next_ = 0;
};

} // namespace zc::agent

#endif
