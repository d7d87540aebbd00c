/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sched.h>
#include <sstream>

#include <hwloc.h>

namespace zc::agent {
namespace {

constexpr double kLook = 0.1; /* weight of the newest look at a thread */
/* ns: the time that a thread has had is brought up to date by ticks, of 1 to 10 ms. */
constexpr std::uint64_t kJustNow = 20'000'000;
constexpr double kBusy = 0.95; /* part of the time; more, and threads may wait */
constexpr double kGreedy =
    0.95; /* part of the looks; a thread that is runnable in more never sleeps */

std::optional<std::string> slurp(const std::string &path)
{
    std::ifstream in(path);
    std::stringstream text;
    if (!in || !(text << in.rdbuf()))
        return {};
    return text.str();
}

/** "key value" lines. */
std::map<std::string, double> table(const std::string &text)
{
    std::map<std::string, double> values;
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line)) {
        std::istringstream words(line);
        std::string key;
        double value = 0;
        if (words >> key >> value) {
            if (key.ends_with(':'))
                key.pop_back();
            values[key] = value;
        }
    }
    return values;
}

/** "some avg10=1.23 …" */
std::optional<double> pressure(const std::optional<std::string> &text)
{
    double value = 0;
    if (!text || std::sscanf(text->c_str(), "some avg10=%lf", &value) != 1)
        return {};
    return value;
}

/**
 * What a runnable thread takes from others, by its nice value: the scheduler gives 1.25 times less
 * for each step (kernel/sched/core.c, sched_prio_to_weight). @stat: /proc/TID/stat from the state
 * on.
 */
double weight_of(const std::string &stat)
{
    constexpr int kNice = 16; /* fields after the state */
    std::istringstream words(stat);
    std::string word;
    for (int i = 0; i <= kNice; i++) {
        if (!(words >> word))
            return 1;
    }
    return std::min(1.0, std::pow(1.25, -std::strtod(word.c_str(), nullptr)));
}

/** That we may use. */
cpu_set_t affinity()
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        CPU_ZERO(&set);
        CPU_SET(0, &set);
    }
    return set;
}

/**
 * Of a cgroup and of those below it: where a group of version 2 hands controllers down, its
 * processes are in those only.
 */
std::string threads_below(const std::string &directory)
{
    namespace fs = std::filesystem;
    auto list = slurp(directory + "/cgroup.threads");
    std::string all = list && !list->empty() ? *list : slurp(directory + "/tasks").value_or("");
    std::error_code gone;
    for (fs::directory_iterator at(directory, gone), end; !gone && at != end; at.increment(gone)) {
        if (at->is_directory(gone) && !at->is_symlink(gone))
            all += threads_below(at->path());
    }
    return all;
}

} // namespace

machine_shape read_shape()
{
    machine_shape shape;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0)
        return shape;
    if (hwloc_topology_load(topology) == 0) {
        auto count = [&](hwloc_obj_type_t type) {
            return static_cast<unsigned>(std::max(0, hwloc_get_nbobjs_by_type(topology, type)));
        };
        shape.packages = count(HWLOC_OBJ_PACKAGE);
        shape.numa_nodes = count(HWLOC_OBJ_NUMANODE);
        shape.cores = count(HWLOC_OBJ_CORE);
        shape.threads = count(HWLOC_OBJ_PU);
        if (hwloc_obj_t machine = hwloc_get_root_obj(topology))
            shape.memory_bytes = machine->total_memory;
    }
    hwloc_topology_destroy(topology);
    return shape;
}

kernel_load::kernel_load(std::string cgroup, double cpus, std::string root)
    : root_(std::move(root)), cgroup_(std::move(cgroup)), cgroup_given_(!cgroup_.empty()),
      cpus_(cpus)
{
    if (cgroup_given_)
        return;
    /* Our own, where it limits us: version 2 first, then the cpu controller of version 1. */
    auto text = slurp(file("/proc/self/cgroup"));
    std::istringstream lines(text.value_or(""));
    std::string line;
    std::vector<std::string> candidates;
    while (std::getline(lines, line)) {
        auto first = line.find(':');
        auto second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos)
            continue;
        std::string controllers = line.substr(first + 1, second - first - 1);
        std::string path = line.substr(second + 1);
        if (path == "/")
            path = "";
        if (controllers.empty()) {
            candidates.insert(candidates.begin(),
                              {"/sys/fs/cgroup" + path, "/sys/fs/cgroup/unified" + path});
        } else if (controllers == "cpu" || controllers == "cpu,cpuacct" ||
                   controllers == "cpuacct,cpu") {
            candidates.push_back("/sys/fs/cgroup/cpu" + path);
            candidates.push_back("/sys/fs/cgroup/cpu,cpuacct" + path);
        }
    }
    for (const std::string &candidate : candidates) {
        cgroup_ = candidate;
        if (limit())
            return;
    }
    cgroup_.clear();
}

