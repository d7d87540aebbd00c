/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_SIMULATION_H_INCLUDED
#define ZC_AGENT_SIMULATION_H_INCLUDED

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission.h"
#include "agent.h"

namespace zc::agent::sim {

/** What world to make. The same options give the same run, to the last message. */
struct options {
    std::uint64_t seed = 1;
    std::uint32_t nodes = 10;
    double seconds = 240;  /* of virtual time */
    double calm = 0.6;     /* last part of it in which nothing goes wrong and no load changes */
    double loss = 0;       /* part of the messages that are lost */
    double crash = 0;      /* of an agent, before any one effect of its protocol */
    double lose_state = 0; /* part of the crashes that take the state file along */
    double late = 0;       /* part of the messages that take up to 40 s */
    std::uint32_t partitions = 0; /* cuts of 10 s, in two halves */
    std::uint32_t churn = 0;      /* idle nodes that go and come back */
    std::uint32_t load_changes = 0;
    double skew = 0;       /* clocks drift by up to this part, and start anywhere */
    double stuck = 0;      /* moves whose ranks do not reach a safe point */
    double fail = 0;       /* moves that are begun and undone */
    bool balanced = false; /* no imbalance to begin with */
    /* If not 0: another world. On every second node four ranks, the others idle; all jobs go
     * through two phases of so many seconds in turn, each with its own pairs of partners; at some
     * moment of the second half of the faulty part others come to each job's node, and two of its
     * ranks should go. */
    double phase_a = 0;
    double phase_b = 0;
    settings agents; /* of every agent */
};

/** Traffic of jobs since ranks of theirs were moved. */
struct traffic_after {
    std::uint64_t jobs = 0;
    double bytes = 0;
    double across = 0; /* of these, from one node to another */
    double part() const { return bytes > 0 ? across / bytes : 0; }
};

/**
 * How evenly the work lies. Each move makes the slower of two nodes faster, so @imbalance and
 * @worst fall, while @mean may grow: a job that shares its node with ranks of an overloaded one
 * pays for it.
 */
struct balance_sheet {
    double imbalance = 0; /* standard deviation over the nodes of threads per processor */
    double mean = 0;      /* over the jobs, of the pace of their slowest rank */
    double worst = 0;     /* of these */
};

/** What came of it. */
struct result {
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t message_bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t steals_in_calm = 0; /* steal packets in the last quarter of the calm */
    std::uint64_t asks = 0;
    std::uint64_t refused_asks = 0;
    std::uint64_t moves = 0;
    std::uint64_t ranks_moved = 0;
    std::uint64_t failed = 0;
    std::uint64_t crashes = 0;
    std::uint64_t marginal_moves = 0; /* in the calm: just at the hysteresis, so due at any time */
    std::uint64_t last_move_ms = 0;   /* virtual time of the last one but for these */
    balance_sheet before;
    balance_sheet after;
    traffic_after
        at_the_end; /* with phases: of jobs moved in the last seconds of the first phase */
    traffic_after otherwise;
    std::map<std::string, std::uint64_t> by_type;
    std::vector<std::string> violations; /* of the invariants; empty is good */
};

/** Virtual nodes, network, jobs and time; real agents. */
class simulation {
  public:
    explicit simulation(options o);
    ~simulation();
    result run();

  private:
    enum class kind : std::uint8_t {
        deliver,
        wake,
        sample,
        restart,
        job_done,
        cut,
        heal,
        go,
        come,
        change,
        start,
        others_come,
    };
    struct event {
        nanos at;
        std::uint64_t order;
        kind what;
        std::uint32_t node;
        std::uint64_t extra;
        std::string bytes;
        bool operator<(const event &other) const
        {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    struct node {
        std::unique_ptr<agent> mind;
        std::unique_ptr<admission> door;
        std::string disk;
        bool up = false;
        double drift = 0;
        nanos offset = 0;
        double cpus = 4;
        double speed = 1;
        double others = 0; /* runnable threads that are not ranks */
        std::uint32_t rack = 0;
        std::uint64_t sequence = 0;
        std::uint64_t lives = 0;
        nanos wake_at = kNever;
        int side = 0; /* of a cut */
        std::set<rank_key> ranks;
        std::map<txn_id, msg::outcome> past; /* what it asked of jobs, in this life */
    };
    struct job {
        std::uint64_t epoch = 1;
        std::vector<std::uint32_t> where;
        std::uint64_t image = 0;
        double iterations = 0;
        std::uint64_t total = 0;
        nanos counted = 0;
        bool busy = false;
        nanos begun = 0;
        msg::ask current;
        std::uint32_t reached_by = 0;
        std::uint64_t its_life = 0;
        msg::verdict end = msg::verdict::moved;
        double seconds = 0;
        std::map<rank_id, std::set<std::uint32_t>> left_in_calm;
        std::vector<rank_id> seat; /* with phases: partners are chosen by seats, not by ranks */
        std::optional<bool> at_the_end; /* of a first phase ranks were first moved */
        traffic_after after;
    };

    void build();
    void build_phases();
    rank_id partner(const job &j, rank_id rank, nanos at) const;
    bool in_phase_a(nanos at, double before_end) const;
    std::vector<zcp_event_t> traffic(job &j, rank_profile &p, std::uint32_t n) const;
    void push(nanos at, kind what, std::uint32_t node, std::uint64_t extra = 0,
              std::string bytes = {});
    void handle(event &e);
    void boot(std::uint32_t n);
    void crash(std::uint32_t n);
    void sample(std::uint32_t n);
    void apply(std::uint32_t n, effects &&out);
    void transmit(std::uint32_t from, outbound &&o);
    bool dies(std::uint32_t n, bool protocol_step);
    void ask(std::uint32_t n, const msg::ask &a);
    void query(std::uint32_t n, const msg::query &q);
    void job_done(job_id id);
    bool is_marginal(const job &j, const msg::ask &a) const;
    void answer(std::uint32_t n, const msg::outcome &o);
    void schedule(std::uint32_t n);
    nanos local(std::uint32_t n, nanos at) const;
    nanos global(std::uint32_t n, nanos at) const;
    nanos delay(std::uint32_t a, std::uint32_t b, std::size_t bytes);
    double true_pace(const job &j) const;
    double node_pace(std::uint32_t n) const;
    balance_sheet measure() const;
    void violated(std::string text);
    bool calm() const { return now_ >= calm_from_; }
    std::uint32_t index_of(node_id id) const { return static_cast<std::uint32_t>(id - 1); }

    options o_;
    random_source random_;
    result result_;
    nanos now_ = 0;
    nanos end_ = 0;
    nanos calm_from_ = 0;
    std::uint64_t order_ = 0;
    std::vector<event> queue_;
    std::vector<node> nodes_;
    std::map<job_id, job> jobs_;
    bool cut_ = false;
};

} // namespace zc::agent::sim

#endif
