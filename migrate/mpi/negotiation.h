/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <mpi.h>
#include <vector>

namespace zc::migrate {

/**
 * At which safe point do all ranks meet? At one that lies ahead of the farthest of
 * them, so that everybody computes until it comes there.
 *
 * Each rank counts its safe points in a window. Rank 0, in safe points of its own,
 *
 *   1  reads all counters, one-sided, and proposes the greatest + 1: a word in all windows
 *   2  reads the counters again. All below the proposal: every rank will see the word when
 *      it comes there, so it is *confirmed*, a second word. Somebody has gone past
 *      it meanwhile: the proposal is raised, by more each time, and so on.
 *
 *     rank 0   ──4 (1: 5,4,5 → 6) (2: 6,5,5 → raised to 8) (2: 6,5,6 → confirmed) ──5──6──7──8 meet
 *     rank 1   ──────5────────6────────7───────8 meet
 *
 * A rank at a proposal that is not confirmed waits there, rank 0 too. It cannot deadlock: rank
 * 0's steps need only that others make progress in MPI, which those that wait for
 * messages, those that wait here, and now and then (job.cpp) those that compute do;
 * and it waits for nobody to *arrive*. When a proposal is confirmed all ranks are below
 * it, and none needs a message from beyond it to come there.
 *
 * (To publish one's next safe point and wait there until all have done so, as it was
 * built first, does deadlock: a neighbour that has passed that point without having seen
 * the request waits for a message that is sent behind it.)
 *
 * Rank 0 does not wait for answers between its safe points: who computes for long without
 * calling MPI answers late, and the job goes on meanwhile.
 *
 * **The meeting** binds nobody until all are there. Who arrives says so in its own window.
 * Rank 0, when all have, adds kTaken to each of these words; who has waited too long adds kGone
 * to its own. Both are atomic, so exactly one of the two comes first, and both sides know which:
 *
 *     rank 2   arrived ──────────────── +gone: nobody has taken it: goes on computing
 *     rank 0            (2 is there)              +taken: finds it gone ─▶ tells all: off
 *
 * Taken by rank 0, a rank waits for the verdict, which comes at once, as rank 0 is there.
 */
class negotiation {
  public:
    static constexpr std::int64_t kNever = (std::int64_t{1} << 40) - 1;

    /** Collective over @comm: open the window; @requests are done with. */
    void open(MPI_Comm comm, std::int64_t requests);
    /** Collective: close it. */
    void close();

    /** This rank has come to safe point @n; false is the way out for nearly all of them. */
    bool is_called_at(std::int64_t n) noexcept
    {
        counter().store(n, std::memory_order_relaxed);
        return proposal().load(std::memory_order_relaxed) != quiet_;
    }
    bool is_called() const noexcept { return memory_[0].load(std::memory_order_relaxed) != quiet_; }
    /** There will be no more safe points. */
    void never_again() noexcept { counter().store(kNever); }

    /** Any thread of rank 0: there is something to agree on. */
    void ring() noexcept { proposal().fetch_add(1); }

    /* ---- rank 0 looks for a place ---- */

    /** What was rung for up to now will be dealt with. */
    void hear() noexcept { seen_ = proposal().load(); }
    void begin();
    enum class progress { searching, found, finishing };
    /** In safe point @n, for at most @patience_s; longer only where it must not go on. */
    progress advance(std::int64_t n, double patience_s, double deadline);
    std::int64_t place() const noexcept { return proposed_; }
    /** A rank that has not answered, or not arrived; -1: none. */
    int missing() const;
    /** There will be no meeting: all will hear of it, whenever they listen. */
    void call_off();

    /* ---- the others find it ---- */

    enum class verdict { ahead, wait, meet, missed, cancelled };
    verdict look(std::int64_t n) noexcept;

    /* ---- the meeting: its @attempt-th, as it may be put off ---- */

    enum class gathering { waiting, all, off };
    void arrive(int attempt) noexcept;
    /** What is known of it by now; does not block. */
    gathering gather();
    /** Others: go on without it? False: too late, rank 0 has taken us. */
    bool give_up() noexcept;

    /** The request is done with. Rank 0 may have proposed a place for the next one by now. */
    void settle() noexcept { quiet_ = seen_; }
    /** Requests so far, this one included. */
    std::int64_t requests() const noexcept { return requests_; }

  private:
    using word = std::atomic<std::int64_t>;
    enum place_of : MPI_Aint { kProposal, kConfirmation, kCounter, kArrival, kVerdict, kWords };
    static constexpr std::int64_t kTaken = 1, kGone = 2; /* added to kArrival */

    /* The same one-sided operation on all other ranks. Kept until it is done, as it cannot
     * be withdrawn. */
    struct round {
        std::vector<std::int64_t> sent, got;
        std::vector<MPI_Request> requests;
    };

    word &proposal() noexcept { return memory_[kProposal]; }
    word &counter() noexcept { return memory_[kCounter]; }
    std::int64_t stamp(std::int64_t safe_point) const noexcept;
    std::int64_t meeting() const noexcept;
    void start(MPI_Aint place, MPI_Op op, std::int64_t value);
    bool is_done(round &one);
    bool is_done() { return rounds_.empty() || is_done(rounds_.back()); }
    void propose(std::int64_t farthest);

    std::array<word, kWords> memory_{};
    std::int64_t quiet_ = 0; /* the proposal that has been dealt with */
    std::int64_t seen_ = 0;  /* the one being dealt with */
    std::int64_t requests_ = 0;
    MPI_Win window_ = MPI_WIN_NULL;
    int rank_ = 0, size_ = 1;

    enum class step { idle, reading, telling, checking, confirming, gathering, taking, over };
    step step_ = step::idle;
    std::list<round> rounds_; /* the last one is the one that counts */
    std::int64_t proposed_ = 0, raise_ = 1;
    int attempt_ = 0;
};

static_assert(sizeof(std::atomic<std::int64_t>) == 8, "the window is addressed as MPI_INT64_T");

} // namespace zc::migrate
