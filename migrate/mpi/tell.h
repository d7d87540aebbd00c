/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mpi.h>
#include <vector>

#include "named_types.h"
#include "profiler.h"

/*
 * What calls tell the profiler: what is sent to whom, and how long it takes.
 *
 * Point-to-point messages are told as they are. Of collectives, which libraries route as they
 * like, we tell the messages of the textbook algorithm: a binomial tree for broadcast and
 * reduction, recursive doubling for all-reductions and scans, a ring for all-gathers; gather,
 * scatter, all-to-all and neighbour collectives directly. Enough to see who communicates with
 * whom, and it does not take longer than what is told. Of intercommunicators, messages and rooted
 * collectives are told. Persistent operations are told when they are started. Fortran's calls are
 * seen through those of C (fortran_binding.cpp).
 *
 * Time in MPI is told in ticks of the kernel's coarse clock (1 to 10 ms), which is read in a fifth
 * of the time of the fine one: a call of length t sees a tick with probability t / tick, so that
 * the sum is right in the mean however short calls are, and within some 3 % of a second's agent's
 * reading. Calls that return at once (MPI_Isend) are not timed. The fine clock is read, once per
 * call, for those that send something to another rank; it is their beginning, too.
 */
namespace zc::migrate {

/** What a message carries; asked for its bytes only where that is told. */
struct amount {
    MPI_Count count;
    MPI_Datatype type;
    int times = 1;

    [[gnu::always_inline]] std::uint64_t bytes() const
    {
        if (count <= 0)
            return 0;
        int size = named_types::size_of(type);
        if (size == 0) [[unlikely]]
            size = asked_size(type);
        return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) *
               static_cast<std::uint64_t>(times);
    }

  private:
    [[gnu::noinline]] static int asked_size(MPI_Datatype type)
    {
        int size = 0;
        return PMPI_Type_size(type, &size) == MPI_SUCCESS && size > 0 ? size : 0;
    }
};

/** What one call sends, if it counts. */
class telling {
  public:
    telling() : counts_(profiler::counts()) {}
    telling(const telling &) = delete;
    telling &operator=(const telling &) = delete;

    explicit operator bool() const noexcept { return counts_; }
    /** When the call was made; 0 if no message has needed it. */
    std::uint64_t known_ns() const noexcept { return when_.known_ns(); }

    [[gnu::always_inline]] void sent(comm_argument where, int peer, const amount &what) const
    {
        if (counts_ && peer >= 0) /* not to MPI_PROC_NULL */
            profiler::sent(where, peer, what.bytes(), when_);
    }
    void sent_to_all(comm_argument where, const amount &each) const
    {
        if (counts_)
            profiler::instance().sent_to_all(where, each.bytes(), when_);
    }
    void started(int count, const MPI_Request requests[]) const
    {
        if (counts_ && count > 0)
            profiler::instance().started({requests, static_cast<std::size_t>(count)}, when_);
    }

  private:
    const bool counts_;
    mutable moment when_;
};

/** The time of a call that may take some, if it counts. */
class span {
  public:
    span()
        : counts_(profiler::counts()), is_fine_(false), begin_(counts_ ? read_clock_ns(kTicks) : 0)
    {
    }
    /** Of a call that has told what it sends. */
    explicit span(const telling &told)
        : counts_(static_cast<bool>(told)), is_fine_(told.known_ns() != 0),
          begin_(counts_ && !is_fine_ ? read_clock_ns(kTicks) : told.known_ns())
    {
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;
    ~span()
    {
        if (!counts_)
            return;
        /* Within a tick the coarse clock is not past the fine one. */
        const std::uint64_t end = read_clock_ns(kTicks);
        if (end > begin_) [[unlikely]]
            profiler::instance().spent(begin_, end, is_fine_);
    }

  private:
    static constexpr clockid_t kTicks = CLOCK_MONOTONIC_COARSE;

    const bool counts_, is_fine_;
    const std::uint64_t begin_;
};

/**
 * What each start of a persistent operation sends. Made again after a move, inside a safe point:
 * so it is remembered always.
 */
class remembering {
  public:
    explicit remembering(MPI_Request request) : request_(request), counts_(profiler::is_open()) {}
    remembering(const remembering &) = delete;
    remembering &operator=(const remembering &) = delete;

    explicit operator bool() const noexcept { return counts_; }

    void sent(comm_argument where, int peer, const amount &what) const
    {
        if (counts_ && peer >= 0)
            profiler::instance().remember(request_, where, peer, what.bytes());
    }
    void sent_to_all(comm_argument where, const amount &each) const
    {
        for (int peer = 0; counts_ && peer < profiler::others(where.handle()); peer++)
            sent(where, peer, each);
    }

