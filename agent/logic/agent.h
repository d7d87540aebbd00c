/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_AGENT_H_INCLUDED
#define ZC_AGENT_AGENT_H_INCLUDED

#include <map>
#include <memory>

#include "collector.h"
#include "protocol.h"

namespace zc::agent {

/**
 * One node's agent: a state machine. Events go in with the time at which they
 * happen; what is to be done comes out. It knows no clock, socket or file, so the
 * simulation and zcmd run the same.
 *
 * After every call: write state_text() if effects say so, then do the rest, and
 * call on_time() at due(), or earlier. One thread at a time.
 */
class agent {
  public:
    /** @self: id, host and address; @incarnation above that of every earlier life. */
    agent(const settings &s, member self, std::uint64_t incarnation, std::uint64_t seed);
    agent(const agent &) = delete;
    agent &operator=(const agent &) = delete;

    effects start(nanos now, const std::optional<saved_state> &saved);
    effects on_time(nanos now);
    nanos due() const;
    /** Admitted already: see admission. */
    effects on_message(nanos now, const message &m);
    effects on_load(nanos now, const load_sample &sample);
    void on_rank(nanos now, const rank_profile &profile) { here_.on_rank(now, profile); }
    void on_rank_gone(const rank_key &key) { here_.on_rank_gone(key); }
    void on_job(const job_view &job);
    void on_job_gone(job_id job);
    /** What ranks of @job here have sent since the last sample, in the order of time. */
    effects on_traffic(nanos now, job_id job, std::span<const zcp_event_t> events);
    effects on_outcome(nanos now, const msg::outcome &outcome);
    effects leave();

    std::string state_text() const;
    std::uint64_t incarnation() const { return incarnation_; }
    const profiling &here() const { return here_; }
    const membership &network() const { return network_; }
    const history &decisions() const { return history_; }
    history &decisions() { return history_; }
    const protocol &moves() const { return protocol_; }
    const grouping &groups() const { return *groups_; }
    /** Jobs whose ranks move one by one, since the engine of their groups could not be made: the
     *  errno of grouping::job(). */
    const std::map<job_id, int> &without_groups() const { return without_groups_; }
    /** Messages of ranks that moved: told to their new homes, and by their old ones. */
    struct handed_over {
        std::uint64_t told = 0;
        std::uint64_t learned = 0;
        std::uint64_t refused = 0; /* of ranks that did not come from the sender */
    };
    const handed_over &traffic_of_movers() const { return handed_over_; }
    /** Where those of all ranks of a job are collected. */
    const collector::counts &traffic_of_jobs() const { return collector_.counted(); }
    const settings &options() const { return settings_; }

  private:
    void tell_new_homes(nanos now, effects &out);
    void learn_past(nanos now, node_id from, const msg::past &m);
    void learn_traffic(nanos now, const message &from, const msg::traffic &m);
    bool collects() const { return settings_.collect == collection::job; }

    settings settings_;
    random_source random_;
    std::uint64_t incarnation_;
    history history_;
    profiling here_;
    membership network_;
    std::unique_ptr<grouping> groups_;
    collector collector_;
    std::map<job_id, int> without_groups_;
    std::unique_ptr<policy> policy_;
    experience past_;
    std::unique_ptr<decision> decision_;
    protocol protocol_;
    handed_over handed_over_;
};

} // namespace zc::agent

#endif
