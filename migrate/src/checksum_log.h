/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "position.h"
#include "registry.h"

namespace zc::migrate {

/**
 * Checksums of what a rank has registered, at every so many safe points: two runs of a program can
 * be compared by them (comparison.h).
 *
 *     DIR/rank-N       lines of JSON; a process that takes the rank over appends its own
 *         {"at":40,"name":"t","type":"float64","count":640,"sums":[...]}     of up to 64 parts each
 *         {"at":40,"end":4}                                                  so many were
 * registered
 *         {"moved":31}                                                       at this safe point
 *     DIR/rank-N.at    where it is (position.h)
 */
class checksum_log {
  public:
    static constexpr std::uint64_t kParts = 64;

    /** @last: the safe point that this process begins with, as its predecessor has recorded it; 0
     * at the start. Throws error. */
    checksum_log(const std::string &directory, int rank, std::int64_t every, std::int64_t last);
    ~checksum_log();
    checksum_log(const checksum_log &) = delete;
    checksum_log &operator=(const checksum_log &) = delete;

    bool is_due(std::int64_t safe_point) const noexcept
    {
        return safe_point % every_ == 0 && safe_point > last_;
    }
    /** Throws error if it cannot be written. */
    void record(std::int64_t safe_point, const registry &data);
    void moved(std::int64_t safe_point);
    /** Throws error if it cannot be written. */
    void reach(const position &here) { position_.write(here); }

  private:
    void write(const std::string &line);
    void flush();

    struct file;
    position_file position_;
    std::unique_ptr<file> file_;
    std::int64_t every_, last_;
};

/** Units in each of the parts of @units that have a checksum of their own. */
std::uint64_t units_in_part(std::uint64_t units);

} // namespace zc::migrate
