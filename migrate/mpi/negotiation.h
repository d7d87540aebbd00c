/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mpi.h>
#include <optional>

namespace zc::migrate {

/**
 * At which safe point do all ranks meet? At one that lies ahead of the farthest of
 * them, so that everybody computes until it comes there.
 *
 * Each rank counts its safe points in a window. Rank 0, in a safe point of its own,
 *
 *   1  reads all counters, one-sided, and proposes the greatest + 1: a word in all windows
 *   2  reads the counters again. All below the proposal: every rank will see the word when
 *      it comes there, so it is *confirmed*, a second word. Somebody has gone past
 *      it meanwhile: the proposal is raised, by more each time, and so on.
 *
 *     rank 0   ──4 (1: 5,4,5 → 6) (2: 6,5,5 → raised to 8) (2: 6,5,6 → confirmed) ──5──6──7──8 meet
 *     rank 1   ──────5────────6────────7───────8 meet
 *
 * A rank at a proposal that is not confirmed waits there. It cannot deadlock: rank 0's
 * steps need only that others make progress in MPI, which those that wait for
 * messages, those that wait here, and now and then (job.cpp) those that compute do;
 * and it waits for nobody to *arrive*. When a proposal is confirmed all ranks are below
 * it, and none needs a message from beyond it to come there.
 *
 * (To publish one's next safe point and wait there until all have done so, as it was
 * built first, does deadlock: a neighbour that has passed that point without having seen
 * the request waits for a message that is sent behind it.)
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
    bool is_called() const noexcept
    {
        return memory_[0].load(std::memory_order_relaxed) != quiet_;
    }
    /** There will be no more safe points. */
    void never_again() noexcept { counter().store(kNever); }

    /** Any thread of rank 0: there is something to agree on. */
    void ring() noexcept { proposal().fetch_add(1); }

    /** Rank 0: take up what was rung for. */
    void begin() noexcept { seen_ = proposal().load(); }
    /** Rank 0: where all will meet; nothing if a rank is finishing (the others are told). */
    std::optional<std::int64_t> find_meeting(std::int64_t n);

    /** Others. */
    enum class verdict { ahead, wait, meet, missed, cancelled };
    verdict look(std::int64_t n) const noexcept;

    /** The request is done with. */
    void settle() noexcept;
    /** Requests so far, this one included. */
    std::int64_t requests() const noexcept { return requests_; }

  private:
    using word = std::atomic<std::int64_t>;
    word &proposal() noexcept { return memory_[0]; }
    word &counter() noexcept { return memory_[2]; }
    std::int64_t stamp(std::int64_t safe_point) const noexcept;
    std::int64_t farthest(std::int64_t n);
    void tell(std::int64_t value, std::int64_t place);

    std::array<word, 3> memory_{}; /* proposal, confirmation, counter */
    std::int64_t quiet_ = 0;       /* the proposal that has been dealt with */
    std::int64_t seen_ = 0;        /* rank 0: the ring being dealt with */
    std::int64_t requests_ = 0;
    MPI_Win window_ = MPI_WIN_NULL;
    int rank_ = 0, size_ = 1;
};

static_assert(sizeof(std::atomic<std::int64_t>) == 8, "the window is addressed as MPI_INT64_T");

} // namespace zc::migrate
