/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "checkpoint_transaction.h"
#include "departure.h"
#include "error.h"
#include "identity.h"
#include "job_in_move.h"
#include "move_transaction.h"
#include "mpi_connection.h"
#include "mpi_window.h"
#include "spawn.h"
#include "watchdog.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

/* Safe points in which libzcm does not call MPI: doubled if they took less time than kSoon, halved
 * if they took more than kLate, both in seconds. */
constexpr std::int64_t kLongestCalm = 1 << 20;
constexpr double kSoon = 5e-3, kLate = 20e-3;
constexpr int kFlushTag = 7702;

MPI_Comm comm_of(const lifeline &line)
{
    return dynamic_cast<mpi_connection &>(line.peer()).comm();
}

} // namespace

job::job(settings chosen)
    : settings_(std::move(chosen)), command_(command::of_this_process()),
      control_(settings_, command_.program, [this] { agreement_.ring(); }),
      meeting_(agreement_, control_, settings_.patience_s, [this] { settle_late(); })
{
}

job::~job()
{
    join_writer();
}

/* ---- the start ---- */

void job::start()
{
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL || !std::getenv("ZC_MIGRATE_SUCCESSOR"))
        hand_over_to_singletons();
    unsetenv("ZC_MIGRATE_SUCCESSOR"); /* what the program spawns is no successor */
    start_as_successor(parent);
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

