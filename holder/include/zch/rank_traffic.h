/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCH_RANK_TRAFFIC_H_INCLUDED
#define ZCH_RANK_TRAFFIC_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "descriptor.h"
#include "zch/held_ranks.h"

namespace zc::holder {

/**
 * Which messages a rank below zc-hold sends: a file in the runtime folder of the host on which the
 * rank is. Its zc-hold makes it, the rank's netmod writes (mpi-ch4-netmod/zc/zc_traffic.h, which
 * has the same structure), and who is of the same user reads.
 *
 *       0  traffic_header
 *      64  kTrafficEntries times traffic_entry, a ring: the nth message is in entry
 *          n % kTrafficEntries
 *
 * As long as zc-hold or the rank has it, it is locked (flock(2)).
 */
struct traffic_header {
    std::uint32_t magic, entries;
    std::uint32_t rank, world;
    std::uint64_t job;  /* number_of_job() */
    std::uint64_t sent; /* messages, ever; the rank's */
    std::uint64_t reserved[4];
};

struct traffic_entry {
    std::uint64_t time_ns; /* CLOCK_MONOTONIC of the host, to some milliseconds */
    std::uint32_t receiver;
    std::uint32_t kib; /* rounded up */
};

inline constexpr std::uint32_t kTrafficMagic = 0x7254635a; /* "ZcTr" */
inline constexpr std::uint32_t kTrafficEntries = 4096;
static_assert(sizeof(traffic_header) == 64 && sizeof(traffic_entry) == 16);

/** The file, for zc-hold. */
class traffic_file {
  public:
    /** Removes what killed processes have left. */
    static void remove_left_over();
    /** Of the rank @whose, on this host. Throws error. */
    explicit traffic_file(const held_rank &whose);
    /** Removes it, unless another zc-hold has made one for the same rank. */
    ~traffic_file();
    traffic_file(const traffic_file &) = delete;
    traffic_file &operator=(const traffic_file &) = delete;
    int fd() const noexcept { return file_.fd; }
    const std::string &path() const noexcept { return path_; }

  private:
    std::string path_;
    descriptor file_;
};

/** Reads what one rank on this host sends. One thread. */
class traffic_reader {
  public:
    explicit traffic_reader(const held_rank &whose);
    /** What has been sent since the last call, in order; at the first, and when the rank has begun
     * anew, all that the file has. */
    std::vector<traffic_entry> read();
    /** Of those since the call before the last, how many were overwritten before they were read. */
    std::uint64_t missed() const noexcept { return missed_; }
    /** Whether the rank tells what it sends, at the last call. */
    bool is_told() const noexcept { return told_; }

  private:
    bool open_newest();
    bool read_header(traffic_header &header) const;
    std::string name_;
    std::uint64_t job_;
    std::uint32_t rank_, world_;
    descriptor file_;
    std::uint64_t next_ = 0; /* of the messages, that was not read */
    std::uint64_t missed_ = 0;
    bool told_ = false;
};

} // namespace zc::holder

#endif
