/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zc::migrate {

/**
 * The words of a rank that rank 0 reads and changes from afar, and the few operations that a
 * negotiation needs on them. Each of these is atomic to all others, on the same word.
 */
class window {
  public:
    enum place : std::size_t { kProposal, kConfirmation, kCounter, kArrival, kVerdict, kBytes };
    using words = std::array<std::atomic<std::int64_t>, 6>;
    enum class operation { read, replace, add };

    /** The same operation on all ranks but 0. Kept until it is done, as it cannot be withdrawn. */
    class round {
      public:
        explicit round(int others) : got(static_cast<std::size_t>(others)) {}
        virtual ~round() = default;
        /** Have all ranks answered? Does not block. */
        virtual bool is_done() = 0;
        /** Had rank i + 1 when that was asked last? */
        virtual bool has_answered(std::size_t i) const = 0;
        /** Until all have. */
        virtual void wait() = 0;

        /** What was there before, at rank i + 1. */
        std::vector<std::int64_t> got;
    };

    virtual ~window() = default;
    /** Collective. */
    virtual void close() = 0;

    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;

    /** Rank 0. On one word of one rank the operations of several rounds are done in this order. */
    virtual std::unique_ptr<round> start(place where, operation what, std::int64_t value) = 0;

    /* This rank's own words. */
    virtual std::int64_t load(place where) noexcept = 0;
    virtual void store(place where, std::int64_t value) noexcept = 0;
    /** By the way that rank 0 takes; what was there before. */
    virtual std::int64_t add(place where, std::int64_t value) noexcept = 0;
};

static_assert(sizeof(std::atomic<std::int64_t>) == 8, "MPI addresses the words as MPI_INT64_T");

} // namespace zc::migrate
