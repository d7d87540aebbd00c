/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
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

    /**
     * The same for one that waits where others may compute: who does not answer is not lost for
     * that, but who has ended is. A call that was under way then may never fail, so all are called
     * again and again. @since: when it began to wait.
     */
    void look_for_gone(double since);

    /** A collective operation of all ranks has failed, with @problem: one is lost, most likely. */
    [[noreturn]] static void find_lost(const std::string &problem);

  private:
    struct calls {
        explicit calls(std::size_t ranks) : requests(ranks, MPI_REQUEST_NULL), answers(ranks, 0) {}
        std::vector<MPI_Request> requests; /* by rank; none of a rank that has answered */
        std::vector<std::int64_t> answers;
    };

    void look_now();
    void begin(calls &all) const;
    std::size_t unanswered_of(calls &all) const;
    std::size_t unanswered() { return unanswered_of(last_); }
    [[noreturn]] void find_lost_now(const std::string &problem);
    void ask(double now);
    [[noreturn]] void end_for(std::size_t missing, const std::string &how) const;
    std::string how_silent() const;

    static inline roll_call *active = nullptr;
    MPI_Win over_;
    int rank_;
    double limit_s_;
    const std::vector<std::string> &homes_;
    double asked_ = 0; /* when the last round began, or the waiting */
    calls last_{0};    /* of it */
    double called_ = 0;
    std::list<calls> called_again_; /* by look_for_gone(), and not answered by all */
};

} // namespace zc::migrate
