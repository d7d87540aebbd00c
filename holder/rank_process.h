/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_RANK_PROCESS_H_INCLUDED
#define ZC_HOLDER_RANK_PROCESS_H_INCLUDED

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"

namespace zc::holder {

/**
 * The rank, a child of this process: in a session of its own, so that CRIU finds a whole one, and
 * killed by the kernel when this process ends. It has the descriptors that it is given and no
 * others, each with the number that it has here.
 */
class rank_process {
  public:
    /**
     * Forks and executes @words. @kept: descriptors beside 0, 1 and 2. @mask: of the signals that
     * the program finds blocked. Throws error, with the errno of execvp(3) if the program cannot
     * be executed.
     */
    rank_process(const std::vector<std::string> &words, const std::vector<int> &kept,
                 const sigset_t &mask);
    /** One that is there: a child of this process that something else has made. */
    explicit rank_process(pid_t pid);

    pid_t pid() const noexcept { return pid_; }
    /** As the sender of @signal meant it: a stop stops it, though its process group is orphaned. */
    void pass_on(int signal) const;
    /** The status of wait(2), once it has ended; it is called when a child has. */
    std::optional<int> reap();
    /** Are all its threads stopped, as by SIGSTOP? */
    bool is_stopped() const;
    /** Has it ended, and been reaped? */
    bool has_ended() const noexcept { return ended_; }
    /** Ends it, whatever it does, and reaps it. */
    void kill_and_reap();

  private:
    pid_t pid_ = -1;
    bool ended_ = false;
};

/** For execvp(3): as long as @words are there. */
std::vector<char *> arguments_of(const std::vector<std::string> &words);

/** Descriptors from 3 on are closed, but @kept: a launcher's own, and those of other ranks. */
void close_others(std::vector<int> kept);

} // namespace zc::holder

#endif
