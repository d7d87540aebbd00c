/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_DAEMON_H_INCLUDED
#define ZC_AGENT_DAEMON_H_INCLUDED

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>

#include "agent.h"
#include "config.h"
#include "held_moves.h"
#include "job_socket.h"
#include "kernel_load.h"
#include "pages.h"
#include "processor_speed.h"
#include "rank_files.h"
#include "transport.h"
#include "web.h"

namespace zc::agent {

/** The agent of one node: its logic, and all that touches the world, in one loop. */
class node_daemon {
  public:
    /** Throws what keys, transport and web throw. */
    node_daemon(const config &c, const key_pair &keys);
    ~node_daemon();

    /** Where others reach it. */
    const std::string &address() const { return config_.advertise; }
    /** It also leaves when @fd ends, and tells @watch how many others are alive, now and then. */
    void live_by(int fd, std::function<void(std::size_t)> watch)
    {
        lifeline_ = fd;
        watch_ = std::move(watch);
    }
    /** Until SIGTERM or SIGINT (then it leaves politely) or a POST to /leave. */
    void run();

  private:
    void sample();
    void watch_network();
    void watch_others();
    void watch_ranks();
    void watch_lifeline();
    void read_ranks(std::uint64_t now_ns);
    void tell_job(const std::vector<const rank_reading *> &ranks);
    void ask_job(const msg::ask &wanted, const job_view &job);
    held_errand errand_of(const rank_key &rank) const;
    msg::outcome refused(const msg::ask &wanted, const std::string &why) const;
    std::string holder_at(const std::string &address) const;
    node_id node_of(const std::string &host) const;
    void apply(effects &&out);
    void send(outbound &&o);
    void drain_inbox();
    void drain_mover();
    void obey();
    void note(const record &r);
    void save();
    void write_record(const std::string &line);
    nanos now() const;
    double wall() const;

    config config_;
    transport transport_;
    kernel_load load_;
    rank_files files_;
    processor_speed speed_;
    held_processes held_;
    job_socket mover_;
    held_moves holders_;
    int wake_ = -1;
    int signals_ = -1;
    int lifeline_ = -1;
    std::function<void(std::size_t)> watch_;
    std::size_t watched_ = 0; /* agents alive, as of the last time */
    std::unique_ptr<agent> agent_;
    std::unique_ptr<admission> door_;
    outward outward_;
    std::mutex commands_mutex_;
    std::vector<std::string> commands_;
    std::unique_ptr<web> web_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> record_{nullptr, std::fclose};
    std::uint64_t sequence_ = 0;
    nanos next_sample_ = 0;
    nanos next_look_ = 0; /* at the run queue */
    bool draining_ = false;
    bool leaving_ = false;
    bool save_failed_ = false;
    nanos began_ = 0;
    bool said_full_ = false, said_alone_ = false, said_untimed_ = false, said_missed_ = false;
};

} // namespace zc::agent

#endif
