/* SPDX-License-Identifier: BSD-3-Clause */
#include "origin.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <zmq.h>

#include "commit_record.h"
#include "error.h"
#include "host_name.h"
#include "identity.h"
#include "image_client.h"
#include "keys.h"
#include "movable.h"
#include "own_namespaces.h"
#include "preflight.h"
#include "spawned.h"
#include "tls_key.h"
#include "zch/ports.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr int kTurn = 50;  /* ms, while there are lines */
constexpr int kMoving = 5; /* while ZeroMQ may be able to take what it could not */
constexpr auto kFarewell = 3s;
constexpr std::chrono::milliseconds kLongest = 24h; /* that a request asks for */
constexpr int kLost = 1 << 8;                       /* as wait(2) has the exit status 1 */
constexpr const char *kOrders = "MPIR_CVAR_CH4_ZC_DETACH_FD";

/** A stream that the rank closes must have an end: none of them stays open here. */
void let_go_of_streams(int manager)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        dup2(null, fd);
    close(null);
    if (manager >= 0)
        close(manager);
}

void add_end(std::vector<end> &ends, int fd, stream_id stream)
{
    const std::optional<end> found = end_at(fd, stream);
    const bool known = found && std::any_of(ends.begin(), ends.end(), [&](const end &each) {
                           return each.inode == found->inode; /* as by 2>&1 */
                       });
    if (found && !known)
        ends.push_back(*found);
}

/** What is so for all ranks is told by one. Before the streams are the rank's. */
void tell_by_one(const rank_of_job &about, const std::string &what)
{
    const std::string line = "zc-hold: rank " + about.rank + ": " + what + "\n";
    if (about.rank == "0" && write(STDERR_FILENO, line.data(), line.size()) < 0)
        return; /* nothing reads it */
}

/** Why CRIU will not do what it is asked to, or empty. */
std::string provide_for_criu(const rank_of_job &about, bool user_namespace)
{
    if (std::getenv("PMIX_NAMESPACE") != nullptr) /* it cannot move (preflight.cpp) */
        return "";
    if (!needs_user_namespace())
        return root_reason();
    if (!user_namespace)
        return "its zc-hold has no privilege, and --no-user-namespace";
    try {
        enter_user_namespace(about.has_launcher ? about.job : "");
    } catch (const error &problem) {
        return std::string("its zc-hold has no privilege, and cannot have ") + problem.what();
    }
    return "";
}

held_rank rank_of(const rank_of_job &about)
{
    held_rank self;
    self.job = about.job;
    self.rank = std::atoi(about.rank.c_str());
    self.size = about.size;
    self.home = host_name();
    self.pid = getpid();
    return self;
}

void set_environment(const rank_of_job &about, const settings &how, int orders)
{
    const movable_settings made = make_movable();
    for (const std::string &kept : made.kept)
        tell_by_one(about, kept);
    unsetenv(kSpawned); /* of one whose rank has started the launcher of this one */
    try {
        if (made.moves && !how.self.empty())
            setenv(kSpawned, in_lines(words_for_spawned(how.self, how, about.first)).c_str(), 1);
    } catch (const std::exception &problem) {
        tell_by_one(about, "what it spawns is not held: " + reason_of(problem));
    }
    setenv(kRankMark, mark_of(rank_of(about)).c_str(), 1);
    setenv(kOrders, std::to_string(orders).c_str(), 1);
}

/** What @request has by this @name; none: zero. */
std::chrono::milliseconds time_of(const nlohmann::json &request, const char *name)
{
    return std::chrono::milliseconds(
        std::clamp(request.value(name, std::int64_t{0}), std::int64_t{0}, kLongest.count()));
}

std::string with_host_of(const std::string &reached, const std::string &endpoint)
{
    return reached.substr(0, reached.rfind(':')) + endpoint.substr(endpoint.rfind(':'));
}

} // namespace

