/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_JOB_SOCKET_H_INCLUDED
#define ZC_AGENT_JOB_SOCKET_H_INCLUDED

#include <string>
#include <vector>

#include "background_mover.h"

namespace zc::agent {

/**
 * By the control socket of libzcm, DIRECTORY/JOB.sock: one line of JSON there, one
 * back when the move has ended,
 *
 *   {"command":"move","via":"memory","moves":[{"rank":3,"host":"b"}],"epoch":7,"txn":"…"}
 *   {"ok":true,…} or {"ok":false,"code":16,"error":"…"}
 *
 * "epoch" asks the job to refuse if it has been reconfigured since; for a job that does
 * not look at it, its "status" is asked first. One move per job at a time is libzcm's
 * rule.
 */
class job_socket final : public background_mover {
  public:
    /** Jobs are looked for in each of @directories. */
    job_socket(std::vector<std::string> directories, double timeout_s);
    job_socket(std::string directory, double timeout_s)
        : job_socket(std::vector{std::move(directory)}, timeout_s)
    {
    }
    ~job_socket() override;

    void ask(const msg::ask &wanted, const std::string &job_name);
    bool reaches(const std::string &job_name) const;

  private:
    msg::outcome carry_out(const msg::ask &wanted, const std::string &job_name);
    std::string exchange(const std::string &job_name, const std::string &line, double timeout_s);
    std::string path_of(const std::string &job_name) const;

    std::vector<std::string> directories_;
    double timeout_s_;
};

/** From libzcm's answer; for tests. */
void read_answer(const std::string &line, msg::outcome &out);

} // namespace zc::agent

#endif
