/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_QUIET_THREAD_H_INCLUDED
#define ZC_BASE_QUIET_THREAD_H_INCLUDED

#include <csignal>
#include <thread>
#include <utility>

namespace zc {

/** The calling thread takes no signals of the process where this is in sight, nor do threads that
 *  it makes then; those of its own faults it takes. */
class blocked_signals {
  public:
    blocked_signals() noexcept
    {
        sigset_t all;
        sigfillset(&all);
        /* What a thread does wrong is its own: blocked, it would end the process past a handler
         * that the program has for it. */
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&all, own);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~blocked_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    blocked_signals(const blocked_signals &) = delete;
    blocked_signals &operator=(const blocked_signals &) = delete;

  private:
    sigset_t before_{};
};

/**
 * A thread that does @work and takes no signals: those are for the threads of the program. The
 * kernel gives a signal that is meant for a process to any thread that does not block it, and a
 * handler of the program's may use what only its own threads have, or interrupt a system call that
 * nobody makes again. Throws what std::thread throws.
 */
template <typename function>
std::thread quiet_thread(function &&work)
{
    const blocked_signals meanwhile;
    return std::thread(std::forward<function>(work));
}

} // namespace zc

#endif
