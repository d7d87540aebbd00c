/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <mpi.h>
#include <mutex>
#include <string>

#include "communicator.h"
#include "handle.h"
#include "processes.h"
#include "slots.h"

namespace zc::migrate {

struct communicator_record;

/** A group as the program has it. */
struct group {
    members who;
    void reset() { who.clear(); }
};

/**
 * What lies between the program and MPI: the handles that the program has of communicators and
 * groups, and what they mean in the present world of the job. MPI_COMM_WORLD means the job.
 *
 *     off ──▶ on          the program runs in a movable job, from MPI_Init to MPI_Finalize
 *      └────▶ observing   calls are looked at for the profile, and handles are MPI's own
 *
 * libzcm's own calls go to PMPI_, past the layer. The wrappers of MPI's functions are in
 * *_calls.cpp, and in what `generate_calls` makes.
 */
class layer {
  public:
    enum class mode : int { off, observing, on };
    static layer &instance() noexcept { return *instance_; }

    static bool is_off() noexcept { return mode_.load(std::memory_order_relaxed) == mode::off; }
    static bool is_on() noexcept { return mode_.load(std::memory_order_relaxed) == mode::on; }

    /**
     * What the program is about. What it sets while it computes a successor has not: that runs the
     * initialisation, and the function 'rebuild' of zcm_on_rebuild().
     *
     *     initialising ──▶ computing ◀──▶ rebuilding
     *              first safe point
     */
    enum class activity : int { initialising, computing, rebuilding };
    static bool is_computing() noexcept
    {
        return activity_.load(std::memory_order_relaxed) == activity::computing;
    }
    static void set_activity(activity now) noexcept { activity_ = now; }

    static void observe();
    /** In a process that is rank @rank of @size. */
    static void open(int rank, int size);
    /** All handles are MPI's own again. */
    static void close();

    /** What MPI_COMM_WORLD means from now on. Local. */
    void link(MPI_Comm world);

    /* ---- what handles mean ---- */

    /** nullptr of a handle that is none of the layer's. */
    [[gnu::always_inline]] static communicator *find(MPI_Comm comm) noexcept
    {
        if (!is_on())
            return nullptr;
        if (comm == MPI_COMM_WORLD)
            return &instance_->world_;
        if (comm_handle::is_virtual(comm))
            return instance_->communicators_.find(comm_handle::number(comm));
        return comm == MPI_COMM_SELF ? &instance_->self_ : nullptr;
    }
    static MPI_Comm real(MPI_Comm comm) noexcept
    {
        const communicator *found = find(comm);
        return found ? found->real.load(std::memory_order_relaxed) : comm;
    }
    /** One that MPI has, where it does not matter which. */
    static MPI_Comm some_real(MPI_Comm comm) noexcept { return find(comm) ? MPI_COMM_SELF : comm; }
    static group *find_group(MPI_Group handle) noexcept
    {
        return is_on() && group_handle::is_virtual(handle)
                   ? instance_->groups_.find(group_handle::number(handle))
                   : nullptr;
    }
    /** The program's handle of what MPI has as @real; @real if it has none. */
    MPI_Comm handle_of_real(MPI_Comm real) const;

    /* ---- new ones ---- */

    /** How a communicator came to be; who made it with this process can tell it by that. */
    struct origin {
        communicator *parent; /* whose handlers of errors it has */
        bool by_all;          /* the parent's processes: else by those of the new one alone */
        std::uint64_t salt = 0;
    };
    static origin by_all(MPI_Comm parent) { return {find(parent), true}; }
    static origin by_some(MPI_Comm parent, std::int64_t tag)
    {
        return {find(parent), false, static_cast<std::uint64_t>(tag)};
    }
    /** The program's handle of @real, MPI_COMM_NULL included. Local. */
    MPI_Comm adopt(MPI_Comm real, const origin &how);
    /** One with the members of @parent that has no real one yet. */
    MPI_Comm adopt_copy(MPI_Comm parent);
    /** Of @real, which is freed. Empty: MPI_GROUP_EMPTY. */
    MPI_Group adopt_group(MPI_Group real);
    MPI_Group make_group(members who);
    void free(communicator &one);
    /** What this process has of @told, which the predecessor may have made. */
    communicator &restore(const communicator_record &told);
    /** A successor has taken over: those that the predecessor had no more are gone. */
    void keep(const std::vector<communicator_record> &all);
    std::map<std::int64_t, members> all_groups() const;
    void restore_groups(const std::map<std::int64_t, members> &all);
    /** Of its members, for comparisons. */
    static std::int64_t sum_of(MPI_Group handle);
    void free_group(MPI_Group handle) { groups_.give_back(group_handle::number(handle)); }

    /** By the program's callbacks. Return what they return. */
    int copy_attributes(communicator &from, communicator &to);
    int delete_attributes(communicator &of);

    /** Each communicator that the program has, MPI_COMM_WORLD first. */
    template <typename Each>
    void each(Each action)
    {
        action(world_);
        communicators_.for_each([&](std::uint32_t, communicator &one) { action(one); });
    }

    processes &everyone() noexcept { return processes_; }
    communicator &world() noexcept { return world_; }
    communicator &self() noexcept { return self_; }

  private:
    void name(communicator &fresh, const origin &how);

    static inline std::atomic<mode> mode_{mode::off};
    static inline std::atomic<activity> activity_{activity::initialising};
    static inline layer *instance_ = nullptr; /* never destroyed: exit handlers may call MPI */

    communicator world_, self_;
    slots<communicator, 16, 10> communicators_;
    slots<group, 20, 6> groups_;
    processes processes_;
    std::mutex mutex_;                                /* of communicators' children */
    std::map<std::uint64_t, std::uint64_t> meetings_; /* of groups that had no parent in common */
};

/** A communicator that a call is given: what it means is looked up once. To be passed by value. */
class comm_argument {
  public:
    [[gnu::always_inline]] comm_argument(MPI_Comm handle) noexcept
        : handle_(handle), known_(layer::find(handle))
    {
    }

    MPI_Comm handle() const noexcept { return handle_; }
    /** nullptr of one that is none of the layer's. */
    communicator *known() const noexcept { return known_; }
    /** What MPI has for it now. */
    MPI_Comm real() const noexcept
    {
        return known_ ? known_->real.load(std::memory_order_relaxed) : handle_;
    }

  private:
    const MPI_Comm handle_;
    communicator *const known_;
};

/** The group of MPI for one of the program's, while this lives. */
class real_group {
  public:
    /** Of members of @in, a handle of the program. */
    real_group(MPI_Group handle, MPI_Comm in);
    /** Of ranks of the job. */
    explicit real_group(MPI_Group handle);
    ~real_group();
    real_group(const real_group &) = delete;
    real_group &operator=(const real_group &) = delete;
    operator MPI_Group() const noexcept { return made_; }

  private:
    MPI_Group made_;
    bool is_ours_ = false;
};

} // namespace zc::migrate
