/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_RANK_FILES_H_INCLUDED
#define ZC_AGENT_RANK_FILES_H_INCLUDED

#include <map>
#include <string>
#include <vector>

#include "profiling.h"
#include "rank_time.h"
#include "zcm/profile.h"
#include "zcp/grouping.h"

namespace zc::agent {

/** What one reading of a rank's profile gave. */
struct rank_reading {
    rank_profile profile;
    std::uint32_t world = 0;
    std::uint32_t pid = 0;
    bool busy = false;
    bool observe = false;
    std::string job_name;
    std::vector<std::string> host_of; /* of every rank */
    std::vector<zcp_event_t> events;  /* since the last reading */
    std::uint64_t events_missed = 0;  /* overwritten before they were read */
    bool tells = true;                /* what it sends */
};

/**
 * Adds ranks that are below zc-hold to those that have told of themselves. What the program offers
 * comes first: a process that has a profile moves by safe points. @observe: the others are not to
 * move.
 */
void add_held(std::map<rank_key, rank_reading> &found, std::map<rank_key, rank_reading> held,
              bool observe);

/**
 * Reads the profiles that the ranks of this user write (zcm/profile.h). Files are
 * read, not mapped, so that one which shrinks is an error and not a signal; what
 * is not a whole profile of ours is left out and counted. Profiles of processes that
 * have died are removed.
 */
class rank_files {
  public:
    explicit rank_files(std::string directory) : directories_{std::move(directory)} {}
    explicit rank_files(std::vector<std::string> directories) : directories_(std::move(directories))
    {
    }

    /** All ranks here that have told where the others are, by key. @now_ns: CLOCK_MONOTONIC. */
    std::map<rank_key, rank_reading> read(std::uint64_t now_ns);
    std::uint64_t refused() const { return refused_; }
    /** Ranks of the last reading of whose processor time the kernel does not tell. */
    std::uint64_t untimed() const { return untimed_; }

  private:
    struct known {
        std::uint64_t ring_head = 0;
        std::uint64_t iterations = 0;
        std::uint64_t mpi_ns = 0;
        std::uint64_t at_ns = 0;
        double iterations_per_s = 0;
        std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> sent; /* bytes, messages */
        std::map<std::uint32_t, flow> rates;
        rank_work work;
        std::uint64_t epoch = 0;
        bool first = true;
    };
    bool read_one(const std::string &path, std::uint64_t now_ns, rank_reading &out, known &k);
    static void take_rates(const zcm_profile &p, const zcm_profile_counters &c,
                           std::uint64_t now_ns, known &k, rank_profile &r);
    void take_work(int fd, const zcm_profile &p, const zcm_profile_counters &c,
                   std::uint64_t now_ns, known &k, rank_profile &r);
    /** A time that is yet to come would stop the engine's: it waits for it. */
    static bool take_messages(int fd, const zcm_profile &p, std::uint64_t now_ns, known &k,
                              rank_reading &out);

    std::vector<std::string> directories_;
    std::map<std::string, known> known_; /* by path */
    std::uint64_t refused_ = 0;
    std::uint64_t untimed_ = 0;
};

} // namespace zc::agent

#endif
