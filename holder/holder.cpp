/* SPDX-License-Identifier: BSD-3-Clause */
#include "holder.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <zmq.h>

#include "error.h"
#include "host_name.h"
#include "pagemap.h"
#include "passed_descriptor.h"
#include "preflight.h"
#include "time_namespace.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

constexpr std::size_t kLongestOrder = 4096;
constexpr std::chrono::seconds kLetGo{5}; /* for CRIU to end, which takes some milliseconds */
/* Of a netmod that does not know TRACK, WITH or TELL. */
constexpr const char *kUnknownOrder = "REFUSED unknown order";
/* The second: other ranks that move are in the way. */
constexpr std::string_view kRefused = "REFUSED", kRefusedAgain = "REFUSED AGAIN";

std::int64_t ns_of(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double ms_since(clock::time_point begin)
{
    return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

} // namespace

holder::holder(loop &events, settings how, surroundings &owner, rank_process rank,
               descriptor orders, std::vector<end> ends, state begin, std::optional<held_rank> self)
    : loop_(events), how_(std::move(how)), owner_(owner), rank_(rank), orders_(std::move(orders)),
      ends_(std::move(ends)), state_(begin), self_(std::move(self)), since_(clock::now())
{
    loop_.watch(orders_.fd, POLLIN, [this] { listen(); });
}

void holder::begin()
{
    if (state_ == state::RUNNING)
        tell();
}

holder::~holder()
{
    if (orders_.fd >= 0)
        loop_.forget(orders_.fd);
    if (pause_)
        loop_.forget(pause_->fd());
}

void holder::fail(const std::string &why)
{
    owner_.say({{"said", "failed"}, {"why", why}});
}

/** False: the rank has not been told, and the owner has: what was asked of it has failed. */
bool holder::order(const std::string &lines)
{
    const std::string text = lines + "\n";
    const ssize_t sent = send(orders_.fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(text.size()))
        return true;
    fail(std::string("the rank cannot be told: ") +
         (sent < 0 ? std::strerror(errno) : "it does not read"));
    return false;
}

/** Others learn from it which ranks belong together. A rank that moves goes on without. */
void holder::tell()
{
    if (!self_ || self_->rank >= self_->size)
        return;
    try {
        if (!traffic_)
            traffic_.emplace(*self_);
        const std::string line =
            "TELL " + std::to_string(ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC)) + "\n";
        if (send_passing(orders_.fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                         traffic_->fd()) != static_cast<ssize_t>(line.size()))
            throw_errno(errno, "the rank cannot be told");
        asked_to_tell_ = true;
    } catch (const std::exception &problem) {
        untold(reason_of(problem));
    }
}

/** One rank says what is likely so for all. */
void holder::untold(const std::string &why)
{
    asked_to_tell_ = false;
    traffic_.reset();
    if (!std::exchange(said_untold_, true) && self_->rank == 0)
        owner_.warn("agents do not know what it sends: " + why);
}

void holder::listen()
{
    std::array<char, 512> bytes;
    const ssize_t got =
        receive_passed(orders_.fd, bytes.data(), bytes.size(), MSG_DONTWAIT, passed_);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) { /* the program has closed it, or ended */
        loop_.forget(orders_.fd);
        return;
    }
    partial_.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;) {
        const std::string said = partial_.substr(0, end);
        partial_.erase(0, end + 1);
        heard(said);
    }
    if (partial_.size() > kLongestOrder)
        partial_.clear();
}

void holder::heard(const std::string &said)
{
    if (said == "DETACHED") {
        detached();
    } else if (said.starts_with("BOUND")) {
        state_ = state::RUNNING;
        owner_.say({{"said", "bound"}, {"ms", ms_since(since_)}});
        tell();
    } else if (said == "TRACKED") {
        tracked();
    } else if (said.starts_with("UNTRACKED")) {
        untracked("the rank:" + said.substr(std::strlen("UNTRACKED")));
    } else if (said == "TELLING") {
        asked_to_tell_ = false;
    } else if (said.starts_with("UNTOLD")) {
        untold("the rank:" + said.substr(std::strlen("UNTOLD")));
    } else if (asked_to_tell_ && said == kUnknownOrder) {
        untold("its MPI library does not know how");
    } else if (asked_to_track_ && said == kUnknownOrder) {
        untracked("its MPI library does not know how");
    } else if (extras_ > 0 && said == kUnknownOrder) {
        extras_--; /* it does without */
    } else if (said.starts_with(kRefused)) {
        if (state_ == state::LEAVING)
            state_ = state::RUNNING;
        promised_ = {};
        const bool again = said.starts_with(kRefusedAgain);
        const std::string why = said.substr((again ? kRefusedAgain : kRefused).size());
        owner_.say({{"said", "failed"}, {"why", "the rank refuses:" + why}, {"again", again}});
    }
}