launched start_rank(const std::vector<std::string> &words, const settings &how,
                    const signal_source &signals)
{
    rank_of_job about = this_rank(how.job, how.spawned_by);
    const int manager = process_manager_descriptor();
    close_others({manager, signals.fd()});
    int orders[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) != 0)
        throw_errno(errno, "socketpair");
    descriptor ours{orders[0]};
    const descriptor theirs{orders[1]};
    std::vector<end> ends;
    add_end(ends, STDIN_FILENO, stream_id::input);
    add_end(ends, STDOUT_FILENO, stream_id::output);
    add_end(ends, STDERR_FILENO, stream_id::errors);
    add_end(ends, theirs.fd, stream_id::control);
    std::vector<int> kept = {theirs.fd};
    if (manager >= 0) {
        add_end(ends, manager, stream_id::manager);
        fcntl(manager, F_SETFD, FD_CLOEXEC);
        kept.push_back(manager);
    }
    set_environment(about, how, theirs.fd);
    nlohmann::json self = credentials(); /* before they look otherwise */
    std::string not_movable = provide_for_criu(about, how.user_namespace);
    if (!not_movable.empty())
        tell_by_one(about, "cannot move: " + not_movable);
    const rank_process rank(words, kept, signals.mask_before());
    let_go_of_streams(manager);
    return {std::move(about),      rank, std::move(ours), std::move(ends), std::move(self),
            std::move(not_movable)};
}

origin::origin(settings how, launched what, signal_source &signals)
    : how_(std::move(how)), credentials_(std::move(what.credentials)),
      about_(std::move(what.about)), signals_(signals), launch_ends_(std::move(what.ends)),
      host_name_(host_name()), relay_(loop_, streams_)
{
    how_.not_movable = std::move(what.not_movable);
    here_.emplace(loop_, how_, *this, what.rank, std::move(what.orders), launch_ends_,
                  holder::state::RUNNING, rank_of(about_));
    here_->begin();
    loop_.watch(signals_.fd(), POLLIN, [this] { signalled(); });
    const std::string directory = request_directory();
    const std::string name = directory + "/hold-" + std::to_string(getpid());
    record_ = name + ".record";
    try {
        if (directory.empty())
            throw error(EACCES, "there is no folder for the socket of requests");
        requests_ = std::make_unique<request_server>(
            loop_, name + ".sock",
            [this](int client, const nlohmann::json &request) { requested(client, request); },
            [this](int client) { has_gone(client); });
    } catch (const error &problem) {
        warn(std::string("it cannot be asked to move: ") + problem.what());
    }
}

origin::~origin()
{
    unlink(record_.c_str());
    if (host_)
        zmq_close(host_);
}

/* ---- what this process has to say, and is asked ---- */

void origin::warn(const std::string &text)
{
    const std::string line = "zc-hold: rank " + about_.rank + ": " + text + "\n";
    descriptor taken;
    if (here_) {
        for (const end &each : launch_ends_) {
            if (each.stream == stream_id::errors)
                taken = taken_from(here_->rank().pid(), each);
        }
    }
    const int fd = taken.fd >= 0 ? taken.fd : errors_.fd;
    if (fd >= 0 && write(fd, line.data(), line.size()) < 0)
        errors_ = descriptor{}; /* nothing reads it any more */
}

nlohmann::json origin::status() const
{
    return {{"ok", true},
            {"rank", about_.rank},
            {"job", about_.job},
            {"first", about_.first},
            {"size", about_.size},
            {"pid", getpid()},
            {"host", host_name_},
            {"place", place_},
            {"incarnation", incarnation_},
            {"moving", move_ != nullptr},
            {"ready", move_ && move_->now() == move_transaction::phase::READY}};
}

