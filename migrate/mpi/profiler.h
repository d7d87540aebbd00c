/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mpi.h>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fast_clock.h"
#include "layer.h"
#include "zcm/profile.h"

namespace zc::migrate {

inline std::uint64_t read_clock_ns(clockid_t clock) noexcept
{
    timespec t;
    clock_gettime(clock, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

/** When a call was made. The clock is read when it is asked for, if it ever is, and once. */
class moment {
  public:
    [[gnu::always_inline]] std::uint64_t ns() noexcept
    {
        if (!ns_)
            ns_ = zc_fast_clock_ns();
        return ns_;
    }
    /** 0 if nothing has asked. */
    std::uint64_t known_ns() const noexcept { return ns_; }

  private:
    std::uint64_t ns_ = 0;
};

/**
 * What this rank tells the agent of its node (zcm/profile.h): safe points, bytes that a
 * move would carry, time in MPI, and what it sends to whom, as the wrappers of MPI's functions see
 * it (tell.h). One per process, as there is one MPI; while it is closed nothing is counted.
 */
class profiler {
  public:
    static profiler &instance();

    /** What stays the same wherever the rank goes. */
    struct identity {
        std::uint64_t job = 0; /* drawn at the start of the job */
        std::string name;      /* of the job's socket; "" if it has none */
        double age_s = 0;      /* of the job */
    };

    /** Local. A profile that cannot be made is complained of; the rank does without. */
    void open(const identity &who, int rank, int size, std::uint32_t flags);
    /** The file goes. Local. */
    void close();

    /** Who is where. Local. */
    void place(std::uint64_t epoch, const std::vector<std::string> &host_of_rank);
    void busy(bool is_busy);
    void point(std::int64_t n) noexcept
    {
        zcm_profile_point(profile_, static_cast<std::uint64_t>(n), total_);
    }
    void image(std::uint64_t bytes) noexcept { zcm_profile_image(profile_, bytes); }
    void total(std::uint64_t safe_points) noexcept { total_ = safe_points; }

    /* ---- by the wrappers ---- */
    /* Of the class, so that a call that does not count pays for one load. */
    static bool counts() noexcept { return counts_.load(std::memory_order_relaxed); }
    /** Is there a profile, if only to be written later? */
    static bool is_open() noexcept { return is_open_.load(std::memory_order_relaxed); }
    /** From @begin to @end by the coarse clock. @is_fine: the beginning is by the fine one, so the
     *  tick that it was in counts as a whole, as by the coarse clock. */
    void spent(std::uint64_t begin, std::uint64_t end, bool is_fine);
    /** @peer: of the other side, if @where is an intercommunicator. */
    [[gnu::always_inline]] static void sent(comm_argument where, int peer, std::uint64_t bytes,
                                            moment &when)
    {
        if (where.known() && !threads_) [[likely]]
            told(where.known()->peers(), peer, bytes, when);
        else
            instance().sent_slowly(where, peer, bytes, when);
    }
    void sent_to_all(comm_argument where, std::uint64_t bytes_each, moment &when);

    /** To whom this rank sends in neighbour collectives of @comm: ranks in it. */
    members destinations(MPI_Comm comm);

    /** Persistent operations: what a start of each of @requests means. */
    void remember(MPI_Request request, comm_argument where, int peer, std::uint64_t bytes);
    void started(std::span<const MPI_Request> requests, moment &when);
    void forget(MPI_Request request);

    /** Own rank in @comm and its size, as collectives need them. */
    struct place_in {
        int rank, size;
    };
    static place_in mine(MPI_Comm comm);
    static bool is_inter(MPI_Comm comm);
    /** How many one can send to in @comm: of an intercommunicator, the other side. */
    static int others(MPI_Comm comm);

  private:
    friend int forget_table(MPI_Comm, int, void *, void *);
    struct persistent {
        int peer; /* of the world */
        std::uint64_t bytes;
    };

    const members *table_of(comm_argument where, std::unique_lock<std::mutex> &guard);
    const members *observed_table_of(MPI_Comm comm, std::unique_lock<std::mutex> &guard);
    /** With the lock, or of a communicator that has to be looked for. */
    void sent_slowly(comm_argument where, int peer, std::uint64_t bytes, moment &when);
    /** To a rank of the job. */
    [[gnu::always_inline]] static void told(int rank, std::uint64_t bytes, moment &when)
    {
        if (profile_ && rank >= 0 && static_cast<std::uint32_t>(rank) != profile_->rank)
            zcm_profile_sent(profile_, static_cast<std::uint32_t>(rank), bytes, when.ns());
    }
    [[gnu::always_inline]] static void told(const members &ranks, int peer, std::uint64_t bytes,
                                            moment &when)
    {
        if (peer >= 0 && static_cast<std::size_t>(peer) < ranks.size())
            told(ranks[static_cast<std::size_t>(peer)], bytes, when);
    }
    std::unique_lock<std::mutex> lock()
    {
        return threads_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
    }

    /* What every message needs is of the class. */
    static inline zcm_profile *profile_ = nullptr;
    static inline std::atomic<bool> is_open_{false};
    int rank_ = 0;
    std::uint64_t total_ = 0;
    std::uint32_t flags_ = 0;
    std::uint64_t tick_ns_ = 1; /* of the coarse clock */
    static inline std::atomic<bool> counts_{false};
    bool place_told_ =
        false; /* rank 0: where sockets and profiles are, if not in the usual place */
    static inline bool threads_ = false; /* several may be in MPI at once */
    std::mutex mutex_;
    /* While a program is observed alone; else the layer knows. */
    int keyval_ = MPI_KEYVAL_INVALID;
    std::unordered_map<MPI_Comm, members> tables_;
    MPI_Comm last_comm_ = MPI_COMM_NULL;
    const members *last_ = nullptr;
    std::unordered_map<MPI_Request, std::vector<persistent>> persistent_;
};

} // namespace zc::migrate
