/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "window.h"

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
 * Where a move may find too little memory, the sizes of the ranks' states are read with their
 * counters in step 1: the request can be refused before any rank has heard of it.
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
 *
 * Nothing here blocks or asks for the time: rendezvous.h does, in the name of each rank.
 */
class negotiation {
  public:
    static constexpr std::int64_t kNever = (std::int64_t{1} << 40) - 1;

    /** Collective over the ranks of @over, which is made on own_words(); @requests are done with.
     */
    void open(std::unique_ptr<window> over, std::int64_t requests);
    window::words &own_words() noexcept { return memory_; }
    /** Collective: close it. */
    void close();
    bool leads() const noexcept { return rank_ == 0; }

    /** This rank has come to safe point @n; false is the way out for nearly all of them. */
    bool is_called_at(std::int64_t n) noexcept
    {
        count(n);
        return is_called();
    }
    void count(std::int64_t n) noexcept { counter().store(n, std::memory_order_relaxed); }
    bool is_called() const noexcept
    {
        return memory_[window::kProposal].load(std::memory_order_relaxed) != quiet_;
    }
    /** This rank has so much state now. */
    void weigh(std::uint64_t bytes) noexcept
    {
        memory_[window::kBytes].store(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    }
    /** There will be no more safe points. */
    void never_again() noexcept { counter().store(kNever); }

    /** Any thread of rank 0: there is something to agree on. */
    void ring() noexcept { proposal().fetch_add(1); }

    /* ---- rank 0 looks for a place ---- */

    /** What was rung for up to now will be dealt with. */
    void hear() noexcept { seen_ = proposal().load(); }
    /** @weighs: advance() says once, before anything is proposed, that weights() are known. */
    void begin(bool weighs);
    enum class progress { silence, searching, weighed, found, finishing };
    /** What is known by now; silence if that is what was known before. */
    progress advance(std::int64_t n);
    /** It need not be found before rank 0 leaves safe point @n. */
    bool is_ahead_of(std::int64_t n) const noexcept { return n < proposed_; }
    std::int64_t place() const noexcept { return proposed_; }
    /** Of the state of each rank, in bytes, as it was when the request was begun with. */
    std::vector<std::int64_t> weights() const;
    /** A rank that has not answered, or else one that has not arrived; -1: none. */
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

    /** All that decides on what this rank does next, for tests that go through all that can be. */
    std::vector<std::int64_t> state() const;

  private:
    static constexpr std::int64_t kTaken = 1, kGone = 2; /* added to kArrival */

    using word = window::words::value_type;
    word &proposal() noexcept { return memory_[window::kProposal]; }
    word &counter() noexcept { return memory_[window::kCounter]; }
    std::int64_t stamp(std::int64_t safe_point) const noexcept;
    std::int64_t meeting() const noexcept;
    void start(window::place where, window::operation what, std::int64_t value);
    bool is_done()
    {
        return (rounds_.empty() || rounds_.back()->is_done()) &&
               (step_ != step::weighing || weights_->is_done());
    }
    void propose(std::int64_t farthest);

    window::words memory_{};
    std::int64_t quiet_ = 0; /* the proposal that has been dealt with */
    std::int64_t seen_ = 0;  /* the one being dealt with */
    std::int64_t requests_ = 0;
    std::unique_ptr<window> window_;
    int rank_ = 0;

    enum class step {
        idle,
        weighing,
        reading,
        telling,
        checking,
        confirming,
        gathering,
        taking,
        over
    };
    step step_ = step::idle;
    std::list<std::unique_ptr<window::round>> rounds_; /* the last one is the one that counts */
    std::unique_ptr<window::round> weights_;           /* the last one of these; may be null */
    std::int64_t proposed_ = 0, raise_ = 1;
    int attempt_ = 0;
};

} // namespace zc::migrate