std::string kernel_load::file(const std::string &path) const
{
    return root_ + path;
}

std::optional<double> kernel_load::limit() const
{
    if (cgroup_.empty())
        return {};
    if (auto text = slurp(file(cgroup_ + "/cpu.max"))) {
        double quota = 0;
        double period = 0;
        if (std::sscanf(text->c_str(), "%lf %lf", &quota, &period) == 2 && period > 0 && quota > 0)
            return quota / period;
        return {}; /* "max" */
    }
    auto quota = slurp(file(cgroup_ + "/cpu.cfs_quota_us"));
    auto period = slurp(file(cgroup_ + "/cpu.cfs_period_us"));
    if (quota && period) {
        double q = std::strtod(quota->c_str(), nullptr);
        double p = std::strtod(period->c_str(), nullptr);
        if (q > 0 && p > 0)
            return q / p;
    }
    return {};
}

/** False if it is gone. */
bool kernel_load::look_at(const std::string &tid, double passed_ns, thread &t) const
{
    auto stat = slurp(file("/proc/" + tid + "/stat"));
    auto at = stat ? stat->rfind(')') : std::string::npos;
    if (at == std::string::npos || at + 2 >= stat->size())
        return false;
    bool is_new = t.ran_ns < 0;
    t.runnable = (*stat)[at + 2] == 'R';
    t.weight = weight_of(stat->substr(at + 2));
    t.waiting = is_new ? t.runnable : t.waiting + kLook * (t.runnable - t.waiting);
    /* Nanoseconds on a processor, then those of waiting for one. */
    auto text = slurp(file("/proc/" + tid + "/schedstat"));
    double ran = text ? std::strtod(text->c_str(), nullptr) : 0;
    if (text && !is_new && passed_ns > 0) {
        double used = std::max(0.0, ran - t.ran_ns) / passed_ns;
        t.used = t.used ? *t.used + kLook * (used - *t.used) : used;
    }
    t.ran_ns = ran;
    return true;
}

/** Looks at all threads, unless it has done so just now. */
void kernel_load::look(std::uint64_t now_ns)
{
    if (last_look_ns_ != 0 && now_ns - last_look_ns_ < kJustNow)
        return;
    double passed_ns = last_look_ns_ == 0 ? 0 : static_cast<double>(now_ns - last_look_ns_);
    last_look_ns_ = now_ns;
    std::map<std::string, thread> now;
    std::istringstream tids(threads_below(file(cgroup_)));
    std::string tid;
    while (tids >> tid) {
        auto known = threads_.find(tid);
        thread t = known == threads_.end() ? thread{} : known->second;
        if (look_at(tid, passed_ns, t))
            now[tid] = t;
    }
    threads_ = std::move(now);
}

double kernel_load::runnable_in_cgroup(std::uint64_t now_ns)
{
    look(now_ns);
    double used =
        0; /* by those that never sleep: their share is what any other thread could have */
    double weights = 0;
    for (const auto &[id, t] : threads_) {
        if (t.waiting > kGreedy && t.used) {
            used += *t.used;
            weights += t.weight;
        }
    }
    double share = weights > 0 ? used / weights : 0;
    double count = 0;
    for (const auto &[id, t] : threads_) {
        if (t.waiting > kGreedy || !t.used || share <= 0)
            count += t.runnable ? t.weight : 0;
        else
            count += std::min(t.weight * t.waiting, *t.used / share);
    }
    return count;
}

double kernel_load::runnable_in_machine()
{
    auto stat = slurp(file("/proc/stat"));
    if (!stat)
        return 0;
    const cpu_set_t ours = affinity();
    std::istringstream lines(*stat);
    std::string line;
    double online = 0;
    double processors = 0; /* of those, ours */
    double busy = 0;
    double total = 0;
    double running = 0;
    while (std::getline(lines, line)) {
        unsigned number = 0;
        std::array<double, 8> t{}; /* user nice system idle iowait irq softirq steal */
        if (std::sscanf(line.c_str(), "cpu%u %lf %lf %lf %lf %lf %lf %lf %lf", &number, &t[0],
                        &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) >= 5) {
            online++;
            if (number < CPU_SETSIZE && CPU_ISSET(number, &ours)) {
                double all = std::accumulate(t.begin(), t.end(), 0.0);
                processors++;
                total += all;
                busy += all - t[3] - t[4];
            }
        } else if (line.starts_with("procs_running ")) {
            running = std::strtod(line.c_str() + std::strlen("procs_running "), nullptr);
        }
    }
    const double passed = total - ours_total_;
    const double used =
        ours_total_ > 0 && passed > 0 ? (busy - ours_busy_) / passed : 0; /* part of the time */
    ours_total_ = total;
    ours_busy_ = busy;
    if (processors == online)
        return running;
    /* The others' threads do not matter. A thread that waits for our processors cannot be told from
     * one that waits for theirs, so where ours are busy all are taken to have the same to do. */
    return std::min(running, used < kBusy ? used * processors
                                          : std::max(processors, running * processors / online));
}

