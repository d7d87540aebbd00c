/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PROFILING_H_INCLUDED
#define ZC_AGENT_PROFILING_H_INCLUDED

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent_settings.h"
#include "message.h"

namespace zc::agent {

/** What the kernel says of this node; a sample every second or so. */
struct load_sample {
    double cpus = 1;   /* processors we may use, after cgroup limits and stolen time */
    double demand = 0; /* runnable threads, our ranks included */
    double speed = 1;
    std::uint64_t free_bytes = 0;
    double cpu_pressure = 0; /* PSI some avg10, percent; for show */
    double memory_pressure = 0;
    double steal = 0; /* part of the time the hypervisor took */
    bool draining = false;
};

/** Traffic of one rank with another, both ways. */
struct flow {
    rank_id peer = 0;
    double bytes_per_s = 0;
    double messages_per_s = 0;
};

/** What one local rank is doing. */
struct rank_profile {
    rank_key key;
    std::uint64_t epoch = 0;
    std::uint64_t image_bytes = 0;
    std::uint64_t iterations = 0;
    std::uint64_t total_iterations = 0; /* 0: not known */
    double iterations_per_s = 0;
    double mpi_share = 0; /* of the time, inside MPI */
    double work_s = 0;    /* of a processor, per iteration, outside MPI; 0: not known */
    double elapsed_s = 0;
    bool movable = true;
    bool transparent = false; /* below zc-hold: it moves without help of its program */
    bool idle = false;        /* it hardly uses a processor, so that it is no load */
    double processors = 0;    /* that all its threads use or wait for; 0: not known */
    std::vector<flow> flows;
};

/** What is known of one job with ranks here. */
struct job_view {
    job_id job = 0;
    std::uint64_t epoch = 0;        /* of the placement; grows with every reconfiguration */
    bool busy = false;              /* being reconfigured */
    bool observe = false;           /* wants to be told what would be done, and no more */
    bool transparent = false;       /* its ranks are below zc-hold, each of which moves by itself */
    std::vector<node_id> placement; /* where each rank is; kNoNode: not known */
    std::set<std::string> hosts;    /* of its ranks, whether or not an agent is known there */
    node_id gateway = kNoNode;      /* the node that reaches the job */
    std::string gateway_host;       /* in case no agent is known there yet */
    std::string name;
};

/** A rank that is here, and how it came. */
struct local_rank {
    rank_profile profile;
    nanos arrived = 0;
    node_id came_from = kNoNode;
    std::uint32_t moves = 0; /* of late */
    bool leaving = false;    /* asked to move away and confirmed, not yet seen to be gone */
    nanos leaving_since = 0;
    nanos not_before = 0; /* may have been lent by an earlier life of this agent */
    nanos last_seen = 0;
};

/** @other, with the speed of its processors relative to those of @mine. */
load_digest beside(const load_digest &mine, load_digest other);

/** Iteration time per unit of work on a node: 1 where every thread has a processor of speed 1. */
double pace(double demand, double cpus, double speed);

/**
 * The profiling component: keeps what was sampled, and says what it means. The
 * demand of others is what is runnable beyond our ranks, smoothed; our ranks are
 * counted, so that a move shows at once.
 */
class profiling {
  public:
    explicit profiling(const settings &s) : s_(s) {}

    /** @quarantine: ranks found in the first moments may be lent; 0 if we remember our leases. */
    void start(nanos now, nanos quarantine, bool draining = false);
    /** While a job here is being reconfigured, what runs says nothing about what will: ranks that
     * meet do not sleep, and successors start. Then the demand of others stays what it was, and a
     * node has to be overloaded for `settle` after that. */
    void on_load(nanos now, const load_sample &sample);
    void on_rank(nanos now, const rank_profile &profile);
    void on_rank_gone(const rank_key &key);
    void on_job(const job_view &job) { jobs_[job.job] = job; }
    void on_job_gone(job_id job);

    /** Ranks will arrive; they count from now on. */
    void expect(const txn_id &txn, job_id job, const std::vector<traveller> &ranks,
                std::uint64_t bytes, std::uint32_t moves, nanos until);
    void expected_over(nanos now, const txn_id &txn, bool moved);
    /** Has @rank come from @home in that move, or is it to? */
    bool comes_from(const txn_id &txn, const rank_key &rank, node_id home) const;
    /** False when all are seen, it is over, or it has taken too long. */
    bool expects(const txn_id &txn) const { return arrivals_.contains(txn); }
    void expire(nanos now);
    void mark_leaving(nanos now, const rank_key &key);

    /** What others are told. */
    load_digest digest() const;
    /** The same with the least demand of others during all of `settle`: what a decision to give has
     * to be right for as well. A node may be overloaded by its ranks alone, for ever; then what
     * comes and goes beside them is no reason. */
    load_digest lasting() const;
    const load_sample &load() const { return load_; }
    double external() const { return external_; }
    double demand() const; /* others', ranks here, ranks to come */
    std::uint32_t ranks_here() const;
    /** Those of them that want a processor. */
    std::uint32_t ranks_running() const;
    double own_pace() const;
    /** How long it has been overloaded, as far as that can be told; 0: it is not. */
    nanos overloaded_for(nanos now) const;
    bool draining() const { return load_.draining; }

    const std::map<rank_key, local_rank> &ranks() const { return ranks_; }
    const std::map<job_id, job_view> &jobs() const { return jobs_; }
    const job_view *job(job_id job) const;
    std::set<std::string> hosts() const; /* of all jobs */
    bool sampled() const { return sampled_; }
    /** Changes when the load does, by a quarter or more. */
    std::uint64_t load_generation() const { return generation_; }

  private:
    struct arrival {
        job_id job;
        std::map<rank_id, node_id> homes;
        std::uint64_t bytes;
        std::uint32_t moves;
        nanos until;
    };
    bool is_disturbed() const;
    std::uint32_t expected() const;
    std::uint32_t capacity() const;

    struct level {
        nanos time;
        double demand;
    };

    const settings &s_;
    load_sample load_;
    bool sampled_ = false;
    double external_ = 0;
    double quick_ = 0;       /* likewise, but smoothed less: what is over must not linger */
    std::deque<level> lows_; /* of quick_ within `settle`: ascending in both, the least first */
    nanos last_sample_ = 0;
    nanos overloaded_since_ = kNever;
    nanos started_ = 0;
    nanos quarantine_ = 0;
    double reference_ = -1; /* load at the last change of generation */
    std::uint64_t generation_ = 0;
    std::map<rank_key, local_rank> ranks_;
    std::map<job_id, job_view> jobs_;
    std::map<txn_id, arrival> arrivals_;
};

} // namespace zc::agent

#endif
