/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zc::migrate {

/** What a dispatcher can do; zcm-run does it, and tests write it down. */
class dispatch_actions {
  public:
    virtual ~dispatch_actions() = default;
    virtual void start_agent(std::size_t agent, const nlohmann::json &order) = 0;
    /** One that has been started. */
    virtual void tell_agent(std::size_t agent, const nlohmann::json &what) = 0;
    /** Its input ends, and so should it. */
    virtual void release_agent(std::size_t agent) = 0;
    /** Of its launcher. */
    virtual void kill_agent(std::size_t agent, int signal) = 0;
    /** @profiles: where its ranks tell agents of themselves; empty: in the agents' directory. */
    virtual void start_job(const std::string &profiles) = 0;
    virtual void signal_job(int signal) = 0;
    virtual void say(const std::string &text) = 0;
};

/**
 * What zcm-run --agents decides: a zcmd for each host, then the job, and nothing is left.
 *
 *            the first is ready,        each is ready, and
 *            and has made the key       knows all others
 *   first ──────────────────▶ others ──────────────────▶ running
 *     │                         │                           │ the job has ended, however
 *     │ an agent has ended, time is up, or a signal         ▼
 *     └─────────────────────────┴───────────────────────▶ ending ──────────▶ over
 *                                                            all have ended
 *
 * If it looks for agents, each host is asked first whether one runs there already. Those that do
 * are handed to the job, too, and the others join them by their key. What was started for one that
 * was found only watches it, so that the end of the job is not the end of that agent.
 *
 * An agent that ends while the job runs costs what it would have done, and nothing else. Those that
 * do not end with their input are ended by signals. Signals that come while the job runs are
 * the job's.
 */
class dispatch {
  public:
    /**
     * @order: what is the same for all agents
     * @wait_s: until the job can start
     * @finds: look for agents that run already
     */
    dispatch(std::vector<std::string> hosts, nlohmann::json order, double wait_s, bool finds,
             dispatch_actions &by);
    dispatch(const dispatch &) = delete;
    dispatch &operator=(const dispatch &) = delete;

    void begin(double now);
    /** A line of its standard output, where its launcher may print, too. */
    void agent_prints(std::size_t agent, const std::string &line, double now);
    void agent_says(std::size_t agent, const nlohmann::json &what, double now);
    /** @how: "has ended with exit status 1" */
    void agent_ended(std::size_t agent, const std::string &how, double now);
    /** @status: for the shell. */
    void job_ended(int status, double now);
    void signalled(int signal, double now);
    void tick(double now);

    bool is_over() const noexcept { return at_ == phase::over; }
    /** The job's; 1 if it was not started, 128 and the signal if that is why. */
    int status() const noexcept { return status_; }

    static constexpr std::size_t kAtOnce = 32; /* launchers that start an agent */
    static constexpr double kPolite = 10;      /* seconds to end with the input, then by SIGTERM */
    static constexpr double kFirm = 3;         /* and then by SIGKILL */

  private:
    enum class phase { looking, first, others, running, ending, over };
    enum class state { waiting, asked, none_there, starting, ready, together, ended };

    std::size_t count(state which) const;
    bool is_before_job() const noexcept { return at_ < phase::running; }
    void look_on_some();
    void note_search(std::size_t agent, const nlohmann::json &what, double now);
    void begin_after_search();
    void introduce_found();
    void start_some();
    void end(int status, double now);
    void end_if_none_is_left();

    std::vector<std::string> hosts_;
    nlohmann::json order_;
    double wait_s_;
    dispatch_actions &by_;
    bool finds_;
    phase at_ = phase::first;
    std::vector<state> states_;
    std::vector<bool> is_found_;
    std::vector<std::string> addresses_;
    bool has_introduced_ = false;
    std::string profiles_; /* of all ranks, if an agent was found */
    std::string socket_;   /* of an agent, for zcctl; the same path on all hosts */
    double since_ = 0;     /* of the start, later of the end */
    int pressed_ = 0;      /* signals that have been sent to agents that do not end */
    int status_ = 1;
};

} // namespace zc::migrate
