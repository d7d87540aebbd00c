/* SPDX-License-Identifier: BSD-3-Clause */
#include "listener.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <spdlog/spdlog.h>
#include <zmq.h>

#include "arrival.h"
#include "capabilities.h"
#include "endpoint.h"
#include "error.h"
#include "host_name.h"
#include "image_client.h"
#include "memory_directory.h"
#include "own_namespaces.h"
#include "page_filler.h"
#include "preflight.h"
#include "request_server.h"
#include "soft_limits.h"
#include "zch/ports.h"
#include "zch/rank_traffic.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr int kReadySeconds = 10;
constexpr int kTurn = 100;           /* ms, while an answer is waited for */
constexpr auto kStatusPatience = 2s; /* of a process that may be stopped */
constexpr auto kMovePatience = 1h;
constexpr auto kAskerPatience = 10s; /* without a sign: it gives one each second */

[[noreturn]] void become_holder(const settings &how, const std::string &host, int ready,
                                int promise, bool apart, pid_t last_number)
{
    try {
        setsid();
        /* CRIU raises none for users, so what it restores has these. */
        if (geteuid() != 0)
            raise_limits({RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_MEMLOCK});
        const bool unprivileged = needs_user_namespace();
        if (unprivileged) {
            enter_user_namespace();
            keep_capabilities();
        }
        /* In the host's it may not choose the process numbers that the rank has. */
        if (apart || unprivileged)
            become_first_of_namespaces(last_number);
        const std::string fd = std::to_string(ready), promise_fd = std::to_string(promise);
        const std::string patience = std::to_string(how.patience.count());
        fcntl(ready, F_SETFD, 0);
        if (promise >= 0)
            fcntl(promise, F_SETFD, 0);
        execl("/proc/self/exe", "zc-hold", "--arrival", host.c_str(), "--ready", fd.c_str(),
              "--promise", promise_fd.c_str(), "--key", how.key_file.c_str(), "--criu",
              how.criu.c_str(), "--patience", patience.c_str(), nullptr);
        throw_errno(errno, "zc-hold");
    } catch (const std::exception &problem) {
        const std::string text = nlohmann::json{{"refused", {problem.what()}}}.dump() + "\n";
        _exit(write(ready, text.data(), text.size()) > 0 ? 1 : 2);
    }
}

std::string read_line(int fd)
{
    std::string text;
    pollfd ready{fd, POLLIN, 0};
    std::array<char, 512> bytes;
    while (text.find('\n') == std::string::npos && poll(&ready, 1, kReadySeconds * 1000) > 0) {
        const ssize_t got = read(fd, bytes.data(), bytes.size());
        if (got <= 0)
            break;
        text.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return text;
}

} // namespace

listener::listener(settings how, network &net, const std::string &place)
    : how_(std::move(how)), net_(net), doors_(loop_),
      host_(place.substr(0, port_at(place) == std::string::npos ? std::string::npos
                                                                : port_at(place) - 1)),
      socket_(net.listen(ZMQ_ROUTER, listener_at(place)))
{
    memory_directory::remove_left_over();
    traffic_file::remove_left_over();
    spdlog::info("listening at {}", endpoint_of(socket_));
}

void listener::run()
{
    loop_.watch(net_.door().socket(), [this] { net_.door().answer(); });
    loop_.watch(socket_, [this] { answer(); });
    loop_.watch(signals_.fd(), POLLIN, [this] {
        while (const int signal = signals_.next()) {
            over_ = over_ || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
            while (signal == SIGCHLD && waitpid(-1, nullptr, WNOHANG) > 0)
                continue;
        }
    });
    while (!over_) {
        loop_.turn(doors_.waits() ? kTurn : -1);
        tick();
    }
    zmq_close(socket_);
}

void listener::answer()
{
    for (;;) {
        const std::vector<std::string> parts = receive_parts(socket_);
        if (parts.empty())
            return;
        const auto request = nlohmann::json::parse(parts.back(), nullptr, false);
        try {
            answer(parts.front(), request);
        } catch (const std::exception &problem) {
            send(parts.front(), request, {{"refused", {reason_of(problem)}}});
        }
    }
}

void listener::answer(const std::string &asker, const nlohmann::json &request)
{
    const std::string what = request.at("do");
    if (what == "prepare")
        send(asker, request, prepare(request));
    else if (what == "ranks")
        tell_ranks(asker, request);
    else if (what == "move")
        order_move(asker, request);
    else if (what == "wait" || what == "go")
        of_move(request, what == "go");
    else
        throw error(EBADMSG, "no such request");
}

void listener::send(const std::string &asker, const nlohmann::json &request, nlohmann::json said)
{
    if (request.is_object() && request.contains("number"))
        said["number"] = request.at("number");
    const std::string text = said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    zmq_send(socket_, asker.data(), asker.size(), ZMQ_SNDMORE);
    zmq_send(socket_, text.data(), text.size(), ZMQ_DONTWAIT);
}

void listener::tell_ranks(const std::string &asker, const nlohmann::json &request)
{
    struct gathered {
        std::size_t missing = 0;
        nlohmann::json ranks = nlohmann::json::array();
    };
    const std::vector<std::string> sockets = request_sockets();
    const auto all = std::make_shared<gathered>();
    all->missing = sockets.size() + 1;
    const auto one_more = [this, asker, request, all](const nlohmann::json &said) {
        if (said.is_object() && said.value("ok", false))
            all->ranks.push_back(said);
        if (--all->missing == 0)
            send(asker, request, {{"host", host_name()}, {"ranks", all->ranks}});
    };
    for (const std::string &socket : sockets)
        doors_.ask(socket, {{"do", "status"}}, kStatusPatience, one_more);
    one_more(nullptr); /* there may be none */
}