  private:
    const MPI_Request request_;
    const bool counts_;
};

/** Down a binomial tree: rank r, counted from the root, sends to r + 2^k for all 2^k > r. */
template <typename Telling>
void tell_broadcast(const Telling &inside, MPI_Comm comm, int root, const amount &what)
{
    if (!inside)
        return;
    if (profiler::is_inter(comm)) {
        if (root == MPI_ROOT)
            inside.sent_to_all(comm, what);
        return;
    }
    const auto [rank, size] = profiler::mine(comm);
    const int mine = (rank - root + size) % size;
    for (int bit = 1; bit < size; bit *= 2)
        if (bit > mine && mine + bit < size)
            inside.sent(comm, (mine + bit + root) % size, what);
}

/** Up the same tree: to the rank without one's highest bit. */
template <typename Telling>
void tell_reduction(const Telling &inside, MPI_Comm comm, int root, const amount &what)
{
    if (!inside)
        return;
    if (profiler::is_inter(comm)) {
        if (root >= 0)
            inside.sent(comm, root, what);
        return;
    }
    const auto [rank, size] = profiler::mine(comm);
    const int mine = (rank - root + size) % size;
    if (mine == 0)
        return;
    int highest = 1;
    while (highest * 2 <= mine)
        highest *= 2;
    inside.sent(comm, (mine - highest + root) % size, what);
}

template <typename Telling>
void tell_doubling(const Telling &inside, MPI_Comm comm, const amount &what)
{
    if (!inside || profiler::is_inter(comm))
        return;
    const auto [rank, size] = profiler::mine(comm);
    for (int bit = 1; bit < size; bit *= 2)
        if ((rank ^ bit) < size)
            inside.sent(comm, rank ^ bit, what);
}

/** With the count of each rank for itself. */
template <typename Telling, typename Count>
void tell_doubling(const Telling &inside, MPI_Comm comm, const Count counts[], MPI_Datatype type)
{
    if (inside && !profiler::is_inter(comm))
        tell_doubling(inside, comm, {counts[profiler::mine(comm).rank], type});
}

/** All blocks but one's own pass by, to the next rank. */
template <typename Telling>
void tell_ring(const Telling &inside, MPI_Comm comm, const amount &block)
{
    if (!inside || profiler::is_inter(comm))
        return;
    const auto [rank, size] = profiler::mine(comm);
    if (size > 1)
        inside.sent(comm, (rank + 1) % size, {block.count, block.type, size - 1});
}

template <typename Telling, typename Count>
void tell_ring(const Telling &inside, MPI_Comm comm, const Count counts[], MPI_Datatype type)
{
    if (inside && !profiler::is_inter(comm))
        tell_ring(inside, comm, {counts[profiler::mine(comm).rank], type});
}

template <typename Telling>
void tell_gather(const Telling &inside, MPI_Comm comm, int root, const amount &what)
{
    /* The root's type may be anything: MPI_IN_PLACE. */
    if (inside && root >= 0 && (profiler::is_inter(comm) || profiler::mine(comm).rank != root))
        inside.sent(comm, root, what);
}

inline bool is_root(MPI_Comm comm, int root)
{
    return root == MPI_ROOT ||
           (root >= 0 && !profiler::is_inter(comm) && profiler::mine(comm).rank == root);
}

template <typename Telling>
void tell_scatter(const Telling &inside, MPI_Comm comm, int root, const amount &each)
{
    if (inside && is_root(comm, root))
        inside.sent_to_all(comm, each);
}

template <typename Telling, typename Count>
void tell_scatter(const Telling &inside, MPI_Comm comm, int root, const Count counts[],
                  MPI_Datatype type)
{
    if (inside && is_root(comm, root))
        for (int peer = 0; peer < profiler::others(comm); peer++)
            inside.sent(comm, peer, {counts[peer], type});
}

inline MPI_Datatype one_of(MPI_Datatype type, int)
{
    return type;
}
inline MPI_Datatype one_of(const MPI_Datatype types[], int i)
{
    return types[i];
}

/** @types: one, or each peer's. */
template <typename Telling, typename Count, typename Types>
void tell_exchange(const Telling &inside, MPI_Comm comm, const void *from, const Count counts[],
                   Types types)
{
    if (inside && from != MPI_IN_PLACE)
        for (int peer = 0; peer < profiler::others(comm); peer++)
            inside.sent(comm, peer, {counts[peer], one_of(types, peer)});
}

template <typename Telling>
void tell_neighbours(const Telling &inside, MPI_Comm comm, const amount &each)
{
    if (inside)
        for (int peer : profiler::instance().destinations(comm))
            inside.sent(comm, peer, each);
}

template <typename Telling, typename Count, typename Types>
void tell_neighbours(const Telling &inside, MPI_Comm comm, const Count counts[], Types types)
{
    int i = 0;
    if (inside)
        for (int peer : profiler::instance().destinations(comm)) {
            inside.sent(comm, peer, {counts[i], one_of(types, i)});
            i++;
        }
}

} // namespace zc::migrate
