/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_server.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "error.h"
#include "quiet_thread.h"
#include "standby.h"

namespace zc::migrate {

namespace {

constexpr std::size_t kLongestRequest = 64 << 10;
constexpr double kLastWord = 3; /* seconds */
constexpr int kLookEvery = 100; /* ms, while somebody waits for an answer */

double now_s()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void make_private_directory(const std::string &path)
{
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        throw_errno(errno, path);
    struct stat found;
    if (lstat(path.c_str(), &found) != 0)
        throw_errno(errno, path);
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077))
        throw error(EPERM, path + " is not a directory that only its owner can enter");
}

int listen_at(const std::string &path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string own = path + "." + std::to_string(getpid());
    if (own.size() >= sizeof address.sun_path)
        throw error(ENAMETOOLONG, "name of a socket too long: " + own);
    own.copy(address.sun_path, own.size());
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0)
        throw_errno(errno, "socket");
    unlink(own.c_str());
    /* Bound under a name of its own and renamed: an old socket is replaced at one stroke. */
    if (fchmod(listener, 0600) != 0 ||
        bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
        chmod(own.c_str(), 0600) != 0 || listen(listener, 16) != 0 ||
        rename(own.c_str(), path.c_str()) != 0) {
        const int code = errno;
        unlink(own.c_str());
        close(listener);
        throw_errno(code, path);
    }
    return listener;
}

void send_line(int fd, std::string line)
{
    line += '\n';
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t sent = send(fd, line.data() + at, line.size() - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* who asked has gone */
        at += static_cast<std::size_t>(sent);
    }
}

bool receive_line(int fd, std::string &line)
{
    char buffer[4096];
    while (line.find('\n') == std::string::npos && line.size() < kLongestRequest) {
        const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0)
            return false;
        line.append(buffer, static_cast<std::size_t>(got));
    }
    return line.find('\n') != std::string::npos;
}

bool is_owner(int fd)
{
    ucred peer{};
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

} // namespace

control_server::control_server(const std::string &directory, const std::string &job, int ranks,
                               double patience_s, std::uint64_t epoch,
                               const std::atomic<std::int64_t> &safe_points,
                               std::function<std::shared_ptr<standby>(const request &)> examine,
                               std::function<void()> arrived)
    : path_(directory + "/" + job + ".sock"), ranks_(ranks), safe_points_(safe_points),
      examine_(std::move(examine)), arrived_(std::move(arrived)), patience_s_(patience_s),
      epoch_(epoch)
{
    make_private_directory(directory);
    listener_ = listen_at(path_);
    struct stat found;
    inode_ = stat(path_.c_str(), &found) == 0 ? found.st_ino : 0;
    wake_ = eventfd(0, EFD_CLOEXEC);
    if (wake_ < 0) {
        const int code = errno;
        close(listener_);
        unlink(path_.c_str());
        throw_errno(code, "eventfd");
    }
    thread_ = quiet_thread([this] { serve(); });
}

std::string control_server::why_not_in(const std::string &directory)
{
    const std::string path = directory + "/.try-" + std::to_string(getpid());
    try {
        make_private_directory(directory);
        close(listen_at(path));
        unlink(path.c_str());
    } catch (const error &problem) {
        return problem.what();
    }
    return "";
}

control_server::~control_server()
{
    const std::uint64_t one = 1;
    if (write(wake_, &one, sizeof one) == sizeof one)
        thread_.join();
    else
        thread_.detach();
    if (examiner_.joinable())
        examiner_.join();
    close(listener_);
    close(wake_);
    if (client_ >= 0) {
        send_line(client_, refusal(ESHUTDOWN, "the job has ended"));
        close(client_);
    }
    /* A successor may have put its own in the place of ours. */
    struct stat found;
    if (stat(path_.c_str(), &found) == 0 && found.st_ino == inode_)
        unlink(path_.c_str());
}

void control_server::set_status(std::string text, std::uint64_t epoch)
{
    std::lock_guard lock(mutex_);
    epoch_ = epoch;
    status_ = std::move(text);
}

bool control_server::submit(const request &wanted)
{
    std::lock_guard lock(mutex_);
    if (state_ != state::idle || !closed_.empty())
        return false;
    state_ = state::waiting;
    request_ = wanted;
    client_ = -1;
    held_ = expired_ = false;
    return true;
}

std::optional<control_server::taken> control_server::take()
{
    std::lock_guard lock(mutex_);
    if (state_ != state::waiting)
        return std::nullopt;
    state_ = state::running;
    return taken{request_, successors_};
}

bool control_server::hold()
{
    std::lock_guard lock(mutex_);
    held_ = true;
    return !expired_;
}

void control_server::release()
{
    std::lock_guard lock(mutex_);
    held_ = false;
}

