/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace zc::migrate {

/**
 * Checkpoints of a job on a file system that all its hosts share.
 *
 *     DIR/latest -> at-1200            replaced by rename(2) once all is written
 *     DIR/at-1200/rank-0.h5 ...        one image per rank
 *     DIR/at-1200/manifest.json        ranks, safe point; written last
 *     DIR/at-1200.part-NONCE/          being written; of no value after a crash, nor
 *                                      mistaken for that of a later run
 *
 * A rank that cannot write says so by a file rank-N.failed-ERRNO. The previous
 * checkpoint is removed only after the new one is complete.
 */
class checkpoint_directory {
  public:
    /** @nonce: the same in all ranks, and never again. */
    checkpoint_directory(std::string directory, std::int64_t safe_point, std::string nonce);

    /** Every rank: write its image durably; throws, having told the others. */
    void write_rank(int rank, std::span<const std::byte> image) const;

    /**
     * Rank 0, after its own, successful or not: wait for all, then make it the latest;
     * or, if one failed, remove what there is, and throw.
     */
    void commit(int ranks, double timeout_s) const;

    /** What is complete. Throws error naming the directory if nothing is, or it is damaged. */
    struct complete {
        std::string directory;
        int ranks;
        std::int64_t safe_point;
        std::string rank_file(int rank) const;
    };
    static complete latest(const std::string &directory);

  private:
    void prepare() const;
    void remove_others() const;
    std::string part() const;

    std::string directory_;
    std::string name_;
    std::string nonce_;
    std::int64_t safe_point_;
};

} // namespace zc::migrate
