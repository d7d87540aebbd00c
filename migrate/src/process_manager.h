/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zc::migrate {

/**
 * The process manager at the other end of PMI_FD, which has started this process, or one whose
 * descriptor it was: Hydra, by the lines of PMI version 1 (MPICH, "PMI: A Scalable Parallel
 * Process-Management Interface", its wire protocol as in src/pmi/simple). It starts any program,
 * and is not asked for more than that here, so that the program need not use MPI.
 *
 * MPI must not be asking it something meanwhile.
 */
class process_manager {
  public:
    /** By the environment; fd() is -1 if there is none, or it is another's, such as Slurm's srun,
     * which starts programs that use MPI only. */
    static process_manager of_this_process();
    explicit process_manager(int fd) : fd_(fd) {}

    int fd() const noexcept { return fd_; }

    /** Ask it to start @program on @host, which can read_secret(). "" or what is wrong. */
    std::string ask(const std::string &host, const std::string &program, const std::string &secret);
    /** Its answer: true, with @problem ("" if it does it), once that has come. Does not block. */
    bool answer(std::string &problem);
    /** Sends it a request of another process, whole lines. "" or what is wrong. */
    std::string forward(const std::string &request) const;
    /** The line that answers it, once that has come; nothing if it has not, and "" if the process
     * manager is gone. Does not block. */
    std::optional<std::string> reply();
    /** What the one that had this process started has given it. Throws error. */
    std::string read_secret(double timeout_s);

  private:
    std::string line(double timeout_s);
    bool read_more();

    int fd_;
    std::string read_;
};

/** The value of @key in a line "cmd=... key=value ..."; "" if it is not there. */
std::string value_in(std::string_view line, std::string_view key);

} // namespace zc::migrate
