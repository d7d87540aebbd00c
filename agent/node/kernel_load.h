/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_KERNEL_LOAD_H_INCLUDED
#define ZC_AGENT_KERNEL_LOAD_H_INCLUDED

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling.h"

namespace zc::agent {

/** What hwloc says of the machine. */
struct machine_shape {
    unsigned packages = 0;
    unsigned numa_nodes = 0;
    unsigned cores = 0;
    unsigned threads = 0;
    std::uint64_t memory_bytes = 0;
};
machine_shape read_shape();

/** What is asked of the kernel about load; every part may be missing. */
struct kernel_reading {
    double cpus = 1;                /* limit: affinity, cpuset, cgroup quota */
    std::optional<double> runnable; /* threads, right now */
    std::optional<double> cpu_pressure;
    std::optional<double> memory_pressure;
    std::optional<double> throttled; /* part of the time, since the last reading */
    std::optional<double> used;      /* processors in use by the cgroup or the machine */
    double steal = 0;
    std::uint64_t free_bytes = 0;
};

/**
 * Load of the node: of the whole machine, or of one cgroup (version 1 or 2) if it is
 * given or if our own is limited. In a cgroup the threads in it that are runnable are
 * counted; of the machine /proc/stat tells.
 *
 * A thread that sleeps now and then gets what it wants before those that never do: the
 * scheduler is fair. So beside such it counts for what it used, in shares of theirs, and
 * not for how long it had to wait for it. In a cgroup that is out of its quota most of
 * the time, a process that hands on a line of output now and then would else look as
 * greedy as a rank.
 */
class kernel_load {
  public:
    /** @root: "" or a directory that stands for /, for tests. */
    kernel_load(std::string cgroup, double cpus, std::string root = "");

    kernel_reading read(std::uint64_t now_ns);
    /** Counts runnable threads only; cheap enough for ten times a second. */
    double runnable(std::uint64_t now_ns);
    const std::string &cgroup() const { return cgroup_; }

  private:
    /** A thread as we have seen it; means over the last looks. */
    struct thread {
        double weight = 1;
        double waiting = 0;         /* part of the looks in which it was runnable */
        std::optional<double> used; /* processors */
        double ran_ns = -1;         /* as it was at the last look */
        bool runnable = false;      /* at the last look */
    };
    std::string file(const std::string &path) const;
    std::optional<double> limit() const;
    bool look_at(const std::string &tid, double passed_ns, thread &t) const;
    void look(std::uint64_t now_ns);
    double runnable_in_cgroup(std::uint64_t now_ns);
    double runnable_in_machine();
    void read_times(kernel_reading &r);
    void read_cgroup(double passed_us, kernel_reading &r);
    double used_us(const std::map<std::string, double> &stat) const;
    std::uint64_t free_bytes() const;

    std::string root_;
    std::string cgroup_; /* directory; empty: the machine */
    bool cgroup_given_;
    double cpus_;
    double smoothed_ = -1;
    std::map<std::string, thread> threads_;
    std::uint64_t last_look_ns_ = 0;
    std::uint64_t last_ns_ = 0;
    double last_throttled_us_ = 0;
    double last_used_us_ = 0;
    double last_steal_ = 0;
    double last_total_ = 0;
    double ours_total_ = 0; /* ticks of our processors, at the last look */
    double ours_busy_ = 0;
    double last_idle_ = 0;
};

} // namespace zc::agent

#endif