void listener::order_move(const std::string &asker, const nlohmann::json &request)
{
    const int pid = request.at("pid");
    const std::string door = request_socket_of(pid);
    const nlohmann::json gone = {{"ok", false},
                                 {"why", "zc-hold " + std::to_string(pid) + " of " + host_name() +
                                             " has ended, or gives no answer"}};
    if (door.empty())
        return send(asker, request, gone);
    spdlog::info("the rank of zc-hold {} is to move to {}", pid,
                 request.at("to").get<std::string>());
    const std::uint64_t number = request.value("number", std::uint64_t{0});
    const auto door_of = std::make_shared<int>(-1);
    const auto heard = [this, asker, request, gone, number, door_of](const nlohmann::json &said) {
        if (said.is_object() && !is_answer(said))
            waiting_[number] = {*door_of, clock::now()};
        else
            waiting_.erase(number);
        send(asker, request, said.is_object() ? said : gone);
    };
    nlohmann::json move = request;
    move.erase("pid");
    move.erase("number");
    *door_of = doors_.ask(door, move, kMovePatience, heard);
}

void listener::of_move(const nlohmann::json &request, bool go)
{
    const auto found = waiting_.find(request.at("number").get<std::uint64_t>());
    if (found == waiting_.end())
        return; /* it has gone meanwhile */
    found->second.sign = clock::now();
    if (go)
        let_go(found, false);
}

void listener::let_go(waiting_moves::iterator which, bool alone)
{
    doors_.tell(which->second.door, {{"do", "go"}, {"alone", alone}});
    waiting_.erase(which);
}

void listener::tick()
{
    const auto now = clock::now();
    doors_.tick(now);
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        const auto one = each++;
        if (now - one->second.sign > kAskerPatience)
            let_go(one, true);
    }
}

std::string listener::find_room(const rank_room &rank, room_offer &offer, promised_room &promise,
                                bool &again)
{
    std::string why;
    const auto decide = [&](const promised_memory &others) -> std::optional<host_memory> {
        const free_memory all = memory_of_host();
        const host_memory has = all.without({}), left = all.without(others);
        why = why_no_room(host_name(), rank.kib, has, left);
        again = !why.empty() && why_no_room(host_name(), rank.kib, has, has).empty();
        if (!why.empty())
            return {};
        offer = offer_of(rank, left);
        return offer.together;
    };
    try {
        promise = promised_room::make(rank.kib, decide);
    } catch (const std::exception &problem) {
        if (!std::exchange(said_no_promises_, true))
            spdlog::warn("what is promised to one rank may be promised to another, too: {}",
                         reason_of(problem));
        decide({});
    }
    return why;
}

nlohmann::json listener::prepare(const nlohmann::json &request)
{
    const nlohmann::json &needs = request.at("needs");
    const bool lazy = request.value("lazy", true), can_fill = lazy && page_filler::is_possible();
    const rank_room rank{needs.at("kib"), request.value("ahead", true), can_fill};
    std::vector<std::string> reasons = lacks(needs);
    const bool is_known =
        request.contains("credentials") && request.value("image", "") == kImageWay;
    const std::string stranger = is_known
                                     ? credentials_reason(request.at("credentials"), credentials())
                                     : "its zc-hold is of another build than the rank's";
    for (const std::string &reason : {stranger, root_reason()}) {
        if (!reason.empty())
            reasons.push_back(reason);
    }
    room_offer offer{};
    promised_room promise;
    bool again = false;
    if (reasons.empty()) {
        const std::string why = find_room(rank, offer, promise, again);
        if (!why.empty())
            reasons.push_back(why);
    }
    if (!reasons.empty()) {
        spdlog::info("a rank is refused: {}", joined(reasons));
        return {{"refused", reasons}, {"again", again}};
    }
    nlohmann::json made = start_holder(needs, promise);
    made["room"] = offer.store;
    made["lazy"] = offer.lazy;
    if (lazy && !can_fill)
        made["not_lazy"] = "it cannot fill the memory of a rank that runs";
    else if (lazy && !offer.lazy)
        made["not_lazy"] =
            "it has not as much memory as a rank needs that runs before it has its own";
    return made;
}

nlohmann::json listener::start_holder(const nlohmann::json &needs, const promised_room &promise)
{
    const bool apart = has_taken(needs);
    const pid_t last_number = number_before_free(needs);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw_errno(errno, "pipe");
    const descriptor ours{ends[0]};
    descriptor theirs{ends[1]};
    const pid_t child = fork();
    if (child < 0)
        throw_errno(errno, "fork");
    if (child == 0)
        become_holder(how_, host_, theirs.fd, promise.fd(), apart, last_number);
    theirs = descriptor{};
    auto said = nlohmann::json::parse(read_line(ours.fd), nullptr, false);
    if (!said.is_object()) {
        kill(-child, SIGKILL); /* its group, or it would come late, and keep what was promised */
        kill(child, SIGKILL);  /* if it has none yet */
        throw error(EIO, "the holder on this host does not start");
    }
    said["host"] = host_name();
    return said;
}

void run_arrival(const settings &how, network &net, const std::string &address, int ready,
                 int promise)
{
    int status;
    {
        arrival one(how, net, address, promise >= 0 ? promised_room(promise) : promised_room());
        const std::string text = one.endpoints().dump() + "\n";
        if (write(ready, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            _exit(1);
        close(ready);
        status = one.run();
    }
    _exit(status);
}

} // namespace zc::holder
