/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "checkpoint_transaction.h"
#include "error.h"
#include "fatal_errors.h"
#include "hdf5_loading.h"
#include "mpi_connection.h"
#include "mpi_window.h"
#include "quiet_thread.h"
#include "recorder.h"
#include "remaking.h"
#include "requests.h"
#include "traffic.h"

namespace zc::migrate {

namespace {

/* Safe points in which libzcm does not call MPI: doubled if they took less time than kSoon, halved
 * if they took more than kLate, both in seconds. */
constexpr std::int64_t kLongestCalm = 1 << 20;
constexpr double kSoon = 5e-3, kLate = 20e-3;
constexpr double kFindLost = 1; /* seconds to find out which rank is gone */

MPI_Comm merge(const lifeline &line)
{
    return dynamic_cast<mpi_connection &>(line.peer()).merge();
}

} // namespace

job::job(settings chosen)
    : functions(chosen.callback_s), settings_(std::move(chosen)),
      command_(command::of_this_process()),
      control_(settings_, command_, allowed_, [this] { agreement_.ring(); }),
      meeting_(
          agreement_, control_, settings_.patience_s, [this] { settle_late(); },
          [this] { arrive_late(); })
{
}

job::~job()
{
    fatal_errors::ask_who_is_gone(nullptr);
    join_writer();
    if (loading_.joinable())
        loading_.join();
}

wire *job::starter() const noexcept
{
#ifdef OPEN_MPI
    return nullptr; /* a keeper starts no other */
#else
    return launcher_.get();
#endif
}

/** The world is linked up, and this process is a rank of it. */
void job::become_rank_of_job()
{
    become_rank(now_.rank, launcher_);
    open_agreement(greeted_requests_);
    if (now_.rank == 0) {
        control_.open(name_, now_.size, epoch(), safe_points_, starter());
        control_.set_late_functions(late_functions_);
    }
    open_profile();
}

/** What all ranks do first in a new world, none of which asks the program: a lost rank holds it.
 *  A @successor comes to it first: the others call what the program releases, and give up the old
 *  world before. */
watchdog job::limit_entry(bool successor) const
{
    const double limit_s =
        successor ? settings_.silence_s + 2 * settings_.world_s : settings_.world_s;
    return {limit_s, "the move was agreed on, but the new world was not entered " +
                         missed(limit_s, successor ? "ZC_MIGRATE_WORLD, ZC_MIGRATE_SILENCE"
                                                   : "ZC_MIGRATE_WORLD")};
}

/** How it is said that a limit is over. It blames nothing: a living process may be late, too. */
std::string job::missed(double limit_s, const char *settings)
{
    return "within " + std::to_string(static_cast<int>(limit_s)) + " s (" + settings +
           "): a process has died, is stopped, or is slow";
}

/** Collective. */
void job::ask_who_rebuilds()
{
    const bool mine = functions.has(program_functions::kind::rebuild);
    rebuilding_ = total(now_.ours, {mine ? 1.0 : 0.0})[0] > 0;
}

/** From here on the program's handles are the layer's. Local. */
void job::open_layer()
{
    int threads = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&threads);
    layer::open(now_.rank, now_.size);
    traffic::open(now_.size, threads == MPI_THREAD_MULTIPLE);
    if (threads == MPI_THREAD_MULTIPLE)
        requests::instance().threads();
}

void job::open_profile()
{
    profiler &told = profiler::instance();
    told.open({identity_, name_, seconds() - begun_}, now_.rank, now_.size, ZCM_PROFILE_MOVABLE);
    told.point(safe_points_.load());
    tell_image();
}

void job::resume_from_disk(const std::string &checkpoint)
{
    const auto saved = checkpoint_directory::latest(checkpoint);
    auto file = std::make_unique<from_file>(saved.rank_file(now_.rank));
    file->check({now_.rank, now_.size, saved.safe_point, saved.whose.job});
    safe_points_ = saved.safe_point - 1;
    inheritance_ = std::move(file);
    resumed_ = true;
}

/** Collective: rank 0 hears what every rank's process has loaded by now. Most have the same, which
 * one of them tells. */
void job::tell_libraries(const std::vector<whereabouts> &all, const std::string &mine)
{
    const auto is_first = [&](std::size_t rank) {
        return std::none_of(
            all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank),
            [&](const whereabouts &one) { return one.libraries == all[rank].libraries; });
    };
    const auto own = static_cast<std::size_t>(now_.rank);
    const bool differ = std::ranges::any_of(
        all, [&](const whereabouts &one) { return one.libraries != all[0].libraries; });
    std::vector<std::string> texts(all.size());
    if (differ)
        texts = gather_at_first(now_.ours, is_first(own) && own > 0 ? mine : "");
    if (now_.rank > 0)
        return;
    texts.front() = mine;
    control_.set_libraries(all, texts);
}

