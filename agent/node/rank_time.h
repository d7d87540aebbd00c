/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_RANK_TIME_H_INCLUDED
#define ZC_AGENT_RANK_TIME_H_INCLUDED

#include <cstdint>
#include <optional>
#include <string>

#include "zcm/profile.h"

namespace zc::agent {

/** Of the first thread of a rank, since it began. */
struct processor_time {
    std::uint64_t ran_ns = 0;
    std::uint64_t waited_ns = 0; /* for a processor, those that a quota kept from it included */
};

/**
 * What the kernel says of the process that writes the profile @p, whose file is open as @fd. None
 * if its number means another process here, as from a container, or the kernel does not tell.
 */
std::optional<processor_time> time_of_writer(const zcm_profile &p, int fd,
                                             const std::string &proc = "/proc");

/**
 * What an iteration takes a rank: the time on a processor outside MPI, where waiting for others
 * takes processor time as well. Not the time that passes: by that a node with more threads than
 * processors would be slow, which its load shows already.
 *
 * Only readings in which it hardly ever waited for a processor are taken: then the time outside MPI
 * is that of a processor, and else it is not known in which part it waited. Ranks that are crowded
 * all the time show nothing. Means over some twenty readings.
 */
class rank_work {
  public:
    /** A reading; @mpi_ns and @iterations since the rank began. @counts: the rank computed. */
    void read(std::uint64_t now_ns, const processor_time &time, std::uint64_t mpi_ns,
              std::uint64_t iterations, bool counts);
    /** Seconds for an iteration; 0: not known, or not yet. */
    double seconds() const;

  private:
    struct reading {
        std::uint64_t now_ns;
        processor_time time;
        std::uint64_t mpi_ns;
        std::uint64_t iterations;
    };
    std::optional<reading> last_;
    int readings_ = 0;
    double work_ns_ = 0; /* these two decay */
    double iterations_ = 0;
};

} // namespace zc::agent

#endif