void job::hand_over_to_singletons()
{
    world old;
    old.user = old.ours = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &old.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &old.size);
    now_.rank = old.rank;

    greeting greeting;
    greeting.index = greeting.rank = old.rank;
    for (int rank = 0; rank < old.size; rank++)
        greeting.leavers.push_back(rank);
    greeting.job =
        settings_.job.empty() ? host_name() + "-" + std::to_string(getpid()) : settings_.job;
    share(MPI_COMM_WORLD, 0, greeting.job);
    greeting.identity = draw_identity();
    MPI_Bcast(&greeting.identity, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    greeting.line = greeting.identity;

    std::string complaint = choose_saved(old, greeting);
    std::unique_ptr<departure> mine;
    std::string verdict = agree(MPI_COMM_WORLD, complaint);
    if (verdict.empty()) {
        try {
            mine = start_successor(settings_, command_, place{host_name(), false}, greeting);
            mine->await();
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
    how.rank = old.rank;
    link_up(how, mine.get());
    mine->line().disconnect();
    MPI_Finalize();
    leave_process(leaving::replaced);
}

void job::start_as_successor(MPI_Comm parent)
{
    auto line = std::make_unique<lifeline>(std::make_unique<mpi_connection>(parent, true), true,
                                           settings_.timeout_s);
    greeting greeting;
    try {
        greeting = greeting::from_json(line->receive().text);
        now_.rank = greeting.rank;
        if (greeting.moved && settings_.fault_injected(fault::successor_killed_early))
            raise(SIGKILL);
        line->send(word::here);
        if (line->receive(kNoLimit).what != word::proceed) {
            line->send_last(word::left);
            leave_process(leaving::called_off);
        }
    } catch (const std::exception &problem) {
        complain(now_.rank, std::string("successor: ") + problem.what());
        leave_process(leaving::not_started);
    }
    name_ = greeting.job;
    identity_ = greeting.identity;
    line_ = greeting.line;
    moves_ = greeting.moves;
    begun_ = seconds() - greeting.age_s;
    hosts_ = greeting.hosts;
    if (greeting.moved && greeting.index == 0 &&
        settings_.fault_injected(fault::successor_killed_late))
        raise(SIGKILL);
    growth how;
    how.leavers = greeting.leavers;
    how.index = greeting.index;
    how.rank = greeting.rank;
    how.line = comm_of(*line);
    now_ = link_up(how, nullptr);
    greeted_requests_ = greeting.requests;
    if (greeting.moved) {
        resumed_ = waiting_to_take_over_ = true;
        safe_points_ =
            greeting.safe_points - 1; /* its first safe point is the predecessor's last */
        const image_header expected{greeting.rank, now_.size, greeting.safe_points, identity_};
        inheritance_ = std::make_unique<from_predecessor>(std::move(line), expected, settings_);
        return;
    }
    line->disconnect();
    become_rank(now_.rank);
    open_agreement(0);
    if (!greeting.resume.empty())
        resume_from_disk(greeting.resume);
    if (now_.rank == 0)
        control_.open(name_, now_.size, epoch(), safe_points_);
    open_profile();
    refresh_status();
}

void job::open_profile()
{
    profiler &told = profiler::instance();
    told.open({identity_, name_, seconds() - begun_}, now_.rank, now_.size, ZCM_PROFILE_MOVABLE);
    told.link(now_.user);
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
    std::vector<whereabouts> all(static_cast<std::size_t>(now_.size));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, now_.ours);
    for (const whereabouts &one : all)
        hosts_.insert(one.host);
    std::vector<std::string> hosts;
    for (const whereabouts &one : all)
        hosts.emplace_back(one.host);
    profiler::instance().place(epoch(), hosts);
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
    const quiet ours;
    if (waiting_to_take_over_) {
        take_over();
    } else if (inheritance_) {
        const std::string name = inheritance_->forgotten();
        inheritance_.reset();
        if (!name.empty())
            throw error(ENOENT, "saved data '" + name + "' has not been registered");
        if (rebuild)
            rebuild(now_.user, argument);
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
    if (agreement_.is_called())
        negotiate();
}

void job::negotiate()
{
    if (reach_meeting(safe_points_.load()))
        meet();
}

bool job::reach_meeting(std::int64_t n)
{
    for (pause pause;; pause.rest()) {
        switch (meeting_.step(n, seconds())) {
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

/* Messages of the program that have been sent and not received. */
bool job::is_quiet(std::string &who) const
{
    /* One empty message between each two ranks: what was sent before it has arrived after it. */
    std::vector<MPI_Request> requests;
    for (int rank = 0; rank < now_.size; rank++) {
        if (rank == now_.rank)
            continue;
        requests.emplace_back();
        MPI_Irecv(nullptr, 0, MPI_BYTE, rank, kFlushTag, now_.ours, &requests.back());
        requests.emplace_back();
        MPI_Isend(nullptr, 0, MPI_BYTE, rank, kFlushTag, now_.ours, &requests.back());
    }
    for (MPI_Request &request : requests)
        wait_gently(request);
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, now_.user, &there, &status);
    if (there) {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        who = "rank " + std::to_string(now_.rank) + " has not received a message of rank " +
              std::to_string(status.MPI_SOURCE) + " (tag " + std::to_string(status.MPI_TAG) + ", " +
              std::to_string(bytes) + " bytes)";
    }
    return !there;
}

void job::meet()
{
    std::string text = control_.taken() ? control_.taken()->to_json() : "";
    share(now_.ours, 0, text);
    const request wanted = request::from_json(text);
    std::string in_flight;
    is_quiet(in_flight);
    in_flight = agree(now_.ours, in_flight);
    if (!in_flight.empty()) {
        if (meeting_.attempts() + 1 < settings_.attempts) {
            meeting_.put_off();
            control_.release();
            return;
        }
        meeting_.outcome(refusal(EAGAIN, "messages in flight at " +
                                             std::to_string(meeting_.attempts() + 1) +
                                             " safe points: " + in_flight));
        return;
    }
    if (wanted.kind == request::what::move) {
        profiler::instance().busy(true);
        job_in_move self(*this, wanted);
        move_transaction(self, settings_, wanted, self.hello()).run();
        profiler::instance().busy(false);
    } else {
        checkpoint();
    }
}

/** Before this rank is done with a request. */
void job::settle_late() const
{
    if (settings_.fault_injected(fault::settles_late) && now_.rank != 0)
        for (const double begin = seconds(); seconds() - begin < 1;)
            make_progress(); /* rank 0 may be at the next request by then */
}

/** Collective. */
void job::open_agreement(std::int64_t requests)
{
    agreement_.open(std::make_unique<mpi_window>(now_.ours, agreement_.own_words()), requests);
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
    writer_ = std::thread([one = std::move(one)] { one->write(); });
}

void job::join_writer()
{
    if (writer_.joinable())
        writer_.join();
}

/* ---- moves ---- */

/**
 * Now the successors take part in collectives: none of these, and none of us, can be called back
 * from there, so one that dies meanwhile is the end of the job.
 */
world job::link_up(growth &how, departure *mine)
{
    const watchdog guard(settings_.timeout_s + static_cast<double>(how.leavers.size()),
                         "not linked up with the successors in time: a process died meanwhile");
    if (mine) {
        try {
            mine->proceed();
        } catch (const error &problem) {
            end_job(now_.rank,
                    std::string("a process died before it was linked up: ") + problem.what());
        }
        how.line = comm_of(mine->line());
    }
    return grow(how);
}

/** Collective over the new world: what it took, and how long those who stayed were held. */
std::vector<double> job::rebuild_world(double begin)
{
    if (rebuild)
        rebuild(now_.user, argument);
    refresh_status();
    return greatest(now_.ours,
                    {ms_since(begin), waiting_to_take_over_ ? 0.0 : ms_since(meeting_.met())});
}

/** A successor's first safe point: its state is complete, its predecessor may go. */
void job::take_over()
{
    auto &from = dynamic_cast<from_predecessor &>(*inheritance_);
    lifeline &line = from.line();
    try {
        if (settings_.fault_injected(fault::successor_exits))
            leave_process(leaving::fault_injected);
        if (settings_.fault_injected(fault::successor_killed))
            raise(SIGKILL);
        line.send(word::ready, json{{"restore_ms", from.spent().restore_ms}}.dump());
        /* The other leavers may take longer; a dead predecessor shows when it is pinged. */
        const message said = line.receive(kNoLimit);
        if (said.what != word::go) {
            from.leave("");
            leave_process(leaving::called_off);
        }
    } catch (const error &problem) {
        end_job(now_.rank, std::string("state received, but ") + problem.what());
    }
    const double committed = seconds();
    become_rank(now_.rank);
    open_agreement(greeted_requests_);
    if (now_.rank == 0)
        control_.open(name_, now_.size, epoch(), safe_points_);
    open_profile();
    const std::vector<double> rebuilt = rebuild_world(committed);
    waiting_to_take_over_ = false;
    if (now_.rank == 0)
        line.send(word::done, json{{"rebuilt", rebuilt}}.dump());
    line.disconnect();
    inheritance_.reset();
}

/* ---- the end ---- */

std::string job::finish()
{
    const quiet ours;
    if (waiting_to_take_over_)
        throw error(EINVAL,
                    "zcm_finalize() in a resumed process that has not come to a safe point");
    control_.close_door("the job is finishing");
    /* Rank 0 may be looking for a meeting: it must find out, and we must make progress. */
    agreement_.never_again();
    MPI_Request barrier;
    MPI_Ibarrier(now_.ours, &barrier);
    wait_gently(barrier);
    if (control_.taken())
        meeting_.outcome(refusal(ESHUTDOWN, "the job ended before a common safe point"));
    join_writer();
    lock_.reset();
    control_.close();
    profiler::instance().close();
    agreement_.close();
    now_.disconnect();
    end_progress();
    return writer_problem_;
}

/** Fill a resumed process's array. Does not return if a successor's cannot be filled. */
const array &job::restored(const array &target)
{
    if (!inheritance_)
        return target;
    auto *from = dynamic_cast<from_predecessor *>(inheritance_.get());
    if (!from) {
        inheritance_->restore(target);
        return target;
    }
    try {
        from->restore(target);
    } catch (const std::exception &problem) {
        complain(now_.rank, std::string("successor: ") + problem.what());
        from->leave(problem.what());
        leave_process(leaving::not_restored);
    }
    return target;
}

} // namespace zc::migrate
