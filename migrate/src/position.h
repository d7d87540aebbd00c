/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zc::migrate {

/** How far a rank has come in a run that is recorded (checksum_log.h). */
struct position {
    std::int64_t safe_point = 0; /* 0: none yet */
    bool ended = false;          /* it has called zcm_finalize() */

    bool operator==(const position &) const = default;
};

/** Where a rank writes it: DIR/rank-N.at, one line, replaced at each safe point. */
class position_file {
  public:
    /** Throws error. */
    position_file(const std::string &directory, int rank);
    ~position_file();
    position_file(const position_file &) = delete;
    position_file &operator=(const position_file &) = delete;

    /** Throws error if it cannot be written. */
    void write(const position &here);

  private:
    std::string path_;
    int file_;
};

/** Those of all ranks in @directory, by rank; none if there is no such directory. */
std::vector<position> positions_in(const std::string &directory);

} // namespace zc::migrate
