/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_HELD_PROCESSES_H_INCLUDED
#define ZC_AGENT_HELD_PROCESSES_H_INCLUDED

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rank_files.h"
#include "sent_rates.h"

namespace zc::holder {
class traffic_reader;
}

namespace zc::agent {

/** Where the zc-hold of a rank is that decides about its moves. */
struct rank_origin {
    std::string home; /* the host on which the launcher has started the rank */
    int pid = 0;      /* of its zc-hold there */
};

/**
 * Finds the ranks below zc-hold that run on this node, wherever they were started: processes of
 * this user whose parent is a zc-hold, and in whose environment that has written what they are.
 * Nothing has to be told, registered or asked for it, so nothing is out of date. Of other network
 * namespaces, which are other hosts, none.
 *
 * Without help of their programs this is known of them: memory, processor time, age, and what they
 * send, if their MPI library tells it (zch/rank_traffic.h). Not known are iterations, and whether
 * they can move.
 */
class held_processes {
  public:
    /** @home: the name of this host. @proc stands for /proc, for tests. */
    explicit held_processes(std::string home, std::string proc = "/proc");

    /** All of now, by key. @now_ns: CLOCK_MONOTONIC. */
    std::map<rank_key, rank_reading> read(std::uint64_t now_ns);
    /** Of a rank of the last reading; none if it was not there. */
    const rank_origin *origin_of(const rank_key &rank) const;
    /** Children of zc-hold that the kernel does not let this process read, at the last reading. */
    std::uint64_t unread() const { return unread_; }

  private:
    struct known {
        std::uint64_t start = 0; /* as the kernel tells it: another process has another one */
        std::uint32_t looks = 0; /* readings in which it was no rank */
        bool is_rank = false;
        rank_origin origin;
        std::string job;
        rank_key key;
        std::uint32_t world = 0;
        bool movable = true;
        std::uint64_t used_ns = 0, at_ns = 0;
        double processors = -1;                          /* a mean; below 0: not known yet */
        std::shared_ptr<holder::traffic_reader> traffic; /* none: it cannot tell */
        sent_rates rates;
    };
    struct process {
        int parent = 0;
        std::uint64_t start = 0;
    };
    bool read_process(const std::string &pid, process &out) const;
    void look(const std::string &pid, const process &what, known &k);
    bool is_of_zc_hold(int parent) const;
    void measure(const std::string &pid, std::uint64_t now_ns, known &k) const;
    static void take_messages(std::uint64_t now_ns, known &k, rank_reading &one);
    rank_reading describe(const std::string &pid, const known &k) const;
    std::string text_of(const std::string &pid, const char *name) const;

    std::string home_, proc_;
    std::string network_;                /* namespace */
    std::map<std::string, known> known_; /* by process number */
    std::map<rank_key, rank_origin> origins_;
    std::uint64_t unread_ = 0;
    int reading_ = 0;
};

} // namespace zc::agent

#endif
