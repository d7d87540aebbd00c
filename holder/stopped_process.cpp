/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopped_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor.h"
#include "error.h"

namespace zc::holder {
namespace {

constexpr useconds_t kPause = 50;
constexpr int kLetGoMs = 1000; /* for what takes less than one */

/** Throws error where that cannot be told: a thread that is passed over runs on. */
bool has_ended(const std::filesystem::path &task)
{
    const descriptor file{open((task / "stat").c_str(), O_RDONLY | O_CLOEXEC)};
    std::array<char, 512> bytes;
    const ssize_t got = file.fd < 0 ? -1 : read(file.fd, bytes.data(), bytes.size());
    if (got < 0 && (errno == ENOENT || errno == ESRCH))
        return true;
    if (got < 0)
        throw_errno(errno, task.string());
    const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string_view::npos || text.size() < name_end + 3)
        throw error(EIO, task.string());
    return text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

/** How many threads the kernel counts, those included that have ended and are not reaped. */
std::size_t number_of_threads(pid_t pid)
{
    constexpr std::string_view name = "Threads:";
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(name))
            return std::stoul(line.substr(name.size()));
    }
    throw error(ESRCH, "its threads cannot be counted");
}

/** What this process traces. When the process ends the kernel lets go of those, too, that have not
 * stopped: nothing else does that. */
class traced_threads {
  public:
    explicit traced_threads(pid_t pid) : pid_(pid) {}
    ~traced_threads()
    {
        for (const auto &[tid, found] : threads_) {
            if (found.now == state::STOPPED)
                ptrace(PTRACE_DETACH, tid, nullptr, found.signal);
        }
    }
    traced_threads(const traced_threads &) = delete;
    traced_threads &operator=(const traced_threads &) = delete;

    /** Returns whether there were any but those that have been asked, or may be: the kernel's list
     * ends where a thread has been reaped that it was just at (next_tid() in fs/proc/base.c). */
    bool ask_others()
    {
        bool others = false;
        std::size_t ended = 0;
        for (const auto &task :
             std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
            const pid_t tid = std::stoi(task.path().filename());
            const auto known = threads_.find(tid);
            if (known != threads_.end() && known->second.now != state::ENDED)
                continue;
            if (has_ended(task.path())) {
                ended++;
                continue;
            }
            if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0 ||
                ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) {
                const int reason = errno;
                if (!has_ended(task.path()))
                    throw_errno(reason, "thread " + std::to_string(tid) + " cannot be stopped");
            } else {
                threads_[tid] = {};
                others = true;
            }
        }
        return others || stopped() + ended != number_of_threads(pid_);
    }

    /** Until all that have been asked have stopped or ended. */
    void await()
    {
        for (auto &[tid, found] : threads_) {
            while (!look_at(tid, found))
                usleep(kPause);
        }
    }

  private:
    enum class state { ASKED, STOPPED, ENDED };
    struct thread {
        state now = state::ASKED;
        std::intptr_t signal = 0; /* with which it goes on: it was on its way to the thread */
    };

    std::size_t stopped() const
    {
        return static_cast<std::size_t>(
            std::count_if(threads_.begin(), threads_.end(),
                          [](const auto &each) { return each.second.now == state::STOPPED; }));
    }

    /** The process's end is its parent's, so it is not taken from the kernel; nor is a stop, with
     * which its signal would be (wait_task_stopped() in kernel/exit.c takes it whatever the options
     * are). The end of another thread is taken: one that executes another program waits until
     * nothing of the others is left. */
    bool look_at(pid_t tid, thread &found) const
    {
        siginfo_t said{};
        if (found.now != state::ASKED)
            return true;
        const auto id = static_cast<id_t>(tid);
        if (waitid(P_PID, id, &said, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) {
            found.now = state::ENDED;
        } else if (said.si_pid == tid) {
            const bool stopped = said.si_code == CLD_TRAPPED || said.si_code == CLD_STOPPED;
            found.now = stopped ? state::STOPPED : state::ENDED;
            if (stopped && said.si_status >> 8 != PTRACE_EVENT_STOP)
                found.signal = said.si_status & 0x7f;
            if (!stopped && tid != pid_)
                waitid(P_PID, id, &said, WEXITED | WNOHANG | __WALL);
        }
        return found.now != state::ASKED;
    }

    pid_t pid_;
    std::map<pid_t, thread> threads_;
};

/** The child: says 0 when all have stopped, or the errno of what went wrong, and lets go when it is
 * told to. */
[[noreturn]] void trace(pid_t pid, pid_t parent, int socket)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int said = 0;
    if (getppid() == parent) {
        traced_threads threads(pid);
        try {
            while (threads.ask_others()) /* one that runs may make another one */
                threads.await();
        } catch (const error &problem) {
            said = problem.code();
        } catch (const std::exception &) {
            said = ESRCH; /* its folder in /proc has gone */
        }
        if (send(socket, &said, sizeof said, MSG_NOSIGNAL) > 0)
            recv(socket, &said, sizeof said, 0);
    }
    _exit(0); /* the threads have been let go of */
}

/** It is killed where this ends, if it has not ended by then. */
class tracer {
  public:
    explicit tracer(pid_t pid)
    {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            throw_errno(errno, "socketpair");
        socket_ = descriptor{pair[0]};
        const descriptor theirs{pair[1]};
        const pid_t parent = getpid();
        child_ = fork();
        if (child_ < 0)
            throw_errno(errno, "fork");
        if (child_ == 0)
            trace(pid, parent, theirs.fd);
    }
    ~tracer()
    {
        const int over = 0;
        pollfd ended{socket_.fd, POLLIN, 0};
        if (!stopped_ || send(socket_.fd, &over, sizeof over, MSG_NOSIGNAL) < 0 ||
            poll(&ended, 1, kLetGoMs) != 1)
            kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    tracer(const tracer &) = delete;
    tracer &operator=(const tracer &) = delete;

    void await(std::chrono::milliseconds patience)
    {
        pollfd ready{socket_.fd, POLLIN, 0};
        int said = 0;
        if (poll(&ready, 1, static_cast<int>(patience.count())) != 1)
            throw error(ETIMEDOUT, "not all of its threads stop");
        if (recv(socket_.fd, &said, sizeof said, 0) != sizeof said)
            throw error(ECHILD, "what was to stop it has ended");
        if (said != 0)
            throw_errno(said, "its threads cannot be stopped");
        stopped_ = true;
    }

  private:
    descriptor socket_;
    pid_t child_;
    bool stopped_ = false;
};

} // namespace

void while_stopped(pid_t pid, const std::function<void()> &what, std::chrono::milliseconds patience)
{
    tracer one(pid);
    one.await(patience);
    what();
}

} // namespace zc::holder
