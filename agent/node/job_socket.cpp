/* SPDX-License-Identifier: BSD-3-Clause */
#include "job_socket.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "descriptor.h"

namespace zc::agent {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestAnswer = 1 << 20;
constexpr std::array kPhaseKeys = {"negotiation", "checkpoint", "spawn",
                                   "transfer",    "restore",    "rebuild"};
static_assert(kPhaseKeys.size() == kPhases);

float phase(const json &phases, const char *name)
{
    auto at = phases.find(name);
    if (at == phases.end())
        at = phases.find(std::string(name) + "_ms");
    double ms = at != phases.end() && at->is_number() ? at->get<double>() : 0;
    return std::isfinite(ms) && ms > 0 && ms < 1e12 ? static_cast<float>(ms) : 0;
}

/** 0: not told. libzcm tells how many moves there have been; the profile's epoch is one more. */
std::uint64_t epoch_of(const json &status)
{
    if (!status.is_object())
        return 0;
    if (auto at = status.find("epoch"); at != status.end() && at->is_number_unsigned())
        return at->get<std::uint64_t>();
    auto at = status.find("moves");
    return at != status.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() + 1 : 0;
}

bool path_is_plain(const std::string &name)
{
    return !name.empty() && name.find('/') == std::string::npos && name[0] != '.';
}

} // namespace

void read_answer(const std::string &line, msg::outcome &out)
{
    json answer = json::parse(line, nullptr, false);
    if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) {
        out.what = msg::verdict::failed;
        out.reason = "the job's answer makes no sense: " + printable(line.substr(0, 80));
        return;
    }
    auto text = [&](const char *key) {
        auto at = answer.find(key);
        return at != answer.end() && at->is_string() ? printable(at->get<std::string>())
                                                     : std::string();
    };
    auto whole = [&](const char *key) -> std::uint64_t {
        auto at = answer.find(key);
        return at != answer.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
    };
    out.reason = text("error");
    out.epoch = whole("epoch");
    out.bytes = whole("bytes");
    if (auto at = answer.find("bytes"); at != answer.end() && at->is_object())
        out.bytes = at->value("image", json()).is_number_unsigned()
                        ? at->at("image").get<std::uint64_t>()
                        : 0;
    for (const char *key : {"phases", "phases_ms"}) {
        auto at = answer.find(key);
        if (at != answer.end() && at->is_object()) {
            for (std::size_t i = 0; i < kPhases; i++)
                out.phase_ms[i] = phase(*at, kPhaseKeys[i]);
        }
    }
    if (answer["ok"].get<bool>()) {
        out.what = msg::verdict::moved;
        return;
    }
    int code = static_cast<int>(std::abs(answer.value("code", 0)));
    switch (code) {
    case EBUSY:
    case EINVAL:
    case EPERM:
    case ESHUTDOWN:
    case ESTALE:
    case ENOTSUP:
        out.what = msg::verdict::refused;
        break;
    case ETIMEDOUT:
        out.what = msg::verdict::timed_out;
        break;
    default:
        out.what = msg::verdict::failed;
    }
}

job_socket::job_socket(std::vector<std::string> directories, double timeout_s)
    : directories_(std::move(directories)), timeout_s_(timeout_s)
{
}

job_socket::~job_socket()
{
    end();
}

/** Its socket, "" if there is none. */
std::string job_socket::path_of(const std::string &job_name) const
{
    if (!path_is_plain(job_name))
        return "";
    for (const std::string &directory : directories_) {
        const std::string path = directory + "/" + job_name + ".sock";
        struct stat s;
        if (lstat(path.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) && s.st_uid == geteuid())
            return path;
    }
    return "";
}

bool job_socket::reaches(const std::string &job_name) const
{
    return !path_of(job_name).empty();
}

void job_socket::ask(const msg::ask &wanted, const std::string &job_name)
{
    begin(wanted, [this, wanted, job_name] { return carry_out(wanted, job_name); });
}

/** Throws runtime_error with what went wrong; "timeout" if it was time. */
std::string job_socket::exchange(const std::string &job_name, const std::string &line,
                                 double timeout_s)
{
    if (!path_is_plain(job_name))
        throw std::runtime_error("not the name of a job");
    std::string path = path_of(job_name);
    if (path.empty())
        path = directories_[0] + "/" + job_name + ".sock"; /* what is wrong with it is said below */
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        throw std::runtime_error("path of the job's socket too long");
    path.copy(address.sun_path, path.size());
    descriptor s{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (s.fd < 0 || connect(s.fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
        throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(s.fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid())
        throw std::runtime_error(path + " belongs to another user's process");
    std::string text = line + "\n";
    if (send(s.fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
    std::string reply;
    while (reply.find('\n') == std::string::npos) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            throw std::runtime_error("timeout");
        std::array<pollfd, 2> fds = {{{s.fd, POLLIN, 0}, {stop_fd(), POLLIN, 0}}};
        int ready = poll(fds.data(), fds.size(),
                         static_cast<int>(std::min<std::int64_t>(left.count(), 60000)));
        if (ready > 0 && fds[1].revents != 0)
            throw std::runtime_error("the agent is ending");
        if (ready <= 0 || fds[0].revents == 0)
            continue;
        std::array<char, 4096> buffer;
        ssize_t got = recv(s.fd, buffer.data(), buffer.size(), 0);
        if (got <= 0 || reply.size() > kLongestAnswer)
            throw std::runtime_error("the job went away without an answer");
        reply.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return reply.substr(0, reply.find('\n'));
}

msg::outcome job_socket::carry_out(const msg::ask &wanted, const std::string &job_name)
{
    msg::outcome o{wanted.txn, wanted.job, msg::verdict::refused, 0, 0, {}, ""};
    bool sent = false;
    try {
        json status =
            json::parse(exchange(job_name, R"({"command":"status"})", 10), nullptr, false);
        o.epoch = epoch_of(status);
        if (o.epoch != 0 && o.epoch != wanted.epoch) {
            o.reason = "the job has been reconfigured since";
            return o;
        }
        json moves = json::array();
        for (rank_id rank : wanted.ranks)
            moves.push_back({{"rank", rank}, {"host", wanted.host}});
        json request = {{"command", "move"},
                        {"via", "memory"},
                        {"moves", moves},
                        {"epoch", wanted.epoch},
                        {"txn", fmt::format("{:x}-{:x}", wanted.txn.decider, wanted.txn.number)}};
        sent = true;
        read_answer(exchange(job_name, request.dump(), timeout_s_), o);
    } catch (const std::exception &e) {
        std::string what = e.what();
        o.what = what == "timeout" ? msg::verdict::timed_out
                 : sent            ? msg::verdict::failed
                                   : msg::verdict::refused;
        o.reason = what == "timeout" ? fmt::format("no answer from the job in {:.0f} s: a rank may "
                                                   "not have reached a safe point",
                                                   timeout_s_)
                                     : printable(what);
    }
    return o;
}

} // namespace zc::agent
