/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mpi.h>
#include <vector>

#include "layer.h"

namespace zc::migrate {

/**
 * How many messages this rank has sent to each rank of the job, and received from it, over
 * whatever communicator. What was sent and not received is in flight.
 */
class traffic {
  public:
    /** Of a job with @size ranks; @threads: several may count at once. */
    static void open(int size, bool threads);

    /** @peer of @where: MPI_PROC_NULL, and processes of other jobs, do not count. */
    [[gnu::always_inline]] static void sent(comm_argument where, int peer) noexcept
    {
        count(sent_, where, peer);
    }
    [[gnu::always_inline]] static void received(comm_argument where, int peer) noexcept
    {
        count(received_, where, peer);
    }
    /** Of @peers, if they are known. */
    static void sent(const members *peers, int peer) noexcept { count(sent_, peers, peer); }
    static void received(const members *peers, int peer) noexcept { count(received_, peers, peer); }

    /** By rank; what a successor goes on with. */
    static std::vector<std::int64_t> all_sent() { return copy(sent_); }
    static std::vector<std::int64_t> all_received() { return copy(received_); }
    static void restore(const std::vector<std::int64_t> &sent,
                        const std::vector<std::int64_t> &received);

    /**
     * Messages that other ranks have sent to this one and that it has not received: collective over
     * @world, and the same in effect on all. "" or the first, with its tag if it has arrived on a
     * communicator that can be looked into.
     */
    static std::string in_flight(MPI_Comm world);

  private:
    using counter = std::atomic<std::int64_t>;

    [[gnu::always_inline]] static void count(counter *of, const members *peers, int peer) noexcept
    {
        if (!peers || peer < 0 || static_cast<std::size_t>(peer) >= peers->size())
            return;
        const int rank = (*peers)[static_cast<std::size_t>(peer)];
        if (rank < 0)
            return;
        counter &one = of[rank];
        if (threads_)
            one.fetch_add(1, std::memory_order_relaxed);
        else
            one.store(one.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    [[gnu::always_inline]] static void count(counter *of, comm_argument where, int peer) noexcept
    {
        if (const communicator *known = where.known()) [[likely]]
            count(of, &known->peers(), peer);
    }
    static std::vector<std::int64_t> copy(const counter *of);

    static inline counter *sent_ = nullptr, *received_ = nullptr; /* never freed: as the layer */
    static inline int size_ = 0;
    static inline bool threads_ = false;
};

} // namespace zc::migrate
