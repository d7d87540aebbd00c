/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <map>
#include <optional>
#include <string>

namespace zc::migrate {

/**
 * The process manager of a world of one process, which zcm-launch has started: the other end of
 * that process's PMI_FD, by the lines of PMI version 1 (process_manager.h). With it the program can
 * start processes and publish names; without it MPICH would wait for an mpiexec of its own for
 * ever.
 *
 *     MPI of the rank ──▶ what concerns its world     answered here
 *                    ├──▶ spawn, what has become
 *                    │    of it, published names      for the manager of zcm-launch, as they are
 *                    └──▶ abort                       for zcm-launch, which knows what ends with it
 */
class singleton_manager {
  public:
    /** Takes over @fd. */
    explicit singleton_manager(int fd) : fd_(fd) {}
    ~singleton_manager();
    singleton_manager(const singleton_manager &) = delete;
    singleton_manager &operator=(const singleton_manager &) = delete;

    int fd() const noexcept { return fd_; }
    bool is_closed() const noexcept { return closed_; }

    /** Answers what has come. Returns a request that is to be forwarded, whole; its answer is for
     * answer(), before anything else is read. Does not block. */
    std::optional<std::string> poll();
    void answer(const std::string &line);

    /** MPI_Abort() of the process: it waits to be ended, or to be told to end itself. */
    static bool is_abort(const std::string &request) { return request.starts_with("cmd=abort"); }
    void let_end() { answer("cmd="); }

  private:
    std::optional<std::string> take(const std::string &line);
    std::optional<std::string> take_command(const std::string &command);
    std::string reply_to(const std::string &command, const std::string &line);

    int fd_;
    bool closed_ = false;
    std::string read_;    /* not a whole line yet */
    std::string command_; /* lines of one command of a spawn, until its end has come */
    std::string request_; /* whole commands of a spawn, until the last one has come */
    std::map<std::string, std::string> values_;
};

} // namespace zc::migrate
