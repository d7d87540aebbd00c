/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image.h"

namespace zc::migrate {

class job;

/**
 * A checkpoint on disk. Each rank has one, made at the safe point where all have met:
 *
 *     prepare    all wait: each rank makes its image in memory, and all agree whether all could
 *        │ no ─▶ refused: all go on as before
 *        ▼ yes
 *     write      a thread, while the rank computes: its image into a file; then rank 0's
 *                waits for the files of all, makes them the latest, and answers
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
    void keep_others_away();
    void make_image();
    void measure();
    void write_and_commit();
    std::string report() const;

    job &job_;
    const int rank_, ranks_;
    const std::int64_t safe_point_;
    image_memory memory_;
    std::span<const std::byte> image_; /* in memory_ */
    std::uint64_t zero_bytes_ = 0;
    std::string nonce_;
    bool answers_ = false;     /* rank 0: a request waits for the outcome */
    std::vector<double> sum_;  /* over all ranks, bytes: of the image, of zeros left out, of data */
    std::vector<double> most_; /* of any rank, ms: to make the image, to hold the rank */
    double asked_ = 0, begin_, built_ = 0, done_ = 0; /* when */
};

} // namespace zc::migrate