double kernel_load::runnable(std::uint64_t now_ns)
{
    double now = cgroup_.empty() ? runnable_in_machine() : runnable_in_cgroup(now_ns);
    /* This thread runs while it looks; it is asleep nearly always. */
    if (cgroup_.empty() || !cgroup_given_)
        now = std::max(0.0, now - 1);
    smoothed_ = smoothed_ < 0 ? now : 0.8 * smoothed_ + 0.2 * now;
    return smoothed_;
}

/** Stolen time, and of the whole machine the processors in use. */
void kernel_load::read_times(kernel_reading &r)
{
    auto stat = slurp(file("/proc/stat"));
    if (!stat)
        return;
    std::istringstream words(*stat);
    std::string cpu;
    double value = 0;
    double total = 0;
    double steal = 0;
    double idle = 0;
    words >> cpu;
    for (int i = 0; i < 8 && words >> value; i++) {
        /* user nice system idle iowait irq softirq steal */
        total += value;
        if (i == 7)
            steal = value;
        if (i == 3 || i == 4)
            idle += value;
    }
    if (last_total_ > 0 && total > last_total_) {
        r.steal = std::clamp((steal - last_steal_) / (total - last_total_), 0.0, 1.0);
        if (cgroup_.empty())
            r.used = (1 - (idle - last_idle_) / (total - last_total_)) * r.cpus;
    }
    last_total_ = total;
    last_steal_ = steal;
    last_idle_ = idle;
}

/** Microseconds of processors that the cgroup has used; version 1 has a controller for that. */
double kernel_load::used_us(const std::map<std::string, double> &stat) const
{
    if (stat.contains("usage_usec"))
        return stat.at("usage_usec");
    std::string accounting = cgroup_;
    auto at = accounting.find("/cgroup/cpu/");
    if (at != std::string::npos)
        accounting.replace(at, 12, "/cgroup/cpuacct/");
    auto ns = slurp(file(accounting + "/cpuacct.usage"));
    return ns ? std::strtod(ns->c_str(), nullptr) / 1000 : 0;
}

void kernel_load::read_cgroup(double passed_us, kernel_reading &r)
{
    auto values = table(slurp(file(cgroup_ + "/cpu.stat")).value_or(""));
    double throttled = values.contains("throttled_usec") ? values["throttled_usec"]
                                                         : values["throttled_time"] / 1000;
    double used = used_us(values);
    if (passed_us > 0) {
        r.throttled = std::max(0.0, (throttled - last_throttled_us_) / passed_us);
        r.used = std::max(0.0, (used - last_used_us_) / passed_us);
    }
    last_throttled_us_ = throttled;
    last_used_us_ = used;
    r.cpu_pressure = pressure(slurp(file(cgroup_ + "/cpu.pressure")));
    r.memory_pressure = pressure(slurp(file(cgroup_ + "/memory.pressure")));
}

/** Of the machine, or what the cgroup may still take, if that is less. */
std::uint64_t kernel_load::free_bytes() const
{
    auto memory = table(slurp(file("/proc/meminfo")).value_or(""));
    auto free = static_cast<std::uint64_t>(memory["MemAvailable"]) << 10;
    if (cgroup_.empty())
        return free;
    auto most = slurp(file(cgroup_ + "/memory.max"));
    auto used = slurp(file(cgroup_ + "/memory.current"));
    if (!most || !used || *most == "max\n")
        return free;
    auto m = std::strtoull(most->c_str(), nullptr, 10);
    auto u = std::strtoull(used->c_str(), nullptr, 10);
    return std::min<std::uint64_t>(free, m > u ? m - u : 1); /* 0: not known */
}

kernel_reading kernel_load::read(std::uint64_t now_ns)
{
    kernel_reading r;
    double passed_us = last_ns_ == 0 ? 0 : static_cast<double>(now_ns - last_ns_) / 1000;
    last_ns_ = now_ns;
    const cpu_set_t ours = affinity();
    r.cpus = std::max(1, CPU_COUNT(&ours));
    if (auto limited = limit())
        r.cpus = std::min(r.cpus, *limited);
    read_times(r);
    if (!cgroup_.empty())
        read_cgroup(passed_us, r);
    if (!r.cpu_pressure)
        r.cpu_pressure = pressure(slurp(file("/proc/pressure/cpu")));
    if (!r.memory_pressure)
        r.memory_pressure = pressure(slurp(file("/proc/pressure/memory")));

    /* What the hypervisor takes is not there to be used. */
    r.cpus = std::max(0.01, cpus_ > 0 ? cpus_ : r.cpus * (1 - r.steal));
    r.runnable = runnable(now_ns);
    r.free_bytes = free_bytes();
    return r;
}

} // namespace zc::agent
