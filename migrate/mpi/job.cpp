/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "checkpoint_transaction.h"
#include "departure.h"
#include "error.h"
#include "hdf5_loading.h"
#include "identity.h"
#include "job_in_move.h"
#include "move_transaction.h"
#include "mpi_connection.h"
#include "mpi_window.h"
#include "open_things.h"
#include "recorder.h"
#include "remaking.h"
#include "requests.h"
#include "spawn.h"
#include "traffic.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

/* Safe points in which libzcm does not call MPI: doubled if they took less time than kSoon, halved
 * if they took more than kLate, both in seconds. */
constexpr std::int64_t kLongestCalm = 1 << 20;
constexpr double kSoon = 5e-3, kLate = 20e-3;
constexpr const char *kAllWait = "ranks that need this one wait for it";

MPI_Comm merge(const lifeline &line)
{
    return dynamic_cast<mpi_connection &>(line.peer()).merge();
}

} // namespace

job::job(settings chosen)
    : functions(chosen.callback_s), settings_(std::move(chosen)),
      command_(command::of_this_process()),
      control_(settings_, command_, allowed_, [this] { agreement_.ring(); }),
      meeting_(agreement_, control_, settings_.patience_s, [this] { settle_late(); })
{
}

job::~job()
{
    join_writer();
    if (loading_.joinable())
        loading_.join();
}

/* ---- the start ---- */

void job::start()
{
    if (!std::getenv(kSuccessorVariable))
        hand_over_to_singletons();
    launcher_ = own_launcher();
    unsetenv(kSuccessorVariable); /* what the program spawns is no successor */
    start_as_successor();
}

/** Which saved state does the job go on with, if with any? Collective; returns what is wrong. */
std::string job::choose_saved(const world &old, greeting &first) const
{
    std::string complaint;
    try {
        /* Which is the latest may change while each rank looks. */
        if (old.rank == 0 && !settings_.restart.empty())
            first.resume = checkpoint_directory::latest(settings_.restart).directory;
    } catch (const error &problem) {
        complaint = problem.what();
    }
    share(MPI_COMM_WORLD, 0, first.resume);
    try {
        if (!first.resume.empty()) {
            const auto saved = checkpoint_directory::latest(first.resume);
            if (saved.ranks != old.size)
                throw error(EINVAL, saved.directory + " is of " + std::to_string(saved.ranks) +
                                        " ranks, this job has " + std::to_string(old.size));
            first.line = saved.whose.line;
        }
    } catch (const error &problem) {
        complaint = problem.what();
    }
    return complaint;
}

/** Where ranks may go, as the first rank has it that can find it out. Collective. */
allowed_hosts job::find_hosts(std::string &complaint) const
{
    allowed_hosts mine;
    try {
        mine = find_allowed_hosts(settings_.hosts);
    } catch (const error &problem) {
        if (complaint.empty())
            complaint = problem.what();
    }
    const bool found = mine.any || !mine.names.empty();
    const std::string first = agree(MPI_COMM_WORLD, found ? mine.to_json() : "");
    if (!first.empty())
        mine = allowed_hosts::from_json(first);
    else
        mine.source = "where mpiexec started it: nothing names other hosts";
    for (const std::string &host : gather(MPI_COMM_WORLD, host_name()))
        if (std::ranges::count(mine.names, host) == 0)
            mine.names.push_back(host);
    return mine;
}

