/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
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
    /** @over: a window of all ranks that all may read; it outlives this. @patience_s: how long
     * ranks wait until all have met. @homes: hosts, by rank, "" where unknown. */
    roll_call(MPI_Win over, int rank, double limit_s, double patience_s,
              const std::vector<std::string> &homes);
    /** Waits for answers but to look_for_gone(): what is late of those is MPI's from here on. */
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
     * that, but who has ended is. A call that was under way then may never fail, so there are
     * others: after a quarter of the shorter limit, and each time after twice as long, as those
     * that are not answered take memory. Rank 0 calls all, and they call it. @since: when it began
     * to wait. Not with Open MPI, where a call may block for as long as the other one computes;
     * there the launcher ends a job of which a process has died.
     */
    void look_for_gone(double since);

    /** An error of MPI says that a process has died: which one it is, "" if all answer that answer
     * within @limit_s. Not with Open MPI, likewise. */
    std::string who_is_gone(double limit_s);

    /** A collective operation of all ranks has failed, with @problem: one is lost, most likely. */
    [[noreturn]] static void find_lost(const std::string &problem);

  private:
    struct calls {
        explicit calls(std::size_t ranks)
            : requests(ranks, MPI_REQUEST_NULL), answers(std::make_unique<std::int64_t[]>(ranks))
        {
        }
        std::vector<MPI_Request> requests; /* by rank; none of a rank that has answered */
        std::unique_ptr<std::int64_t[]> answers;
    };

    /** Ranks; as many as there are: none. */
    struct findings {
        std::size_t missing; /* the first that has not answered yet */
        std::size_t gone;    /* one that never will, as MPI has found */
    };

    std::size_t none() const noexcept { return homes_.size(); }
    void look_now();
    std::size_t begin(calls &all, std::size_t ranks) const;
    findings look_at(calls &all) const;
    std::size_t unanswered_of(calls &all) const;
    std::size_t unanswered() { return unanswered_of(last_); }
    std::string name_of(std::size_t missing) const;
    void end_if_gone(std::size_t rank) const;
    [[noreturn]] void find_lost_now(const std::string &problem);
    void ask(double now);
    [[noreturn]] void end_for(std::size_t missing, const std::string &how) const;
    std::string how_silent() const;

    static inline roll_call *active = nullptr;
    MPI_Win over_;
    int rank_;
    double limit_s_, patience_s_;
    const std::vector<std::string> &homes_;
    double asked_ = 0;              /* when the last round began, or the waiting */
    calls last_{0};                 /* of it */
    double called_ = 0, gap_s_ = 0; /* by look_for_gone(): when, and until it does again */
    std::list<calls> called_again_; /* and not answered by all */
};

} // namespace zc::migrate
