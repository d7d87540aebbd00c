/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

#include "checkpoint_directory.h"
#include "error.h"
#include "identity.h"
#include "job_sockets.h"
#include "move.h"
#include "probe.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

/* Safe points in which libzcm does not call MPI: doubled if they took less time than kSoon, halved
 * if they took more than kLate, both in seconds. */
constexpr std::int64_t kLongestCalm = 1 << 20;
constexpr double kSoon = 5e-3, kLate = 20e-3;
constexpr double kProbe = 10; /* seconds at most for the launcher to answer for a host */
constexpr int kFlushTag = 7702;
constexpr double kAnswerAtOnce = 20e-3; /* seconds that rank 0 waits in a safe point for answers */
constexpr double kLastCall = 1;         /* it waits at a meeting for so long, late as it may be */

std::string no_safe_point(int rank, double patience_s)
{
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s%s did not come to a safe point in time (%g s); the job goes on as it was",
                  rank < 0 ? "a rank" : "rank ", rank < 0 ? "" : std::to_string(rank).c_str(),
                  patience_s);
    return text;
}

} // namespace

job::job(settings chosen) : settings_(std::move(chosen)), command_(command::of_this_process()) {}

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

    std::string complaint;
    std::unique_ptr<departure> mine;
    try {
        /* Which is the latest may change while each rank looks. */
        if (old.rank == 0 && !settings_.restart.empty())
            greeting.resume = checkpoint_directory::latest(settings_.restart).directory;
    } catch (const error &problem) {
        complaint = problem.what();
    }
    share(MPI_COMM_WORLD, 0, greeting.resume);
    try {
        if (!greeting.resume.empty()) {
            const auto saved = checkpoint_directory::latest(greeting.resume);
            if (saved.ranks != old.size)
                throw error(EINVAL, saved.directory + " is of " + std::to_string(saved.ranks) +
                                        " ranks, this job has " + std::to_string(old.size));
            greeting.line = saved.whose.line;
        }
    } catch (const error &problem) {
        complaint = problem.what();
    }
    std::string verdict = agree(MPI_COMM_WORLD, complaint);
    if (verdict.empty()) {
        try {
            mine = std::make_unique<departure>(settings_, command_, place{host_name(), false},
                                               greeting);
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
    auto line = std::make_unique<lifeline>(parent, true, settings_.timeout_s);
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
    how.line = line->comm();
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
    agreement_.open(now_.ours, 0);
    if (!greeting.resume.empty())
        resume_from_disk(greeting.resume);
    open_control();
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

void job::open_control()
{
    if (now_.rank != 0)
        return;
    /* What there was where the job began need not be where rank 0 is now. */
    std::set<std::string> tried;
    for (const std::string &directory :
         {settings_.socket_directory, control::last_socket_directory()}) {
        if (!tried.insert(directory).second)
            continue;
        try {
            control_ = std::make_unique<control_server>(
                directory, name_, now_.size, settings_.patience_s, epoch(), safe_points_,
                [this](const request &wanted) { examine(wanted); }, [this] { agreement_.ring(); });
            if (tried.size() > 1)
                complain(0, "can be asked to move in " + directory + " instead");
            return;
        } catch (const error &problem) {
            complain(0, std::string("cannot be asked to move: ") + problem.what());
        }
    }
}

/**
 * The socket's thread, while the ranks compute: can the hosts run the program? In MPICH
 * MPI_Comm_spawn never returns if they cannot.
 */
void job::examine(const request &wanted)
{
    arrived_ = seconds();
    std::set<std::string> hosts;
    for (const request::target &one : wanted.moves)
        if (hosts.insert(one.host).second)
            probe_host(settings_.probe, one.host,
                       command_.program +
                           (settings_.fault_injected(fault::no_program) ? ".missing" : ""),
                       std::min(settings_.timeout_s, kProbe));
}

/** Collective. */
void job::refresh_status()
{
    struct whereabouts {
        char host[128];
        int pid;
    } mine{};
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
    if (!control_)
        return;
    json status = {{"ok", true}, {"job", name_}, {"moves", moves_}, {"epoch", epoch()}};
    for (int rank = 0; rank < now_.size; rank++) {
        const whereabouts &at = all[static_cast<std::size_t>(rank)];
        status["ranks"].push_back({{"rank", rank}, {"host", at.host}, {"pid", at.pid}});
    }
    control_->set_status(status.dump(), epoch());
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
    const std::int64_t n = safe_points_.load();
    if (stage_ != stage::agreed && !(now_.rank == 0 ? choose_place(n) : find_place(n)))
        return;
    if (n == target_)
        meet();
}

/** Rank 0. Whether a place is known now. */
bool job::choose_place(std::int64_t n)
{
    if (stage_ == stage::calm) {
        agreement_.hear();
        request_ = control_ ? control_->take() : std::nullopt;
        if (!request_) { /* withdrawn meanwhile */
            settle();
            return false;
        }
        deadline_ = arrived_.load() + settings_.patience_s;
        agreement_.begin();
        stage_ = stage::searching;
    }
    switch (agreement_.advance(n, kAnswerAtOnce, deadline_)) {
    case negotiation::progress::found:
        target_ = agreement_.place();
        stage_ = stage::agreed;
        return true;
    case negotiation::progress::finishing:
        agreement_.call_off();
        outcome(refusal(ESHUTDOWN, "the job is finishing"));
        return false;
    case negotiation::progress::searching:
        break;
    }
    if (seconds() > deadline_) {
        const int silent = agreement_.missing();
        agreement_.call_off();
        outcome(refusal(ETIMEDOUT, no_safe_point(silent, settings_.patience_s)));
    }
    return false;
}

/** The others. */
bool job::find_place(std::int64_t n)
{
    const double begin = seconds();
    for (pause pause;; pause.rest()) {
        switch (agreement_.look(n)) {
        case negotiation::verdict::meet:
            target_ = n;
            stage_ = stage::agreed;
            return true;
        case negotiation::verdict::wait:
            if (seconds() - begin > settings_.patience_s)
                return false; /* rank 0 is far away; it will find that we have passed */
            make_progress();
            break;
        case negotiation::verdict::cancelled:
            settle();
            return false;
        case negotiation::verdict::ahead:
        case negotiation::verdict::missed: /* the proposal will be raised */
            return false;
        }
    }
}

/** Are all here? If not, the request is over and everybody goes on. */
bool job::gather()
{
    const bool leads = now_.rank == 0;
    /* Rank 0 may be the late one; the others may be here. */
    double deadline = leads ? std::max(deadline_, met_ + kLastCall) : met_ + settings_.patience_s;
    if (leads && control_ &&
        !control_->hold()) { /* whoever asked has been told that it took too long */
        agreement_.arrive(attempts_);
        agreement_.call_off();
        outcome(refusal(ETIMEDOUT, ""));
        return false;
    }
    agreement_.arrive(attempts_);
    for (pause pause;; pause.rest()) {
        const auto state = agreement_.gather();
        if (state == negotiation::gathering::all)
            return true;
        const bool late = seconds() > deadline;
        if (state == negotiation::gathering::off || (late && leads)) {
            const int missing = agreement_.missing();
            if (leads)
                agreement_.call_off();
            outcome(refusal(ETIMEDOUT, no_safe_point(missing, settings_.patience_s)));
            return false;
        }
        if (late) {
            if (agreement_.give_up()) {
                settle();
                return false;
            }
            deadline = kNoLimit; /* rank 0 has counted us in, so it is there, and will say */
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
    met_ = seconds();
    if (!gather())
        return;
    std::string text = request_ ? request_->to_json() : "";
    share(now_.ours, 0, text);
    const request wanted = request::from_json(text);
    std::string in_flight;
    is_quiet(in_flight);
    in_flight = agree(now_.ours, in_flight);
    if (!in_flight.empty()) {
        if (++attempts_ < settings_.attempts) {
            target_++;
            if (control_)
                control_->release();
            return;
        }
        outcome(refusal(EAGAIN, "messages in flight at " + std::to_string(attempts_) +
                                    " safe points: " + in_flight));
        return;
    }
    if (wanted.kind == request::what::move) {
        profiler::instance().busy(true);
        move(wanted);
        profiler::instance().busy(false);
    } else {
        checkpoint();
    }
}

void job::settle()
{
    if (settings_.fault_injected(fault::settles_late) && now_.rank != 0)
        for (const double begin = seconds(); seconds() - begin < 1;)
            make_progress(); /* rank 0 may be at the next request by then */
    agreement_.settle();
    stage_ = stage::calm;
    attempts_ = 0;
}

/** The request is over; whoever asked hears @text. */
void job::outcome(const std::string &text)
{
    settle();
    if (request_ && control_) {
        request_.reset();
        control_->finish(text);
    }
}

/* ---- checkpoints ---- */

void job::request_checkpoint()
{
    if (now_.rank != 0 || !control_)
        return;
    request wanted;
    wanted.kind = request::what::checkpoint;
    if (!control_->submit(wanted))
        throw error(EBUSY, "no checkpoint: another request is under way");
    arrived_ = seconds();
    agreement_.ring();
}

void job::join_writer()
{
    if (writer_.joinable())
        writer_.join();
}

/** Rank 0: from its first checkpoint on no other job saves where this one does. */
void job::keep_others_away()
{
    if (now_.rank != 0 || lock_)
        return;
    lock_ = std::make_unique<directory_lock>(settings_.checkpoint_directory, whose());
    if (!lock_->is_held())
        complain(0, settings_.checkpoint_directory + " cannot be locked (" + lock_->problem() +
                        "): see to it that no other job saves there");
}

void job::checkpoint()
{
    const double begin = seconds();
    join_writer();
    auto memory = std::make_shared<image_memory>();
    std::span<const std::byte> image;
    std::uint64_t zero = 0;
    std::string complaint;
    try {
        keep_others_away();
        data.check_mapped();
        std::vector<array> arrays;
        for (const auto &[name, a] : data.all())
            arrays.push_back(a);
        memory->reserve(image_bound(arrays));
        image_writer writer(*memory, header());
        for (const array &a : arrays)
            writer.write(a);
        image = writer.finish();
        zero = writer.zero_bytes();
    } catch (const error &problem) {
        complaint = "rank " + std::to_string(now_.rank) + ": " + problem.what();
    }
    const std::string verdict = agree(now_.ours, complaint);
    if (!verdict.empty()) {
        if (now_.rank == 0)
            complain(-1, "no checkpoint: " + verdict);
        outcome(refusal(EIO, verdict));
        return;
    }
    const double built = seconds();
    const std::vector<double> sum =
        total(now_.ours, {static_cast<double>(image.size()), static_cast<double>(zero),
                          static_cast<double>(data.bytes())});
    const std::vector<double> most =
        greatest(now_.ours, {(built - begin) * 1e3, (seconds() - met_) * 1e3});
    const std::int64_t n = safe_points_.load();
    std::string nonce = std::to_string(getpid()) + "-" +
                        std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    share(now_.ours, 0, nonce);
    const double asked = arrived_.load();
    const bool answering = request_.has_value();
    request_.reset();
    settle();
    writer_problem_.clear();
    writer_ = std::thread([this, memory, image, n, nonce, sum, most, begin, built, asked,
                           answering] {
        std::string text;
        try {
            const checkpoint_directory place(settings_.checkpoint_directory, n, nonce, whose());
            std::function<void()> after_block;
            if (settings_.fault_injected(fault::slow_disk) && now_.rank != 0)
                after_block = [] { std::this_thread::sleep_for(std::chrono::milliseconds(500)); };
            try {
                place.write_rank(now_.rank, image, after_block);
            } catch (const error &) {
                if (now_.rank != 0)
                    throw;
                /* Of its own failure rank 0 hears below, with that of others. */
            }
            if (now_.rank == 0) {
                using company = checkpoint_directory::company;
                place.commit(now_.size, settings_.timeout_s,
                             lock_->is_held() ? company::alone : company::unknown);
                const double done = seconds();
                text = json{{"ok", true},
                            {"command", "checkpoint"},
                            {"directory", settings_.checkpoint_directory},
                            {"safe_point", n},
                            {"bytes", {{"data", sum[2]}, {"image", sum[0]}, {"zero", sum[1]}}},
                            {"phases_ms",
                             {{"negotiation", (begin - asked) * 1e3},
                              {"checkpoint", most[0]},
                              {"transfer", (done - built) * 1e3}}},
                            {"stall_ms", most[1]},
                            {"response_ms", (done - asked) * 1e3}}
                           .dump();
            }
        } catch (const std::exception &problem) {
            writer_problem_ = problem.what();
            text = refusal(EIO, problem.what());
            complain(now_.rank, std::string("no checkpoint: ") + problem.what());
        }
        if (answering && control_)
            control_->finish(text);
    });
}

/* ---- the end ---- */

std::string job::finish()
{
    const quiet ours;
    if (waiting_to_take_over_)
        throw error(EINVAL,
                    "zcm_finalize() in a resumed process that has not come to a safe point");
    if (control_)
        control_->close_door("the job is finishing");
    /* Rank 0 may be looking for a meeting: it must find out, and we must make progress. */
    agreement_.never_again();
    MPI_Request barrier;
    MPI_Ibarrier(now_.ours, &barrier);
    wait_gently(barrier);
    if (request_)
        outcome(refusal(ESHUTDOWN, "the job ended before a common safe point"));
    join_writer();
    lock_.reset();
    control_.reset();
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
