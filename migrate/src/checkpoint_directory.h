/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "lineage.h"

namespace zc::migrate {

/**
 * Checkpoints of a job on a file system that all its hosts share. NUMBER is the job's.
 *
 *     DIR/latest -> at-1200-NUMBER            replaced by rename(2) once all is written
 *     DIR/at-1200-NUMBER/rank-0.h5 ...        one image per rank
 *     DIR/at-1200-NUMBER/manifest.json        whose it is, ranks, safe point; written last
 *     DIR/at-1200-NUMBER-2/                   the same of a job that saved twice there
 *     DIR/at-1200-NUMBER.part-NONCE/          being written; of no value after a crash, nor
 *                                             mistaken for that of a later run
 *     DIR/lock                                whose turn it is (directory_lock.h)
 *
 * A rank that cannot write says so by a file rank-N.failed-ERRNO. Once a new checkpoint is
 * complete, the oldest of the same line of jobs are removed, so that as many as wanted stay, and
 * nobody else's. Each has a number of its own in its line, its generation; the greatest is the
 * newest.
 */
class checkpoint_directory {
  public:
    /** @nonce: the same in all ranks, and never again. @keep: how many of the line stay. */
    checkpoint_directory(std::string directory, std::int64_t safe_point, std::string nonce,
                         lineage whose, int keep = 1);

    /** Every rank: write its image durably; throws, having told the others. */
    void write_rank(int rank, std::span<const std::byte> image,
                    const std::function<void()> &block_written = {}) const;

    /** Every rank, instead: where to write its image itself, durably. Throws error. */
    std::string file_of(int rank) const;
    /** Rank 0, when no rank writes any more: there is no checkpoint. */
    void discard() const;

    /** Is another job kept away while this one saves? */
    enum class company { alone, unknown };

    /**
     * Rank 0, after its own, successful or not: wait for all, then make it the latest;
     * or, if one failed, remove what there is, and throw. It takes as long as it takes: given
     * up only if for @silence_s nobody has written anything.
     */
    void commit(int ranks, double silence_s, company others = company::alone) const;

    /** What is complete. */
    struct complete {
        std::string directory;
        int ranks;
        std::int64_t safe_point;
        std::int64_t generation;
        lineage whose;
        std::string rank_file(int rank) const;
    };
    /**
     * @place: one checkpoint, or a directory of checkpoints, the latest of which is meant. Throws
     * error naming it if nothing is complete, it is damaged, or there are several lines of jobs to
     * choose from.
     */
    static complete latest(const std::string &place);

  private:
    void prepare() const;
    void await(int ranks, double silence_s) const;
    void write_manifest(int ranks) const;
    void make_latest() const;
    void remove_others(company others) const;
    std::string part() const;

    std::string directory_;
    lineage whose_;
    std::string name_;
    std::string nonce_;
    std::int64_t safe_point_;
    int keep_;
};

} // namespace zc::migrate