void holder::obey(const nlohmann::json &request)
{
    const std::string what = request.value("do", "");
    try {
        if (what == "examine")
            examine();
        else if (what == "copy")
            copy(request);
        else if (what == "finish")
            finish_copy();
        else if (what == "stay")
            forget_other_host();
        else if (what == "leave")
            leave(request);
        else if (what == "send")
            dump(request);
        else if (what == "thaw")
            thaw(request.at("incarnation"));
        else if (what == "end")
            kill_rank();
        else
            fail("no such request: " + what);
    } catch (const std::exception &problem) {
        fail(reason_of(problem));
    }
}

void holder::examine()
{
    std::vector<std::string> refused = cannot_move(rank_.pid(), ends_, state_ != state::RUNNING);
    if (!how_.not_movable.empty())
        refused.push_back(how_.not_movable);
    owner_.say({{"said", "examined"},
                {"needs", needs_of(rank_.pid(), traffic_ ? traffic_->fd() : -1)},
                {"copies", true}, /* it knows that request: holders before it did not */
                {"refused", refused}});
}

void holder::connect(const std::string &to, const std::string &key)
{
    client_ = std::make_unique<image_client>(loop_, to, tls_key::of(key));
    to_ = to;
    key_ = key;
}

void holder::forget_other_host()
{
    client_.reset();
    sender_.reset();
    copy_.reset();
    promised_ = {};
    if (state_ == state::COPYING)
        state_ = state::RUNNING;
}

void holder::copy(const nlohmann::json &request)
{
    const bool track = request.value("track", false);
    if (state_ == state::LEAVING || state_ == state::DETACHED) { /* a move before has asked it to */
        owner_.say({{"said", "copied"}});
        return;
    }
    if (state_ != state::RUNNING)
        return fail("the rank is not running here");
    connect(request.at("to"), request.at("key"));
    copy_ = std::make_unique<pre_copy>(rank_.pid(), request.at("most"),
                                       request.value("waits", false), request.value("lazy", false));
    if (request.contains("within_ms"))
        copy_->end_by(clock::now() +
                      std::chrono::milliseconds(request.at("within_ms").get<std::int64_t>()));
    said_ready_ = false;
    since_ = clock::now();
    state_ = state::COPYING;
    not_tracked_ = track ? "the rank has not answered" : "";
    asked_to_track_ = track;
    if (track)
        order("TRACK");
}

void holder::tracked()
{
    asked_to_track_ = false;
    descriptor userfault = std::exchange(passed_, {});
    if (state_ != state::COPYING)
        return;
    try {
        not_tracked_ = copy_->track(std::move(userfault))
                           ? ""
                           : "the rank has answered when its copy was at its end";
    } catch (const std::exception &problem) {
        untracked(reason_of(problem));
    }
}

void holder::untracked(const std::string &why)
{
    asked_to_track_ = false;
    not_tracked_ = why;
}

/** If it is copied no more, its owner knows already, or will. */
void holder::finish_copy()
{
    if (state_ == state::COPYING)
        copy_->finish();
}

void holder::copy_on()
{
    const bool all = copy_->push(client_->out());
    client_->pump();
    if (!all) {
        if (copy_->is_ready() && !std::exchange(said_ready_, true))
            say_of_copy({{"said", "ready"}});
        return;
    }
    state_ = state::RUNNING;
    copied_ = copy_->bytes();
    nlohmann::json said = {{"said", "copied"},
                           {"bytes", copied_},
                           {"rounds", copy_->rounds()},
                           {"ended", name_of(copy_->why_ended())},
                           {"ms", ms_since(since_)}};
    if (not_tracked_.empty())
        not_tracked_ = copy_->not_protected();
    if (!not_tracked_.empty())
        said["not_tracked"] = not_tracked_;
    say_of_copy(std::move(said));
}

/** With how long the rest of the move takes, where that decides anything. */
void holder::say_of_copy(nlohmann::json what)
{
    if (copy_->has_limit())
        what["rest_ms"] = copy_->rest().count() * 1e3;
    owner_.say(what);
}

/** Its image will be in memory beside the rank. Others may be about to leave as well, and each of
 * them would find the same memory free. Return: why it has to wait, or empty. */
