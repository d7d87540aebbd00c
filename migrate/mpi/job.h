/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "directory_lock.h"
#include "job_control.h"
#include "negotiation.h"
#include "process.h"
#include "profiler.h"
#include "registry.h"
#include "rendezvous.h"
#include "settings.h"
#include "successor.h"
#include "world.h"

namespace zc::migrate {

class departure;

/** This process's part in the job. One per process, used by one thread. */
class job {
  public:
    using world_fn = void (*)(MPI_Comm, void *);

    explicit job(settings chosen);
    ~job();

    /** Does not return in a process started by mpiexec: its successor goes on. */
    void start();
    void safe_point()
    {
        const std::int64_t n = safe_points_.load(std::memory_order_relaxed) + 1;
        safe_points_.store(n, std::memory_order_relaxed);
        profiler::instance().point(n);
        if (agreement_.is_called_at(n) || --calm_left_ <= 0) [[unlikely]]
            busy_safe_point();
    }
    void request_checkpoint();
    /** What is wrong with the last checkpoint, "" if nothing. */
    std::string finish();

    const array &restored(const array &target);

    registry data;
    world_fn release = nullptr;
    world_fn rebuild = nullptr;
    void *argument = nullptr;

    MPI_Comm user_world() const noexcept { return now_.user; }
    bool is_resumed() const noexcept { return resumed_; }
    /** The registered data has changed. */
    void tell_image() { profiler::instance().image(data.bytes()); }
    int rank() const noexcept { return now_.rank; }

  private:
    friend class checkpoint_transaction;
    friend class job_in_move;

    std::string choose_saved(const world &old, greeting &first) const;
    [[noreturn]] void hand_over_to_singletons();
    void start_as_successor(MPI_Comm parent);
    void resume_from_disk(const std::string &checkpoint);
    void open_profile();
    std::uint64_t epoch() const { return static_cast<std::uint64_t>(moves_) + 1; }
    void refresh_status();
    void busy_safe_point();
    void negotiate();
    bool reach_meeting(std::int64_t n);
    void meet();
    bool is_quiet(std::string &who) const;
    void settle_late() const;
    void open_agreement(std::int64_t requests);
    void checkpoint();
    void join_writer();
    image_header header() const;
    lineage whose() const { return {identity_, line_, name_}; }
    world link_up(growth &how, departure *mine);
    void take_over();
    std::vector<double> rebuild_world(double begin);

    settings settings_;
    command command_;
    std::string name_;
    std::uint64_t identity_ = 0; /* of the job: names are used again */
    /* Of the first of those jobs of which this one goes on with the state. */
    std::uint64_t line_ = 0;
    double begun_ = 0; /* the job, by our clock */
    world now_;
    std::set<std::string> hosts_; /* where ranks have been */
    negotiation agreement_;
    std::atomic<std::int64_t> safe_points_{0};
    std::int64_t calm_left_ = 1, calm_ = 1;
    double calm_begin_ = 0;

    bool resumed_ = false;
    bool waiting_to_take_over_ = false;
    std::int64_t greeted_requests_ = 0;
    std::unique_ptr<inheritance> inheritance_;

    job_control control_;
    rendezvous meeting_;
    std::unique_ptr<directory_lock> lock_; /* rank 0, once it has saved something */
    std::thread writer_;
    std::string writer_problem_;
    std::int64_t moves_ = 0;
};

} // namespace zc::migrate
