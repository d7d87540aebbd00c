/* SPDX-License-Identifier: BSD-3-Clause */
#include "stopped_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "error.h"

namespace zc::holder {
namespace {

using clock = std::chrono::steady_clock;
constexpr useconds_t kPause = 50;

bool has_ended(const std::filesystem::path &task)
{
    std::ifstream file(task / "stat");
    std::string text;
    std::getline(file, text, '\0');
    const std::size_t name_end = text.rfind(')');
    return name_end == std::string::npos || text.size() < name_end + 3 ||
           text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

/**
 * What one thread traces. It lets go of all when that thread ends, of those that have not stopped,
 * too: nothing else does that.
 */
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

    /** Returns whether there were any but those that have been asked. */
    bool ask_others()
    {
        bool others = false;
        for (const auto &task :
             std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
            const pid_t tid = std::stoi(task.path().filename());
            if (threads_.contains(tid) || has_ended(task.path()))
                continue;
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
        return others;
    }

    void await(clock::time_point until)
    {
        for (auto &[tid, found] : threads_) {
            while (!look_at(tid, found)) {
                if (clock::now() > until)
                    throw error(ETIMEDOUT, "thread " + std::to_string(tid) + " does not stop");
                usleep(kPause);
            }
        }
    }

  private:
    enum class state { ASKED, STOPPED, ENDED };
    struct thread {
        state now = state::ASKED;
        std::intptr_t signal = 0; /* with which it goes on: it was on its way to the thread */
    };

    /** Nothing is taken from the kernel: an end is the parent's, and a signal stays with the
     * thread, if this one ends. */
    static bool look_at(pid_t tid, thread &found)
    {
        siginfo_t said{};
        if (found.now != state::ASKED)
            return true;
        if (waitid(P_PID, static_cast<id_t>(tid), &said,
                   WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) {
            found.now = state::ENDED;
        } else if (said.si_pid == tid) {
            const bool stopped = said.si_code == CLD_TRAPPED || said.si_code == CLD_STOPPED;
            found.now = stopped ? state::STOPPED : state::ENDED;
            if (stopped && said.si_status >> 8 != PTRACE_EVENT_STOP)
                found.signal = said.si_status & 0x7f;
        }
        return found.now != state::ASKED;
    }

    pid_t pid_;
    std::map<pid_t, thread> threads_;
};

void stop_and_call(pid_t pid, const std::function<void()> &what, std::chrono::milliseconds patience)
{
    const auto until = clock::now() + patience;
    traced_threads threads(pid);
    while (threads.ask_others()) /* one that runs may make another one */
        threads.await(until);
    what();
}

} // namespace

void while_stopped(pid_t pid, const std::function<void()> &what, std::chrono::milliseconds patience)
{
    std::exception_ptr failure;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the owner's */
    try {
        std::thread([&] {
            try {
                stop_and_call(pid, what, patience);
            } catch (...) {
                failure = std::current_exception();
            }
        }).join();
    } catch (...) {
        failure = std::current_exception();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failure)
        std::rethrow_exception(failure);
}

} // namespace zc::holder