std::string holder::promise_room()
{
    std::string why;
    const std::uint64_t kib = memory_of(rank_.pid());
    const auto decide = [&](const promised_memory &others) -> std::optional<host_memory> {
        why = why_not_yet(host_name(), kib, memory_of_host().without(others),
                          others.all > 0 || memory_directory::is_any_there());
        if (!why.empty())
            return {};
        return host_memory{kib, kib};
    };
    memory_directory::remove_left_over(); /* takes time, and others wait while they are decided on
                                           */
    try {
        promised_ = promised_room::make(kib, decide);
    } catch (
        const std::exception &) { /* nobody knows of others: it is tried, as if it were alone */
    }
    return why;
}

void holder::leave(const nlohmann::json &request)
{
    if (state_ == state::DETACHED)
        return detached();
    if (state_ != state::RUNNING)
        return fail("the rank is not running here");
    const std::vector<int> others = request.value("with", std::vector<int>{});
    /* Without its memory an image is small. */
    const std::string why = request.value("lazy", false) ? "" : promise_room();
    if (!why.empty()) {
        owner_.say({{"said", "failed"}, {"why", why}, {"again", true}});
        return;
    }
    std::string lines;
    if (request.contains("lives"))
        lines += request.at("lives").get<std::string>() + "\n";
    for (const int rank : others)
        lines += "WITH " + std::to_string(rank) + "\n";
    if (!order(lines + "LEAVE")) {
        promised_ = {};
        return;
    }
    extras_ = others.size() + request.contains("lives");
    state_ = state::LEAVING;
    since_ = clock::now();
}

/** It may have taken so long that the move was given up: then the owner gives it the next token. */
void holder::detached()
{
    state_ = state::DETACHED;
    owner_.say({{"said", "detached"},
                {"ms", ms_since(since_)},
                {"refused", cannot_move(rank_.pid(), ends_, true)}});
}

void holder::dump(const nlohmann::json &request)
{
    if (state_ != state::DETACHED)
        return fail("the rank is not detached");
    const std::string to = request.at("to");
    if (to != to_)
        forget_other_host();
    to_ = to;
    key_ = request.at("key");
    dump(request.value("lazy", false), "");
}

void holder::dump(bool lazy, const std::string &not_lazy)
{
    not_lazy_ = not_lazy;
    images_ = std::make_unique<memory_directory>();
    dump_begin_ = clock::now();
    std::vector<std::string> options = dump_options(rank_.pid(), ends_);
    if (lazy) {
        const std::vector<std::string> more = pause_.emplace().options();
        options.insert(options.end(), more.begin(), more.end());
    }
    std::function<void()> clocks;
    if (geteuid() != 0) /* it would dump what differs from its own, which root alone may */
        clocks = [pid = rank_.pid()] { share_clocks(pid); };
    criu_ = std::make_unique<criu_run>(how_.criu, "dump", images_->path(), options, clocks);
    if (pause_) {
        pause_->started();
        loop_.watch(pause_->fd(), POLLIN, [this] { paused(); });
        if (copy_)
            copy_->catch_up();
    }
    state_ = state::DUMPING;
}

/** All but the memory is dumped; or CRIU has ended, and child_ended() tells why. */
void holder::paused()
{
    loop_.forget(pause_->fd());
    if (!pause_->has_come())
        return;
    try {
        dumped();
    } catch (const std::exception &problem) {
        dump_fails(reason_of(problem));
    }
}

/** The rank stays stopped. */
void holder::end_dump()
{
    if (!pause_ && !let_go_)
        return;
    let_go();
    if (criu_)
        criu_->finish();
    criu_.reset();
    let_go_.reset();
}

/** CRIU ends, and leaves the rank stopped. */
void holder::let_go()
{
    if (!pause_)
        return;
    loop_.forget(pause_->fd());
    pause_.reset();
    let_go_ = clock::now();
}

void holder::dumped()
{
    promised_ = {};
    const nlohmann::json frozen = owner_.freeze(ends_);
    const clock_readings clocks = clocks_of(rank_.pid());
    nlohmann::json manifest = {{"pid", rank_.pid()},
                               {"ends", frozen.at("ends")},
                               {"streams", frozen.at("streams")},
                               {"monotonic_ns", clocks.monotonic.count()},
                               {"boottime_ns", clocks.boottime.count()}};
    if (self_)
        manifest["mark"] = mark_of(*self_);
    if (!client_)
        connect(to_, key_);
    std::optional<frozen_memory> memory;
    if (pause_)
        memory = {rank_.pid(), left_out(images_->path(), rank_.pid())};
    sender_ = std::make_unique<image_sender>(
        manifest, images_->path(), copy_ ? copy_->sent() : sent_ahead{}, std::move(memory));
    since_ = clock::now();
    state_ = state::SENDING;
}