/** Collective. */
void job::refresh_status()
{
    const std::string loaded =
        settings_.checks.build ? loaded_libraries::of_this_process().to_text() : "";
    whereabouts mine{};
    std::strncpy(mine.host, host_name().c_str(), sizeof mine.host - 1);
    mine.pid = getpid();
    mine.features = control_.own().features;
    mine.libraries = loaded.empty() ? 0 : std::hash<std::string>{}(loaded) | 1;
    if (launcher_card_.size() < sizeof mine.launcher)
        launcher_card_.copy(mine.launcher, sizeof mine.launcher - 1);
    std::vector<whereabouts> all(static_cast<std::size_t>(now_.size));
    carry_out(now_.ours, [&](MPI_Request *request) {
        return PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                               now_.ours, request);
    });
    for (const whereabouts &one : all) {
        hosts_.insert(one.host);
        control_.need_features(one.features);
    }
    homes_.clear();
    for (const whereabouts &one : all)
        homes_.emplace_back(one.host);
    profiler::instance().place(epoch(), homes_);
    profiler::instance().busy(false);
    tell_libraries(all, loaded);
    control_.set_status(name_, moves_, epoch(), all);
}

/* ---- safe points ---- */

image_header job::header() const
{
    return {now_.rank, now_.size, safe_points_.load(), identity_};
}

void job::busy_safe_point()
{
    recorder::instance().close();
    layer::set_activity(layer::activity::computing);
    const bool has_moved = waiting_to_take_over_;
    if (waiting_to_take_over_) {
        take_over();
    } else if (inheritance_) {
        const std::string name = inheritance_->forgotten();
        inheritance_.reset();
        if (!name.empty())
            throw error(ENOENT, "saved data '" + name + "' has not been registered");
        functions.call(program_functions::kind::rebuild, now_.rank, kAllWait);
    }
    if (--calm_left_ <= 0) {
        /* A program may not call MPI for long: now and then we do, so that a request comes in. */
        make_progress();
        const double now = seconds();
        if (now - calm_begin_ < kSoon && calm_ < kLongestCalm)
            calm_ *= 2;
        else if (now - calm_begin_ > kLate && calm_ > 1)
            calm_ /= 2;
        calm_begin_ = now;
        calm_left_ = calm_;
    }
    if (!settings_.record.empty() && !checksums_) {
        const std::int64_t here = safe_points_.load();
        checksums_ = std::make_unique<checksum_log>(
            settings_.record, now_.rank, settings_.verify_every, has_moved ? here : here - 1);
        if (has_moved)
            checksums_->moved(here);
    }
    if (checksums_ || settings_.verify)
        verify_point();
    if (report_)
        look_for_report();
    if (agreement_.is_called())
        negotiate();
}

/** Of a request, ranks hear before they meet. */
void job::load_hdf5()
{
    if (loading_.joinable())
        return;
    try {
        loading_ = quiet_thread(load_hdf5_ahead);
    } catch (const std::exception &) {
        return; /* no memory: it is loaded when it is needed, if it is */
    }
}

/** Record the data, and ask for the next move, where they are due. */
void job::verify_point()
{
    calm_left_ = calm_ = 1; /* so that each safe point comes here */
    const std::int64_t here = safe_points_.load();
    if (checksums_)
        checksums_->reach({here, false});
    if (checksums_ && checksums_->is_due(here)) {
        call_save(
            [this] { return functions.call(program_functions::kind::save, now_.rank, kAllWait); });
        require_current(); /* with and without moves alike */
        checksums_->record(here, data);
    }
    if (!settings_.verify || now_.rank != 0 || !control_.is_open() ||
        here % settings_.verify_every != 0)
        return;
    request wanted;
    wanted.kind = request::what::move;
    const auto next = static_cast<std::size_t>(moves_) % homes_.size();
    wanted.moves.push_back({static_cast<int>(next), homes_[next]});
    control_.submit(wanted); /* if another one is under way it is left at that */
}

void job::negotiate()
{
    load_hdf5();
    if (reach_meeting(safe_points_.load()))
        meet();
}

bool job::reach_meeting(std::int64_t n)
{
    return wait_for_meeting(meeting_.step(n, seconds()), n);
}

bool job::wait_for_meeting(rendezvous::next first, std::int64_t n)
{
    const double since = seconds();
    rendezvous::next now = first;
    for (pause pause;; pause.rest(), now = meeting_.step(n, seconds())) {
        switch (now) {
        case rendezvous::next::go_on:
            return false;
        case rendezvous::next::met:
            return true;
        case rendezvous::next::again:
            pause.reset();
            break;
        case rendezvous::next::wait:
            roll_->look_for_gone(since);
            break;
        }
        make_progress();
    }
}