void origin::requested(int client, const nlohmann::json &request)
{
    const std::string what = request.value("do", "");
    if (move_ && client == client_) { /* the move is what is answered */
        if (what == "go" && request.value("alone", false))
            move_->wait_no_longer(clock::now());
        else if (what == "go")
            move_->go(clock::now());
        return;
    }
    if (what == "status")
        return requests_->answer(client, status());
    if (what != "move")
        return requests_->answer(client, {{"ok", false}, {"why", "no such request"}});
    begin_move(client, request);
}

void origin::begin_move(int client, const nlohmann::json &request)
{
    std::string why = move_ ? "it moves already" : "";
    const std::string from = request.value("from", host_name_);
    if (!move_ && from != host_name_)
        why = "it is on " + host_name_ + ", not on " + from + " any more";
    try {
        if (why.empty())
            the_network();
    } catch (const std::exception &problem) {
        why = reason_of(problem);
    }
    if (!why.empty())
        return requests_->answer(client,
                                 {{"ok", false}, {"why", why}, {"again", move_ != nullptr}});
    const std::vector<int> with = request.value("with", std::vector<int>{});
    const std::chrono::milliseconds waits = time_of(request, "waits_ms"),
                                    within = time_of(request, "within_ms");
    to_ = listener_at(request.value("to", ""));
    client_ = client;
    move_ = std::make_unique<move_transaction>(*this, incarnation_, clock::now(), how_.patience,
                                               waits, with, within);
    move_->begin();
}

/** What has asked for a move is not needed for it. */
void origin::has_gone(int client)
{
    if (client != client_)
        return;
    client_ = -1;
    if (move_)
        move_->wait_no_longer(clock::now());
}

/* ---- the rank that is here ---- */

void origin::say(const nlohmann::json &what)
{
    source_says(what);
}

network &origin::the_network()
{
    if (!network_)
        network_.emplace(read_keys(how_.key_file));
    return *network_;
}

/** What it has not read stays with the launcher's halves, which this process takes when it hands
 * over. */
nlohmann::json origin::freeze(const std::vector<end> &ends)
{
    nlohmann::json halves = nlohmann::json::array();
    for (const end &each : ends) {
        if (taken_from(here_->rank().pid(), each).fd >= 0)
            halves.push_back(to_json(each, ""));
    }
    return {{"ends", halves}, {"streams", nullptr}};
}

void origin::take_streams()
{
    for (const end &each : launch_ends_) {
        descriptor taken = taken_from(here_->rank().pid(), each);
        if (taken.fd < 0 || each.stream == stream_id::control)
            continue;
        if (each.stream == stream_id::errors)
            errors_ = descriptor{fcntl(taken.fd, F_DUPFD_CLOEXEC, 3)};
        relay_.add(std::move(taken), each, each.is_read, each.is_written);
    }
}

/* ---- parties of a move ---- */

void origin::source_says(const nlohmann::json &what)
{
    const std::string said = what.value("said", "");
    if (what.contains("not_lazy"))
        warn("not --lazy: " + what.value("not_lazy", ""));
    if (what.contains("not_tracked"))
        warn("what may not have changed is read while it stands still: " +
             what.value("not_tracked", ""));
    if (said == "exited")
        status_ = what.at("status").get<int>();
    else if (said == "broken")
        relay_.close_reading(static_cast<stream_id>(what.at("stream").get<int>()));
    else if (move_ && move_->is_committed())
        move_->target_said(what, clock::now());
    else if (move_)
        move_->source_said(what, clock::now());
    else if (said == "detached") { /* it was asked for a move that has been given up */
        incarnation_++;
        try {
            commit(incarnation_, false);
        } catch (const std::exception &problem) {
            warn(reason_of(problem)); /* no other copy is there */
        }
        ask_source({{"do", "thaw"}, {"incarnation", incarnation_}});
    } else if (said == "failed") {
        warn(what.value("why", ""));
    }
}