void holder::step()
{
    if (!client_)
        return;
    try {
        client_->pump();
        if (catches_up()) {
            copy_->push(client_->out());
            client_->pump();
        }
        if (state_ != state::COPYING && state_ != state::SENDING)
            return;
        if (client_->silence() > how_.patience)
            lose_other_host("the other host does not answer at " + to_ +
                            (client_->why().empty() ? "" : ": " + client_->why()));
        else
            state_ == state::COPYING ? copy_on() : send_on();
    } catch (const std::exception &problem) {
        lose_other_host(reason_of(problem));
    }
}

/** What was written since the rank was copied goes while CRIU has other things to do. */
bool holder::catches_up() const
{
    return state_ == state::DUMPING && pause_ && copy_ && client_;
}

bool holder::is_busy() const
{
    if (state_ == state::COPYING || catches_up())
        return copy_->can_push(client_->out());
    return state_ == state::SENDING && sender_->can_push(client_->out());
}

void holder::lose_other_host(const std::string &why)
{
    if (state_ == state::SENDING)
        state_ = state::SENT; /* it stands still, and waits for what its owner says */
    forget_other_host();
    end_dump();
    images_.reset();
    owner_.say({{"said", "failed"}, {"why", why}, {"other_host", true}});
}

void holder::send_on()
{
    const bool all = sender_->push(client_->out());
    client_->pump();
    if (!all || !client_->out().is_done())
        return;
    if (pause_) {
        /* If it has ended, what was read may be of a rank that runs: criu_ended(). */
        if (!criu_->result())
            let_go();
        return;
    }
    if (let_go_ && (criu_ || !rank_.is_stopped())) {
        if (clock::now() - *let_go_ > kLetGo)
            dump_fails(criu_ ? "criu dump does not end" : "criu dump: the rank is not stopped");
        return;
    }
    let_go_.reset();
    state_ = state::SENT;
    nlohmann::json said = {
        {"said", "sent"},
        {"bytes", sender_->bytes() + (copy_ ? copy_->bytes() - copied_ : 0)},
        {"bytes_there", sender_->bytes_there()},
        {"left_out", sender_->bytes_left_out()},
        {"unread", sender_->bytes_unread()},
        {"dump_ms", std::chrono::duration<double, std::milli>(since_ - dump_begin_).count()},
        {"send_ms", ms_since(since_)}};
    if (!not_lazy_.empty()) {
        said["lazy"] = false;
        said["not_lazy"] = not_lazy_;
    }
    owner_.say(said);
    client_.reset();
    sender_.reset();
    /* copy_ stays: to track no more takes time, and the rank will end, or thaw() forgets it. */
    images_.reset();
}

void holder::thaw(std::uint64_t incarnation)
{
    if (state_ == state::SENDING)
        end_dump(); /* CRIU would stop the rank again */
    state_ = state::BINDING;
    since_ = clock::now();
    promised_ = {};
    owner_.thaw();
    order("BIND " + std::to_string(incarnation));
    kill(rank_.pid(), SIGCONT);
    criu_.reset(); /* what takes time, when the rank runs */
    end_dump();
    images_.reset();
    forget_other_host();
}

void holder::kill_rank()
{
    loop_.forget(orders_.fd);
    end_dump();
    rank_.kill_and_reap();
    traffic_.reset();
    state_ = state::ENDED;
}

void holder::dump_fails(const std::string &why)
{
    end_dump();
    criu_.reset();
    state_ = state::SENT;
    fail(why);
}

void holder::criu_ended(bool well)
{
    const std::string why = well ? "criu dump: the rank is no longer frozen" : criu_->reason();
    const bool paused = pause_.has_value();
    criu_.reset();
    if (state_ == state::SENDING && let_go_ && well)
        return; /* send_on() */
    if (state_ == state::DUMPING && paused && !well)
        return dump_all(why);
    try {
        if (state_ == state::DUMPING && well && !paused)
            dumped();
        else
            throw error(EIO, why);
    } catch (const std::exception &problem) {
        dump_fails(reason_of(problem));
    }
}

/** The rank's memory, too, as CRIU cannot leave it out. */
void holder::dump_all(const std::string &why)
{
    end_dump();
    state_ = state::DETACHED;
    try {
        dump(false, why);
    } catch (const std::exception &problem) {
        dump_fails(reason_of(problem));
    }
}

std::optional<int> holder::child_ended()
{
    if (criu_) {
        if (const std::optional<bool> well = criu_->result())
            criu_ended(*well);
    }
    return rank_.reap();
}

} // namespace zc::holder