void job::hand_over_to_singletons()
{
    world old;
    old.user = old.ours = MPI_COMM_WORLD;
    PMPI_Comm_rank(MPI_COMM_WORLD, &old.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &old.size);
    now_.rank = old.rank;

    greeting greeting;
    greeting.index = greeting.rank = old.rank;
    greeting.ranks = old.size;
    for (int rank = 0; rank < old.size; rank++)
        greeting.leavers.push_back(rank);
    greeting.job =
        settings_.job.empty() ? host_name() + "-" + std::to_string(getpid()) : settings_.job;
    share(MPI_COMM_WORLD, 0, greeting.job);
    greeting.identity = draw_identity();
    PMPI_Bcast(&greeting.identity, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    greeting.line = greeting.identity;
    greeting.program = control_.own().program;
    greeting.library = control_.own().library;
    greeting.features = control_.own().features;

    std::string complaint = choose_saved(old, greeting);
    greeting.allowed = find_hosts(complaint);
    std::unique_ptr<departure> mine;
    std::string verdict = agree(MPI_COMM_WORLD, complaint);
    if (verdict.empty()) {
        succession next(settings_, command_, nullptr, place{host_name(), false}, false);
        std::string invitation;
        try {
            flush_output();
            invitation = next.invite(0);
        } catch (const error &problem) {
            complaint = problem.what();
        }
        const std::vector<std::string> all = gather(MPI_COMM_WORLD, invitation);
        try {
            if (complaint.empty()) {
                mine = next.start(all, greeting);
                mine->await();
            }
        } catch (const error &problem) {
            complaint = problem.what();
        }
        verdict = agree(MPI_COMM_WORLD, complaint);
    }
    if (!verdict.empty()) {
        if (mine)
            mine->abandon();
        if (old.rank == 0)
            complain(-1, verdict);
        throw reported_error(EIO);
    }
    growth how;
    how.old = &old;
    how.leavers = greeting.leavers;
    how.index = how.rank = old.rank;
    how.size = old.size;
    try {
        mine->line().commit();
        mine->proceed();
    } catch (const error &problem) {
        end_job(old.rank, std::string("cannot start: ") + problem.what());
    }
    link_up(how, &mine->line());
    mine->line().disconnect();
    PMPI_Finalize();
    leave_process(leaving::replaced);
}

/** Another build would go on with the state of this one; and there must be room for that. */
std::string job::why_not_here(const greeting &said) const
{
    preflight needed;
    needed.program = said.program;
    needed.library = said.library;
    needed.features = said.features;
    std::string why = why_not(needed, control_.own(), host_name(), settings_.checks);
    if (why.empty() && said.moved && said.rank == 0)
        if (const std::string no_socket = control_.why_not_open(); !no_socket.empty())
            why = "host " + host_name() + " has no place for the job's socket: " + no_socket;
    if (!why.empty() || !said.moved || !settings_.checks.memory)
        return why;
    const std::uint64_t there =
        settings_.fault_injected(fault::no_memory) ? 1 << 20 : available_memory();
    return why_no_room(said.bytes, there, host_name());
}

/** Until the leaver lets this process go on; it ends if it is not to. */
greeting job::be_greeted(lifeline &line)
{
    try {
        const greeting said = greeting::from_json(line.receive().text);
        now_.rank = said.rank;
        if (said.moved && settings_.fault_injected(fault::successor_killed_early))
            raise(SIGKILL);
        const std::string why = why_not_here(said);
        line.send(why.empty() ? word::here : word::failed, why);
        if (line.receive(kNoLimit).what == word::proceed)
            return said;
        line.send_until_taken(word::left);
    } catch (const std::exception &problem) {
        complain(now_.rank, std::string("successor: ") + problem.what());
        leave_process(leaving::not_started);
    }
    leave_process(leaving::called_off);
}

void job::start_as_successor()
{
    std::unique_ptr<lifeline> line;
    try {
        const MPI_Comm between =
            meet_leaver(launcher_.get(), control_.own().to_line(), settings_.start_s);
        line = std::make_unique<lifeline>(std::make_unique<mpi_connection>(between, true), true,
                                          settings_.timeout_s);
    } catch (const error &problem) {
        complain(-1, std::string("successor: ") + problem.what());
        leave_process(leaving::not_started);
    }
    const greeting greeting = be_greeted(*line);
    name_ = greeting.job;
    identity_ = greeting.identity;
    line_ = greeting.line;
    moves_ = greeting.moves;
    late_functions_ = greeting.late_functions;
    begun_ = seconds() - greeting.age_s;
    hosts_ = greeting.hosts;
    allowed_ = greeting.allowed;
    control_.need_features(greeting.features);
    growth_ = {nullptr, greeting.leavers, greeting.index, greeting.rank, greeting.ranks};
    greeted_requests_ = greeting.requests;
    if (greeting.moved) {
        resumed_ = waiting_to_take_over_ = true;
        safe_points_ =
            greeting.safe_points - 1; /* its first safe point is the predecessor's last */
        now_.size = greeting.ranks;
        const image_header expected{greeting.rank, now_.size, greeting.safe_points, identity_};
        inheritance_ = std::make_unique<from_predecessor>(std::move(line), expected, settings_);
        open_layer();
        answer_from_record(greeting);
        return;
    }
    hear_go(launcher_.get());
    now_ = link_up(growth_, line.get());
    open_layer();
    layer::instance().link(now_.user);
    recorder::instance().record(settings_.record_bytes);
    line->disconnect();
    if (!greeting.resume.empty())
        resume_from_disk(greeting.resume);
    become_rank_of_job();
    refresh_status();
}

/** The world is linked up, and this process is a rank of it. */
void job::become_rank_of_job()
{
    become_rank(now_.rank);
    open_agreement(greeted_requests_);
    if (now_.rank == 0) {
        control_.open(name_, now_.size, epoch(), safe_points_, launcher_.get());
        control_.set_late_functions(late_functions_);
    }
    open_profile();
}

/** What all ranks do first in a new world, none of which asks the program: a lost rank holds it. */
watchdog job::limit_entry(double limit_s) const
{
    return {limit_s, "the move was agreed on, but the new world was not entered within " +
                         std::to_string(static_cast<int>(limit_s)) +
                         " s: a process died meanwhile"};
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

/** A successor's initialisation does not communicate: others wait in their safe point. */
void job::answer_from_record(const greeting &told)
{
    std::vector<std::byte> record(told.record);
    if (!record.empty())
        restored({kRecordName, record.data(), record.size(), element::byte});
    try {
        inherited_ = bequest::from_text(told.layer);
    } catch (const error &problem) {
        give_up_rank(problem.what());
    }
    recorder::instance().answer(std::move(record),
                                [this](const std::string &why) { give_up_rank(why); });
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

/** Collective. */
void job::refresh_status()
{
    whereabouts mine{};
    std::strncpy(mine.host, host_name().c_str(), sizeof mine.host - 1);
    mine.pid = getpid();
    mine.features = control_.own().features;
    std::vector<whereabouts> all(static_cast<std::size_t>(now_.size));
    MPI_Request request;
    PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, now_.ours,
                    &request);
    wait_gently(request);
    for (const whereabouts &one : all) {
        hosts_.insert(one.host);
        control_.need_features(one.features);
    }
    homes_.clear();
    for (const whereabouts &one : all)
        homes_.emplace_back(one.host);
    profiler::instance().place(epoch(), homes_);
    profiler::instance().busy(false);
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
    if (agreement_.is_called())
        negotiate();
}

/** Of a request, ranks hear before they meet. */
void job::load_hdf5()
{
    if (!loading_.joinable())
        loading_ = std::thread(load_hdf5_ahead);
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
            break;
        }
        make_progress();
    }
}

