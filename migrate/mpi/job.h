/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bequest.h"
#include "checksum_log.h"
#include "directory_lock.h"
#include "job_control.h"
#include "late_report.h"
#include "negotiation.h"
#include "process.h"
#include "profiler.h"
#include "program_functions.h"
#include "registry.h"
#include "rendezvous.h"
#include "roll_call.h"
#include "settings.h"
#include "successor.h"
#include "watchdog.h"
#include "wire.h"
#include "world.h"

namespace zc::migrate {

class departure;
struct move_plan;

/** Names of libzcm's own data begin so: none of the program's does. */
inline constexpr std::string_view kOwnNames = "zcm:";
/** Where a function of the program holds up others. */
inline constexpr const char *kAllWait = "ranks that need this one wait for it";
/** What the successor asks for the record of the initialisation by. */
inline constexpr const char *kRecordName = "zcm:record";

/** This process's part in the job. One per process, used by one thread. */
class job {
  public:
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
    /** What is wrong with the last checkpoint, "" if nothing. No requests are taken any more. */
    std::string finish();
    /** After that: MPI_COMM_WORLD is no longer the job. Collective. */
    void leave_world();
    [[noreturn]] void abort(int code);

    const array &restored(const array &target);
    /** Before the first safe point of a resumed process; nothing else. As restored(), these may
     *  not return in a successor. */
    std::optional<std::uint64_t> saved_count(const std::string &name);
    const char *saved_name(std::size_t index);

    registry data;
    /** Something was registered or is not any more. How much it is when the rank moves is not known
     * where a function of the program is called before that. */
    void data_has_changed() noexcept
    {
        agreement_.weigh(functions.has(program_functions::kind::save) ? 0 : data.bytes());
    }
    program_functions functions;

    bool is_resumed() const noexcept { return resumed_; }
    /** The registered data has changed. */
    void tell_image() { profiler::instance().image(data.bytes()); }
    int rank() const noexcept { return now_.rank; }

  private:
    friend class checkpoint_transaction;
    friend class job_in_move;

    allowed_hosts find_hosts(std::string &complaint) const;
    std::string compare_builds() const;
    std::string choose_saved(const world &old, greeting &first) const;
    [[noreturn]] void hand_over_to_singletons();
    void start_as_successor();
    greeting be_greeted(lifeline &line);
    std::string inherit_layer(const std::string &told);
    std::string why_not_here(const greeting &said) const;
    void resume_from_disk(const std::string &checkpoint);
    void open_layer();
    void answer_from_record(const greeting &told);
    void open_profile();
    std::uint64_t epoch() const { return static_cast<std::uint64_t>(moves_) + 1; }
    void refresh_status();
    void tell_libraries(const std::vector<whereabouts> &all, const std::string &mine);
    void busy_safe_point();
    void verify_point();
    void negotiate();
    void load_hdf5();
    bool reach_meeting(std::int64_t n);
    bool wait_for_meeting(rendezvous::next first, std::int64_t n);
    void meet();
    /** What ranks find when they have met. Obstacles are "" if there is none. */
    struct findings {
        std::string passing, lasting;         /* of one rank, and the same in all */
        bool someone_releases, someone_saves; /* the program has a function for that */
    };
    bool leaves(const request &wanted) const;
    findings survey(const request &wanted, bool released);
    std::string told_by(int teller, std::string text);
    void make_move(const request &wanted, const move_plan &how, findings found);
    bool call_together(program_functions::kind what, bool here);
    void call_save(const std::function<int()> &call);
    std::string obstacle(bool released) const;
    std::string lasting_obstacle(bool leaves) const;
    std::string late_attributes(const communicator &one) const;
    void give_up(const std::string &why, bool lasts);
    [[noreturn]] void give_up_rank(const std::string &why);
    void settle_late() const;
    void arrive_late() const;
    void open_agreement(std::int64_t requests);
    void checkpoint();
    /** The function of zcm_on_save() has been called. Throws error if the state cannot be taken. */
    void require_current();
    void join_writer();
    image_header header() const;
    lineage whose() const { return {identity_, line_, name_, control_.own().program}; }
    template <typename Action>
    auto inherit(Action action);
    world link_up(growth &how, lifeline *line);
    void take_over();
    void become_rank_before_data(const greeting &told, lifeline &line);
    void take_data_over();
    void require_persistent();
    void await_go(from_predecessor &from);
    void look_for_report();
    /** By which successors on other hosts can be started ahead; null: by none. */
    wire *starter() const noexcept;
    void become_rank_of_job();
    watchdog limit_entry(bool successor) const;
    static std::string missed(double limit_s, const char *settings);
    void ask_who_rebuilds();
    std::vector<double> rebuild_world(double begin, bool others_run);

    settings settings_;
    command command_;
    std::string name_;
    std::uint64_t identity_ = 0; /* of the job: names are used again */
    /* Of the first of those jobs of which this one goes on with the state. */
    std::uint64_t line_ = 0;
    double begun_ = 0; /* the job, by our clock */
    world now_;
    bool rebuilding_ = false;        /* a rank of the world just entered has a function for that */
    std::set<std::string> hosts_;    /* where ranks have been */
    std::vector<std::string> homes_; /* where each rank is */
    allowed_hosts allowed_;          /* where they may go */
    negotiation agreement_;
    std::unique_ptr<roll_call> roll_; /* of the ranks of agreement_'s window */
    std::atomic<std::int64_t> safe_points_{0};
    std::int64_t calm_left_ = 1, calm_ = 1;
    double calm_begin_ = 0;

    bool resumed_ = false;
    bool waiting_to_take_over_ = false;
    std::int64_t greeted_requests_ = 0;
    growth growth_;                  /* into the world that a successor is to join */
    std::shared_ptr<wire> launcher_; /* a successor's, which has started it */
    std::string launcher_card_;      /* how it is called */
    std::unique_ptr<inheritance> inheritance_;
    bequest inherited_; /* of the predecessor */
    /* A successor that is the rank already, while the others run: */
    bool is_rank_before_data_ = false;
    std::vector<MPI_Comm> made_;          /* its communicators, which it has when it has its data */
    std::vector<double> rebuilt_;         /* what rebuild_world() has returned */
    std::unique_ptr<late_report> report_; /* rank 0's, until leavers have told how it went */

    std::unique_ptr<checksum_log> checksums_;

    job_control control_;
    rendezvous meeting_;
    std::unique_ptr<directory_lock> lock_; /* rank 0, once it has saved something */
    std::thread loading_;                  /* of HDF5; joined at the end */
    std::thread writer_;
    std::atomic<bool> is_writing_{false};
    std::string writer_problem_;
    std::int64_t moves_ = 0;
    std::string save_problem_;        /* of the function of zcm_on_save(), "" if none */
    std::int64_t late_functions_ = 0; /* requests given up as functions did not return */
};

} // namespace zc::migrate