/** @request, to leave: with where this process takes connections that last as long as the rank. */
nlohmann::json origin::with_liveness(nlohmann::json request)
{
    try {
        if (!liveness_)
            liveness_.emplace(loop_, how_.patience);
        request["lives"] = liveness_->order();
    } catch (const std::exception &problem) {
        if (!std::exchange(said_not_watched_, true))
            warn("its end is not noticed by other worlds: " + reason_of(problem));
    }
    return request;
}

void origin::ask_source(const nlohmann::json &request)
{
    if (here_)
        here_->obey(request.value("do", "") == "leave" ? with_liveness(request) : request);
    else if (current_)
        current_->say(request);
}

void origin::prepare(const nlohmann::json &needs)
{
    try {
        host_ = the_network().connect(ZMQ_DEALER, to_);
    } catch (const std::exception &problem) {
        return move_->prepared({{"refused", {reason_of(problem)}}}, clock::now());
    }
    loop_.watch(host_, [this] { host_answered(); });
    number_ = draw_identity();
    question_ =
        nlohmann::json{{"do", "prepare"},        {"needs", needs},    {"credentials", credentials_},
                       {"ahead", how_.pre_copy}, {"lazy", how_.lazy}, {"number", number_},
                       {"image", kImageWay}}
            .dump();
}

/** ZeroMQ takes it when it has a connection. */
void origin::ask_host()
{
    if (host_ && !question_.empty() &&
        zmq_send(host_, question_.data(), question_.size(), ZMQ_DONTWAIT) >= 0)
        question_.clear();
}

void origin::host_answered()
{
    const std::vector<std::string> parts = receive_parts(host_);
    if (parts.empty() || !move_)
        return;
    auto said = nlohmann::json::parse(parts.back(), nullptr, false);
    if (!said.is_object())
        return;
    try {
        if (!said.contains("refused")) {
            if (said.at("number") != number_)
                return; /* to an earlier question */
            target_ = connect(with_host_of(to_, said.at("line")));
            said["image"] = with_host_of(to_, said.at("image"));
            if (said.contains("key")) /* else it is of another build, as is found out then */
                tls_key::of(said.at("key"));
            to_name_ = said.value("host", to_);
            said["track"] = how_.tracking;
            if (!how_.pre_copy)
                said["room"] = 0;
            if (!how_.lazy)
                said.erase("lazy");
            else if (!said.value("lazy", false))
                warn("not --lazy: " + to_name_ + ": " +
                     said.value("not_lazy", "its zc-hold does not have that"));
        }
    } catch (const std::exception &problem) {
        said = {{"refused", {reason_of(problem)}}};
    }
    move_->prepared(said, clock::now());
}

std::unique_ptr<line> origin::connect(const std::string &endpoint)
{
    auto made = std::make_unique<line>(the_network().connect(ZMQ_DEALER, endpoint));
    loop_.watch(made->socket(), [] {});
    return made;
}

void origin::drop(std::unique_ptr<line> &one)
{
    if (one)
        loop_.forget(one->socket());
    one.reset();
}

void origin::ask_target(const nlohmann::json &request)
{
    if (target_)
        target_->say(request);
}

void origin::ready(bool last)
{
    requests_->say(client_, {{"said", "ready"}, {"last", last}});
}

void origin::commit(std::uint64_t incarnation, bool for_target)
{
    commit_record made{incarnation, place_, to_};
    if (for_target)
        std::swap(made.place, made.before);
    write_record(record_, made);
}

/** The streams are taken while the source has them; the rest when no function of it is on the
 * stack. */
void origin::hand_over()
{
    if (here_)
        take_streams();
    ask_source({{"do", "end"}});
    handing_over_ = true;
}

void origin::switch_over()
{
    handing_over_ = false;
    here_.reset();
    if (current_)
        current_->attach(nullptr);
    drop(leaving_);
    leaving_ = std::move(current_);
    farewell_ = clock::now() + kFarewell;
    current_ = std::move(target_);
    current_->attach(&streams_);
    place_ = to_;
    host_name_ = to_name_;
}