/** Collective. */
void job::open_agreement(std::int64_t requests)
{
    auto over = std::make_unique<mpi_window>(now_.ours, agreement_.own_words());
    roll_ = std::make_unique<roll_call>(over->handle(), now_.rank, settings_.silence_s, homes_);
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
    auto one = std::make_unique<checkpoint_transaction>(*this);
    join_writer();
    if (!one->prepare())
        return;
    writer_problem_.clear();
    is_writing_ = true;
    writer_ = std::thread([this, one = std::move(one)] {
        one->write();
        is_writing_ = false;
    });
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
    const double limit_s = settings_.timeout_s + static_cast<double>(how.leavers.size());
    const watchdog guard(limit_s, "the ranks were not linked up with the successors within " +
                                      std::to_string(static_cast<int>(limit_s)) +
                                      " s: a process died meanwhile");
    if (line)
        how.line = merge(*line);
    return grow(how);
}

/** Collective over the new world: what it took, and how long those who stayed were held. */
std::vector<double> job::rebuild_world(double begin)
{
    functions.call(program_functions::kind::rebuild, now_.rank, kAllWait);
    /* A rank that is in such a function does not answer. */
    std::optional<roll_call::scope> guard;
    if (!rebuilding_)
        guard.emplace(*roll_);
    refresh_status();
    return greatest(now_.ours,
                    {ms_since(begin), waiting_to_take_over_ ? 0.0 : ms_since(meeting_.met())});
}

