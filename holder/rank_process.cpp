/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_process.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

namespace zc::holder {
namespace {

/** In the child. Returns only if it fails, with errno. */
void execute(pid_t parent, const std::vector<std::string> &words, const std::vector<int> &kept,
             const sigset_t &mask)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return;
    if (getppid() != parent) /* it has ended already */
        _exit(EXIT_FAILURE);
    setsid(); /* fails only where this is a leader already */
    for (int fd : kept)
        fcntl(fd, F_SETFD, 0);
    const std::vector<char *> arguments = arguments_of(words);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execvp(arguments[0], arguments.data());
}

/** Does /proc/PID/status have the bit of @signal in @field? */
bool has_signal(pid_t pid, const std::string &field, int signal)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field))
            return (std::strtoull(line.c_str() + field.size(), nullptr, 16) >> (signal - 1)) & 1;
    }
    return false;
}

} // namespace

rank_process::rank_process(const std::vector<std::string> &words, const std::vector<int> &kept,
                           const sigset_t &mask)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw_errno(errno, "pipe");
    const descriptor ours{ends[0]};
    descriptor theirs{ends[1]};
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0)
        throw_errno(errno, "fork");
    if (pid_ == 0) {
        execute(parent, words, kept, mask);
        const int why = errno;
        /* It fits, and its end is read as success: then the parent sees the status 127. */
        const ssize_t written = write(theirs.fd, &why, sizeof why);
        _exit(written == sizeof why ? 127 : 126);
    }
    theirs = descriptor{};
    int why = 0;
    ssize_t got;
    while ((got = read(ours.fd, &why, sizeof why)) < 0 && errno == EINTR)
        continue;
    if (got > 0) {
        kill_and_reap();
        throw_errno(why, words.at(0));
    }
}

rank_process::rank_process(pid_t pid) : pid_(pid) {}

void rank_process::pass_on(int signal) const
{
    if (ended_)
        return;
    kill(pid_, signal);
    /* The kernel keeps no terminal's stop for a group that is orphaned, as this one is. */
    const bool stops = signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    if (stops && !has_signal(pid_, "SigCgt:", signal) && !has_signal(pid_, "SigIgn:", signal))
        kill(pid_, SIGSTOP);
}

bool rank_process::is_stopped() const
{
    std::error_code gone;
    std::size_t stopped = 0;
    for (const auto &task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task", gone)) {
        std::ifstream file(task.path() / "stat");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const std::size_t name_end = text.rfind(')'); /* then a blank, and the state */
        if (name_end == std::string::npos || text.compare(name_end + 1, 2, " T") != 0)
            return false;
        stopped++;
    }
    return stopped > 0;
}

std::optional<int> rank_process::reap()
{
    int status = 0;
    if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_)
        return {};
    ended_ = true;
    return status;
}

void rank_process::kill_and_reap()
{
    if (ended_)
        return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR)
        continue;
    ended_ = true;
}

std::vector<char *> arguments_of(const std::vector<std::string> &words)
{
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    return arguments;
}

void close_others(std::vector<int> kept)
{
    std::sort(kept.begin(), kept.end());
    unsigned from = 3;
    for (int fd : kept) {
        if (fd < 3)
            continue;
        if (static_cast<unsigned>(fd) > from)
            close_range(from, static_cast<unsigned>(fd) - 1, 0);
        from = static_cast<unsigned>(fd) + 1;
    }
    close_range(from, ~0u, 0);
}

} // namespace zc::holder