/** Collective. */
void job::open_agreement(std::int64_t requests)
{
    auto over = std::make_unique<mpi_window>(now_.ours, agreement_.own_words());
    roll_ = std::make_unique<roll_call>(over->handle(), now_.rank, settings_.silence_s,
                                        settings_.patience_s, homes_);
    fatal_errors::ask_who_is_gone([this] { return roll_ ? roll_->who_is_gone(kFindLost) : ""; });
    agreement_.open(std::move(over), requests);
}

/* ---- checkpoints ---- */

void job::request_checkpoint()
{
    if (now_.rank != 0 || !control_.is_open())
        return;
    request wanted;
    wanted.kind = request::what::checkpoint;
    if (!control_.submit(wanted))
        throw error(EBUSY, "no checkpoint: another request is under way");
}

void job::checkpoint()
{
    auto one = std::make_shared<checkpoint_transaction>(*this);
    join_writer();
    if (!one->prepare())
        return;
    writer_problem_.clear();
    is_writing_ = true;
    const auto write = [this, one] {
        one->write();
        is_writing_ = false;
    };
    try {
        writer_ = quiet_thread(write);
    } catch (const std::exception &) {
        write(); /* no memory for a thread: the others wait for this file */
    }
}

void job::join_writer()
{
    if (!writer_.joinable())
        return;
    /* Other ranks may need this process, and want to know that it is there. */
    for (pause pause; is_writing_; pause.rest())
        make_progress();
    writer_.join();
}

/* ---- moves ---- */

/**
 * The successors are the ranks by now, and take part in collectives: none of these, and none of us,
 * can be called back from there, so one that dies meanwhile is the end of the job.
 */
world job::link_up(growth &how, lifeline *line)
{
    const double limit_s = settings_.world_s + static_cast<double>(how.leavers.size());
    const watchdog guard(limit_s, "the ranks were not linked up with the successors " +
                                      missed(limit_s, "ZC_MIGRATE_WORLD"));
    if (line)
        how.line = merge(*line);
    return grow(how);
}

/** Collective over the new world: what it took, and how long those who stayed were held. */
std::vector<double> job::rebuild_world(double begin, bool others_run)
{
    /* Where the others run, a successor has no program yet that others could wait for here. */
    if (!others_run)
        functions.call(program_functions::kind::rebuild, now_.rank, kAllWait);
    /* A rank that is in such a function does not answer. */
    std::optional<roll_call::scope> guard;
    if (!rebuilding_)
        guard.emplace(*roll_);
    refresh_status();
    std::vector<double> rebuilt = greatest(
        now_.ours, {ms_since(begin), waiting_to_take_over_ ? 0.0 : ms_since(meeting_.met())});
    guard.reset();
    if (others_run && !waiting_to_take_over_)
        functions.call(program_functions::kind::rebuild, now_.rank, kAllWait);
    return rebuilt;
}

/** Rank 0, where the others run: is the move over? */
void job::look_for_report()
{
    calm_left_ = calm_ = 1; /* so that each safe point comes here */
    if (!report_->is_there())
        return;
    control_.finish(report_->text());
    report_.reset();
}

/* ---- the end ---- */

std::string job::finish()
{
    if (waiting_to_take_over_)
        throw error(EINVAL,
                    "zcm_finalize() in a resumed process that has not come to a safe point");
    control_.close_door("the job is finishing");
    if (checksums_)
        checksums_->reach({safe_points_.load(), true});
    /* Rank 0 may be looking for a meeting: it must find out, and we must make progress. */
    agreement_.never_again();
    carry_out(now_.ours, [&](MPI_Request *request) { return PMPI_Ibarrier(now_.ours, request); });
    if (report_) {
        report_->await(); /* the successors have come here, so the leavers have told */
        look_for_report();
    }
    if (control_.taken())
        meeting_.outcome(refusal(ESHUTDOWN, "the job ended before a common safe point"));
    join_writer();
    lock_.reset();
    control_.close();
    profiler::instance().close();
    roll_.reset();
    agreement_.close();
    return writer_problem_;
}

void job::leave_world()
{
    if (waiting_to_take_over_)
        give_up_rank("MPI_Finalize() before the first safe point");
    requests::instance().release_persistent();
    remaking::release();
    now_.disconnect();
    end_progress();
}

void job::abort(int code)
{
    const std::string what = "MPI_Abort() with error " + std::to_string(code);
    if (waiting_to_take_over_ && !is_rank_before_data_)
        give_up_rank(what);
    end_job_with(code, what);
}

} // namespace zc::migrate