/** Returns when this process is the rank; where the move is called off it does not return. */
void job::await_go(from_predecessor &from)
{
    lifeline &line = from.line();
    if (const std::size_t missing = requests::instance().missing(inherited_.persistent))
        give_up_rank("its initialisation has not made " + std::to_string(missing) +
                     (missing == 1 ? " persistent request" : " persistent requests") +
                     " that its predecessor has: zcm_on_rebuild() has to make "
                     "what is made later");
    try {
        if (settings_.fault_injected(fault::successor_exits))
            leave_process(leaving::fault_injected);
        if (settings_.fault_injected(fault::successor_killed))
            raise(SIGKILL);
        line.send(word::ready, json{{"restore_ms", from.spent().restore_ms}}.dump());
        if (settings_.fault_injected(fault::successor_killed_ready))
            raise(SIGKILL);
        /* The other leavers may take longer; a dead predecessor shows when it is pinged. */
        const message said = line.receive(kNoLimit);
        if (said.what != word::go) {
            from.leave("");
            leave_process(leaving::called_off);
        }
    } catch (const error &problem) {
        end_job(now_.rank, std::string("state received, but ") + problem.what());
    }
    if (growth_.index == 0 && settings_.fault_injected(fault::successor_killed_late))
        raise(SIGKILL);
}

/** A successor's first safe point: its state is complete, its predecessor may go. */
void job::take_over()
{
    auto &from = dynamic_cast<from_predecessor &>(*inheritance_);
    lifeline &line = from.line();
    await_go(from);
    hear_go(launcher_.get());
    /* Others wait for this rank in MPI now: it cannot report an error and go on. */
    try {
        const double committed = seconds();
        now_ = link_up(growth_, &line);
        {
            /* The others give up the old world before. */
            const watchdog guard = limit_entry(settings_.silence_s + 2 * settings_.timeout_s);
            layer::instance().link(now_.user);
            inherited_.take_over(now_.ours);
            homes_.resize(static_cast<std::size_t>(now_.size));
            become_rank_of_job();
            ask_who_rebuilds();
        }
        const std::vector<double> rebuilt = rebuild_world(committed);
        waiting_to_take_over_ = false;
        if (now_.rank == 0)
            line.send(word::done, json{{"rebuilt", rebuilt}}.dump());
        line.disconnect();
    } catch (const std::exception &problem) {
        end_job(now_.rank, "took the rank over, but " + reason_of(problem));
    }
    inheritance_.reset();
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
    MPI_Request barrier;
    PMPI_Ibarrier(now_.ours, &barrier);
    wait_gently(barrier);
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
    if (waiting_to_take_over_)
        give_up_rank(what);
    end_job(now_.rank, what);
}

/** A successor that cannot go on: the predecessor does. */
void job::give_up_rank(const std::string &why)
{
    complain(now_.rank, "successor: " + why);
    dynamic_cast<from_predecessor &>(*inheritance_).leave(why);
    leave_process(leaving::not_restored);
}

/* ---- what a resumed process goes on with ---- */

/** @action with it. Does not return if a successor cannot be given what it asks for. */
template <typename Action>
auto job::inherit(Action action)
{
    auto *from = dynamic_cast<from_predecessor *>(inheritance_.get());
    if (!from)
        return action(*inheritance_);
    try {
        return action(*inheritance_);
    } catch (const std::exception &problem) {
        give_up_rank(reason_of(problem));
    }
}

const array &job::restored(const array &target)
{
    if (inheritance_)
        inherit([&](inheritance &from) { from.restore(target); });
    return target;
}

std::optional<std::uint64_t> job::saved_count(const std::string &name)
{
    if (!inheritance_ || name.starts_with(kOwnNames))
        return std::nullopt;
    return inherit([&](inheritance &from) { return from.count(name); });
}

const char *job::saved_name(std::size_t index)
{
    if (!inheritance_)
        return nullptr;
    const std::vector<std::string> &names =
        inherit([](inheritance &from) { return std::cref(from.names()); });
    for (const std::string &name : names)
        if (!name.starts_with(kOwnNames) && index-- == 0)
            return name.c_str();
    return nullptr;
}

} // namespace zc::migrate
