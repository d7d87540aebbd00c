/* SPDX-License-Identifier: BSD-3-Clause */
#include "singleton_manager.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "process_manager.h"

namespace zc::migrate {

namespace {

/** The value is the rest of the line: it may have blanks and equals signs. */
std::string rest_after(const std::string &line, const std::string &key)
{
    const std::size_t at = line.find(" " + key + "=");
    return at == std::string::npos ? "" : line.substr(at + key.size() + 2);
}

/** The number in a line "@key=..." of a command of several lines; 1 if it has none. */
long number_in(const std::string &command, const std::string &key)
{
    const std::size_t at = command.find("\n" + key + "=");
    return at == std::string::npos
               ? 1
               : std::strtol(command.c_str() + at + key.size() + 2, nullptr, 10);
}

} // namespace

singleton_manager::~singleton_manager()
{
    close(fd_);
}

std::optional<std::string> singleton_manager::poll()
{
    std::array<char, 4096> buffer;
    ssize_t got;
    while ((got = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
        read_.append(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        closed_ = true;
    for (std::size_t end; (end = read_.find('\n')) != std::string::npos;) {
        const std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (auto request = take(line))
            return request;
    }
    return std::nullopt;
}

std::optional<std::string> singleton_manager::take(const std::string &line)
{
    if (!command_.empty() || line.starts_with("mcmd=")) {
        command_ += line + "\n";
        return line == "endcmd" ? take_command(std::exchange(command_, "")) : std::nullopt;
    }
    const std::string command = value_in(line, "cmd");
    if (command == "publish_name" || command == "lookup_name" || command == "unpublish_name" ||
        command == "spawn_state" || is_abort(line))
        return line + "\n";
    if (const std::string reply = reply_to(command, line); !reply.empty())
        answer(reply);
    return std::nullopt;
}

/** A spawn of several commands has one answer, behind the last of them. What has come before a
 * first one is of a spawn that its process has given up. */
std::optional<std::string> singleton_manager::take_command(const std::string &command)
{
    const long number = number_in(command, "spawnssofar");
    if (number == 1)
        request_.clear();
    request_ += command;
    if (number < number_in(command, "totspawns"))
        return std::nullopt;
    return std::exchange(request_, "");
}

std::string singleton_manager::reply_to(const std::string &command, const std::string &line)
{
    if (command == "init")
        return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (command == "get_maxes")
        return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024";
    if (command == "get_appnum")
        return "cmd=appnum appnum=0";
    if (command == "get_universe_size")
        return "cmd=universe_size size=1";
    if (command == "get_my_kvsname")
        return "cmd=my_kvsname kvsname=singleton";
    if (command == "barrier_in")
        return "cmd=barrier_out";
    if (command == "finalize")
        return "cmd=finalize_ack";
    if (command == "put") {
        values_[value_in(line, "key")] = rest_after(line, "value");
        return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get") {
        const auto at = values_.find(value_in(line, "key"));
        return at == values_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                                   : "cmd=get_result rc=0 msg=success value=" + at->second;
    }
    return "";
}

void singleton_manager::answer(const std::string &line)
{
    const std::string text = line + "\n";
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t sent = send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) {
            closed_ = true;
            return;
        }
        at += static_cast<std::size_t>(sent);
    }
}

} // namespace zc::migrate
