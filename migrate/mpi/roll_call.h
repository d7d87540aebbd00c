/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <string>
#include <vector>

namespace zc::migrate {

/**
 * Is every rank still there, while all wait for each other in a move or a checkpoint? The launcher
 * may let a job go on without a process that has died, and MPI need not notice. So a rank that
 * waits long has the others answer, which they do whenever they are in MPI: one-sided, of a word of
 * theirs. One that does not answer for @limit_s has died, is stopped, or cannot be reached; what it
 * would have done is the move's or the job's, so the job ends, with its name.
 */
class roll_call {
  public:
    /** @over: a window of all ranks that all may read; it outlives this. @homes: hosts, by rank, ""
     * where unknown. */
    roll_call(MPI_Win over, int rank, double limit_s, const std::vector<std::string> &homes);
    /** All ranks are there, and answer. */
    ~roll_call();
    roll_call(const roll_call &) = delete;
    roll_call &operator=(const roll_call &) = delete;

    /** While it lives, waits of this process look. */
    class scope {
      public:
        explicit scope(roll_call &own) noexcept;
        ~scope() { active = nullptr; }
        scope(const scope &) = delete;
        scope &operator=(const scope &) = delete;
    };
    /** Called again and again by whatever waits for other ranks. Does not return if one is lost. */
    static void look()
    {
        if (active)
            active->look_now();
    }

    /** A collective operation of all ranks has failed, with @problem: one is lost, most likely. */
    [[noreturn]] static void find_lost(const std::string &problem);

  private:
    void look_now();
    std::size_t unanswered();
    [[noreturn]] void find_lost_now(const std::string &problem);
    void ask(double now);
    [[noreturn]] void end_for(std::size_t missing, const std::string &how) const;
    std::string how_silent() const;

    static inline roll_call *active = nullptr;
    MPI_Win over_;
    int rank_;
    double limit_s_;
    const std::vector<std::string> &homes_;
    double asked_ = 0;                  /* when the last round began, or the waiting */
    std::vector<MPI_Request> requests_; /* by rank; none of the last round that is answered */
    std::vector<std::int64_t> answers_;
};

} // namespace zc::migrate