/** Tell whoever asked that it takes too long. */
void control_server::expire()
{
    std::lock_guard lock(mutex_);
    /* Where rank 0 has taken it, it knows which rank is missing, and says so if it can. */
    const double limit_s = patience_s_ + (state_ == state::running ? kLastWord : 0);
    if (state_ < state::waiting || client_ < 0 || held_ || now_s() - asked_ < limit_s)
        return;
    char text[128];
    std::snprintf(text, sizeof text,
                  "rank 0 did not come to a safe point in time (%g s); the job goes on as it was",
                  patience_s_);
    send_line(client_, refusal(ETIMEDOUT, text));
    close(std::exchange(client_, -1));
    if (state_ == state::waiting)
        settle_locked("");
    else
        expired_ = true;
    if (successors_)
        successors_->dismiss(); /* rank 0 uses them only while it holds the request */
}

void control_server::finish(const std::string &outcome)
{
    std::lock_guard lock(mutex_);
    settle_locked(outcome);
}

void control_server::answer_early(const std::string &outcome)
{
    std::lock_guard lock(mutex_);
    if (client_ < 0)
        return;
    send_line(client_, outcome);
    close(std::exchange(client_, -1));
    expired_ = true;
}

void control_server::set_late_functions(std::int64_t count)
{
    std::lock_guard lock(mutex_);
    late_functions_ = count;
}

void control_server::close_door(const std::string &why)
{
    std::lock_guard lock(mutex_);
    closed_ = why;
    if (state_ == state::waiting)
        settle_locked(refusal(ESHUTDOWN, why));
}

void control_server::serve()
{
    for (;;) {
        pollfd events[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
        int ready;
        {
            std::unique_lock lock(mutex_);
            const bool waits = state_ != state::idle && client_ >= 0;
            lock.unlock();
            ready = poll(events, 2, waits ? kLookEvery : -1);
        }
        if (ready < 0)
            continue;
        if (events[1].revents)
            return;
        expire();
        if (!events[0].revents)
            continue;
        const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (client >= 0)
            answer(client);
    }
}

void control_server::answer(int client)
{
    const timeval patience{2, 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    std::string line;
    if (!is_owner(client)) {
        send_line(client, refusal(EPERM, "this job belongs to another user"));
        close(client);
    } else if (!receive_line(client, line)) {
        send_line(client, refusal(EINVAL, "no request in time"));
        close(client);
    } else {
        handle(client, line);
    }
}

std::string control_server::why_not_locked(const request &wanted) const
{
    if (!closed_.empty())
        return refusal(ESHUTDOWN, closed_);
    if (state_ != state::idle)
        return refusal(EBUSY, "another request is under way");
    if (wanted.kind == request::what::move && wanted.epoch && *wanted.epoch != epoch_)
        return refusal(ESTALE, "asked for epoch " + std::to_string(*wanted.epoch) + ", but it is " +
                                   std::to_string(epoch_) +
                                   " by now: the job has been reconfigured");
    return "";
}

/** The request that is being examined or waits is over. */
void control_server::settle_locked(const std::string &reply)
{
    if (client_ >= 0) {
        send_line(client_, reply);
        close(std::exchange(client_, -1));
    }
    successors_.reset();
    state_ = state::idle;
}

/** Meanwhile the socket answers others. */
void control_server::examine(const request &wanted)
{
    std::string reply;
    std::shared_ptr<standby> successors;
    try {
        successors = examine_(wanted);
    } catch (const error &problem) {
        reply = refusal(problem.code(), problem.what());
    } catch (const std::exception &problem) {
        reply = refusal(EIO, problem.what());
    }
    {
        std::lock_guard lock(mutex_);
        if (reply.empty()) {
            state_ = state::idle; /* it was refused to others for this one's sake only */
            reply = why_not_locked(wanted);
        }
        if (!reply.empty()) {
            settle_locked(reply);
            return;
        }
        state_ = state::waiting;
        request_ = wanted;
        successors_ = std::move(successors);
        asked_ = now_s();
    }
    arrived_();
}

void control_server::handle(int client, const std::string &line)
{
    std::string reply;
    try {
        const request wanted = request::from_json(line);
        wanted.check(ranks_);
        std::unique_lock lock(mutex_);
        if (wanted.kind == request::what::status && status_.empty()) {
            reply = refusal(EBUSY, "not all ranks are ready yet: ask again");
        } else if (wanted.kind == request::what::status) {
            auto status = nlohmann::json::parse(status_);
            status["safe_points"] = safe_points_.load(std::memory_order_relaxed);
            status["late_functions"] = late_functions_;
            reply = status.dump();
        } else {
            reply = why_not_locked(wanted);
            if (reply.empty()) {
                state_ = state::examining;
                client_ = client;
                held_ = expired_ = false;
                lock.unlock();
                if (examiner_.joinable())
                    examiner_.join(); /* of the request before, which is over */
                try {
                    examiner_ = quiet_thread([this, wanted] { examine(wanted); });
                } catch (const std::exception &) {
                    lock.lock();
                    state_ = state::idle; /* the next request may find memory for a thread */
                    client_ = -1;
                    throw error(ENOMEM, "rank 0 has no memory to look at a request");
                }
                return;
            }
        }
    } catch (const error &problem) {
        reply = refusal(problem.code(), problem.what());
    } catch (const std::exception &problem) {
        reply = refusal(EINVAL, problem.what());
    }
    send_line(client, reply);
    close(client);
}

} // namespace zc::migrate
