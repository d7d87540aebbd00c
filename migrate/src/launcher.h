/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zc::migrate {

/** What a launcher can do; zcm-launch does it, and tests write it down. */
class launcher_actions {
  public:
    virtual ~launcher_actions() = default;
    /** The @child-th successor's leaver is the process of @card from now on. False: it cannot be
     * called. */
    virtual bool change_leaver(std::size_t child, const std::string &card) = 0;
    /** To the leaver of the @child-th successor. */
    virtual void tell_leaver(std::size_t child, const nlohmann::json &what) = 0;
    virtual void tell_child(std::size_t child, const nlohmann::json &what) = 0;
    virtual void kill_child(std::size_t child) = 0;
    /** From now on this many children are ranks: the end of this process is that of the job. */
    virtual void guard_ranks(std::size_t ranks) = 0;
    /** As the process manager does when one of its processes calls MPI_Abort() with @code. */
    virtual void abort_job(int code) = 0;
    /** Ask the process manager; its answer is spawned(). */
    virtual void spawn(const std::string &host, const std::string &card) = 0;
};

/**
 * What zcm-launch decides. It is the parent of the successors of one host, each of which is a
 * world of its own, and has a wire to each of their leavers:
 *
 *               port         go (noted)          rank          ends well
 *     starting ──────▶ ready ──────────▶ chosen ──────▶ rank ──────────▶ ended
 *        │               │ ◀───────────    │ ends badly  │ ends badly
 *        │               │      back       │             │
 *        │ends, or its   │                 ▼             ▼
 *        │leaver is gone ▼            this process ends by that signal, so that the process
 *        └─────────▶   ended         manager ends the job
 *
 * Before go a child's end, by whatever signal, is told to its leaver and ends nothing else; it is
 * killed when its leaver says so, or is gone. One that is chosen, but does not know it yet, is
 * killed when its leaver is gone: it would wait for go, and nothing else may tell it. The launcher
 * is over when its children are, and the leavers of those that were no ranks have let them go.
 *
 * Successors that are started before the ranks meet have rank 0 for a leaver until then; it says
 * which process the leaver is, and that is told at once what has become of its successor.
 *
 * Successors are no processes of the process manager's, so what they want started on other hosts
 * (launchers) is asked of it in their name, one after the other.
 */
class launcher {
  public:
    launcher(std::size_t children, launcher_actions &by);
    launcher(const launcher &) = delete;
    launcher &operator=(const launcher &) = delete;

    /** What has come by a child's wire. */
    void child_says(std::size_t child, const nlohmann::json &what);
    /** It has ended, and its leaver may still have said something: that it is the rank comes too
     * late. */
    void child_ends(std::size_t child) { ends_[child] = true; }
    /** It has ended, with @status as of waitpid(). */
    void child_ended(std::size_t child, int status);
    /** What has come by a leaver's wire. */
    void leaver_says(std::size_t child, const nlohmann::json &what);
    void leaver_gone(std::size_t child);
    /** The process manager has answered; @problem is "" if it does it. */
    void spawned(const std::string &problem);

    /** The end of this child is that of the job. */
    bool is_rank(std::size_t child) const
    {
        return states_[child] == state::chosen || states_[child] == state::rank;
    }
    /** "rank 3", or "a rank" of one that has not said yet which it is. */
    std::string name_of(std::size_t child) const;
    /** Nothing is left to do. */
    bool is_over() const noexcept { return over_; }
    /** By which signal this process is then to end; 0: none. */
    int signal() const noexcept { return signal_; }

  private:
    enum class state { starting, ready, chosen, rank, ended };
    struct wanted {
        std::size_t child;
        std::string host, card;
    };

    std::size_t count(state which) const;
    std::size_t ranks() const { return count(state::chosen) + count(state::rank); }
    void spawn_next();
    void look_for_end();

    launcher_actions &by_;
    std::vector<state> states_;
    std::vector<int> ranks_;           /* what each one is in the job, -1 if it has not said so */
    std::vector<nlohmann::json> news_; /* what each one's leaver was told last: port, or its end */
    std::deque<wanted> wanted_;        /* the first is being done */
    std::vector<bool> ends_;           /* child_ends() */
    std::vector<bool> told_;           /* of how it has ended: whoever could want to know that */
    bool over_ = false;
    int signal_ = 0;
};

/** "was killed by signal 9 (Killed)", "has ended with exit status 1". */
std::string describe_end(int status);

} // namespace zc::migrate
