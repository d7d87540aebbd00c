/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint_directory.h"
#include "image.h"

namespace zc::migrate {

class job;

/**
 * A checkpoint on disk. Each rank has one, made at the safe point where all have met:
 *
 *     consent    all wait: each rank makes its data current, and all agree whether all could
 *        │ no ─▶ refused: all go on as before
 *        ▼ yes
 *     take       all wait: each rank copies its image into memory, or streams it into its file;
 *        │ no ─▶ refused: what was written is removed
 *        ▼ yes
 *     write      a thread, while the rank computes: the copy into its file; then rank 0's
 *                waits for the files of all, makes them the latest, and answers
 *
 * A copy holds the ranks for as long as memory takes, and needs the state a second time; a stream
 * holds them for as long as the disk takes. Left to itself each rank copies if the state of all
 * ranks of its host needs no more than half of the memory that is available there, and streams
 * otherwise.
 */
class checkpoint_transaction {
  public:
    explicit checkpoint_transaction(job &of);
    checkpoint_transaction(const checkpoint_transaction &) = delete;
    checkpoint_transaction &operator=(const checkpoint_transaction &) = delete;

    /** Collective. False: refused, and the answer to the request has been sent. */
    bool prepare();
    /** Does not throw; what is wrong is printed, and in the job's writer_problem_. */
    void write();

  private:
    bool consent();
    bool take();
    bool refuse(const std::string &verdict);
    void keep_others_away();
    bool has_room_for_copies();
    void copy();
    void stream();
    void measure();
    void write_and_commit();
    void slow_down() const;
    std::string report() const;

    job &job_;
    const int rank_, ranks_;
    const std::int64_t safe_point_;
    std::unique_ptr<checkpoint_directory> place_;
    std::vector<array> arrays_;
    image_memory memory_;
    std::span<const std::byte> image_; /* in memory_; none if it is streamed */
    bool streamed_ = false;
    std::uint64_t image_bytes_ = 0, zero_bytes_ = 0;
    bool answers_ = false;     /* rank 0: a request waits for the outcome */
    std::vector<double> sum_;  /* over all ranks: bytes of the image, of zeros left out, of data;
                                  ranks that have streamed */
    std::vector<double> most_; /* of any rank, ms: to take the state, to hold the rank */
    double asked_ = 0, begin_, built_ = 0, done_ = 0; /* when */
};

} // namespace zc::migrate
