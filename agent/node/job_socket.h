/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_JOB_SOCKET_H_INCLUDED
#define ZC_AGENT_JOB_SOCKET_H_INCLUDED

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "message.h"

namespace zc::agent {

/** The way to a job. Outcomes come through take(), some time later. */
class mover {
  public:
    virtual ~mover() = default;
    virtual void ask(const msg::ask &wanted, const std::string &job_name) = 0;
    virtual void query(const msg::query &wanted) = 0;
    virtual std::vector<msg::outcome> take() = 0;
    /** Becomes readable when take() has something. */
    virtual int wake_fd() const = 0;
};

/**
 * By the control socket of libzcm, DIRECTORY/JOB.sock: one line of JSON there, one
 * back when the move has ended,
 *
 *   {"command":"move","via":"memory","moves":[{"rank":3,"host":"b"}],"epoch":7,"txn":"…"}
 *   {"ok":true,…} or {"ok":false,"code":16,"error":"…"}
 *
 * "epoch" asks the job to refuse if it has been reconfigured since; for a job that does
 * not look at it, its "status" is asked first. One move per job at a time is libzcm's
 * rule. A thread per move waits for its end.
 */
class job_socket final : public mover {
  public:
    /** Jobs are looked for in each of @directories. */
    job_socket(std::vector<std::string> directories, double timeout_s);
    job_socket(std::string directory, double timeout_s)
        : job_socket(std::vector{std::move(directory)}, timeout_s)
    {
    }
    ~job_socket() override;

    void ask(const msg::ask &wanted, const std::string &job_name) override;
    void query(const msg::query &wanted) override;
    std::vector<msg::outcome> take() override;
    int wake_fd() const override { return wake_; }
    bool reaches(const std::string &job_name) const;

  private:
    msg::outcome carry_out(const msg::ask &wanted, const std::string &job_name);
    std::string exchange(const std::string &job_name, const std::string &line, double timeout_s);
    void push(msg::outcome o);

    std::string path_of(const std::string &job_name) const;

    std::vector<std::string> directories_;
    double timeout_s_;
    int wake_ = -1;
    int stop_ = -1;
    std::mutex mutex_;
    std::vector<msg::outcome> done_;
    std::map<txn_id, msg::outcome> past_; /* running ones too */
    std::vector<txn_id> past_order_;
    std::map<txn_id, std::thread> threads_;
};

/** From libzcm's answer; for tests. */
void read_answer(const std::string &line, msg::outcome &out);

} // namespace zc::agent

#endif
