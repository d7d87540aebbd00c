/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_manager.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ancestors.h"
#include "error.h"

namespace zc::migrate {

namespace {

constexpr const char *kSecret = "zcm";

bool fits(const std::string &value)
{
    return value.find_first_of("\n=") == std::string::npos && value.size() < 1000;
}

std::string write_all(int fd, const std::string &text)
{
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t sent = write(fd, text.data() + at, text.size() - at);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return std::string("the process manager is gone: ") + std::strerror(errno);
        at += static_cast<std::size_t>(sent);
    }
    return "";
}

} // namespace

std::string value_in(std::string_view line, std::string_view key)
{
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        const std::string_view word = line.substr(at, end - at);
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return std::string(word.substr(key.size() + 1));
        at = end + 1;
    }
    return "";
}

process_manager process_manager::of_this_process()
{
    const char *fd = std::getenv("PMI_FD");
    const bool is_there = fd && *fd && !hydra_proxy().empty();
    return process_manager(is_there ? static_cast<int>(std::strtol(fd, nullptr, 10)) : -1);
}

std::string process_manager::ask(const std::string &host, const std::string &program,
                                 const std::string &secret)
{
    if (fd_ < 0)
        return "there is no process manager";
    if (!fits(host) || !fits(program) || !fits(secret))
        return "the process manager cannot be told " + program + " on " + host;
    return write_all(fd_, std::string("mcmd=spawn\nnprocs=1\nexecname=") + program +
                              "\ntotspawns=1\nspawnssofar=1\nargcnt=0\npreput_num=1\n"
                              "preput_key_0=" +
                              kSecret + "\npreput_val_0=" + secret +
                              "\ninfo_num=1\ninfo_key_0=host\ninfo_val_0=" + host + "\nendcmd\n");
}

bool process_manager::read_more()
{
    std::array<char, 1024> buffer;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0)
        read_.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool process_manager::answer(std::string &problem)
{
    const bool is_there = read_more();
    for (std::size_t end; (end = read_.find('\n')) != std::string::npos;) {
        const std::string one = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (value_in(one, "cmd") != "spawn_result")
            continue;
        problem = value_in(one, "rc") == "0" ? "" : "the process manager says: " + one;
        return true;
    }
    if (!is_there)
        problem = "the process manager is gone";
    return !is_there;
}

std::string process_manager::forward(const std::string &request) const
{
    return fd_ < 0 ? "there is no process manager" : write_all(fd_, request);
}

std::optional<std::string> process_manager::reply()
{
    const bool is_there = read_more();
    for (std::size_t end; (end = read_.find('\n')) != std::string::npos;) {
        const std::string one = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (!one.empty())
            return one;
    }
    return is_there ? std::nullopt : std::optional<std::string>("");
}

std::string process_manager::line(double timeout_s)
{
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
    for (std::size_t end; (end = read_.find('\n')) == std::string::npos;) {
        pollfd event{fd_, POLLIN, 0};
        if (std::chrono::steady_clock::now() > deadline)
            throw error(ETIMEDOUT, "the process manager does not answer");
        if (poll(&event, 1, 100) > 0 && !read_more())
            throw error(EPIPE, "the process manager is gone");
    }
    const std::size_t end = read_.find('\n');
    const std::string first = read_.substr(0, end);
    read_.erase(0, end + 1);
    return first.empty() ? line(timeout_s) : first;
}

std::string process_manager::read_secret(double timeout_s)
{
    if (std::string problem = write_all(fd_, "cmd=get_my_kvsname\n"); !problem.empty())
        throw error(EPIPE, problem);
    const std::string name = value_in(line(timeout_s), "kvsname");
    if (std::string problem = write_all(fd_, "cmd=get kvsname=" + name + " key=" + kSecret + "\n");
        !problem.empty())
        throw error(EPIPE, problem);
    const std::string said = line(timeout_s);
    if (value_in(said, "rc") != "0")
        throw error(ENOENT, "the process manager says: " + said);
    return value_in(said, "value");
}

} // namespace zc::migrate