void origin::finished(const nlohmann::json &result)
{
    if (requests_)
        requests_->answer(std::exchange(client_, -1), result);
    finished_ = true;
    if (!result.at("ok").get<bool>() && move_->is_committed())
        lost(result.value("why", ""));
}

void origin::end_move()
{
    finished_ = false;
    incarnation_ = move_->incarnation();
    move_.reset();
    if (target_) { /* which was told to end */
        drop(leaving_);
        leaving_ = std::move(target_);
        farewell_ = clock::now() + kFarewell;
    }
    if (host_) {
        loop_.forget(host_);
        zmq_close(host_);
        host_ = nullptr;
        question_.clear();
    }
    streams_.rewind(); /* it took nothing meanwhile */
    for (const int signal : std::exchange(kept_signals_, {})) {
        if (here_)
            here_->rank().pass_on(signal);
        else
            ask_source({{"do", "signal"}, {"number", signal}});
    }
}

/** The rank cannot be reached, and no copy of it may take its place. */
void origin::lost(const std::string &why)
{
    warn("is lost: " + why);
    if (!status_)
        status_ = kLost;
}

/* ---- the loop ---- */

void origin::signalled()
{
    while (const int signal = signals_.next()) {
        if (signal == SIGCHLD) {
            const std::optional<int> status =
                here_ && !handing_over_ ? here_->child_ended() : std::nullopt;
            if (status)
                status_ = status;
        } else if (move_ && move_->now() >= move_transaction::phase::LEAVING) {
            kept_signals_.push_back(signal); /* until then it runs, and is reached as ever */
        } else if (here_) {
            here_->rank().pass_on(signal);
        } else {
            ask_source({{"do", "signal"}, {"number", signal}});
        }
    }
}

void origin::look_after_lines()
{
    std::vector<nlohmann::json> heard;
    try {
        if (current_) {
            current_->pump();
            heard = current_->hear();
        }
        for (const nlohmann::json &what : heard)
            source_says(what);
        if (target_) {
            target_->pump();
            heard = target_->hear();
            for (const nlohmann::json &what : heard)
                move_->target_said(what, clock::now());
        }
    } catch (const std::exception &problem) {
        lost(reason_of(problem));
    }
    if (target_ && move_ && target_->silence() > how_.patience)
        move_->target_lost("the other host gives no sign", clock::now());
    if (current_ && !handing_over_ && current_->silence() > how_.patience) {
        const std::string why =
            place_ + " has given no sign for " + std::to_string(how_.patience.count()) + " s";
        if (!move_ || move_->source_lost(why, clock::now()))
            lost(why);
    }
    if (leaving_) {
        leaving_->pump();
        if (leaving_->is_done() || clock::now() > farewell_)
            drop(leaving_);
    }
}

void origin::step()
{
    if (here_)
        here_->step();
    ask_host();
    for (const stream_id which : relay_.take_broken())
        ask_source({{"do", "broken"}, {"stream", static_cast<int>(which)}});
    look_after_lines();
    if (move_)
        move_->tick(clock::now());
    if (handing_over_)
        switch_over();
    if (finished_)
        end_move();
}

int origin::run()
{
    while (!status_) {
        relay_.update();
        const bool busy = here_ && here_->is_busy();
        loop_.turn(busy ? 0 : move_ ? kMoving : current_ || leaving_ ? kTurn : -1);
        step();
    }
    if (requests_ && move_ && !finished_)
        requests_->answer(client_, {{"ok", false}, {"why", "the rank has ended"}});
    if (target_) { /* the rank has ended meanwhile */
        target_->say({{"do", "end"}});
        const auto until = clock::now() + kFarewell;
        while (!target_->is_done() && clock::now() < until) {
            loop_.turn(kTurn);
            target_->pump();
        }
    }
    if (current_)
        current_->pump(); /* that its last words were heard */
    drop(target_);
    drop(current_);
    drop(leaving_);
    return *status_;
}

} // namespace zc::holder
