/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_SIMULATION_H_INCLUDED
#define ZC_AGENT_SIMULATION_H_INCLUDED

#include <string>
#include <vector>

#include "invariants.h"

namespace zc::agent::sim {

/** Virtual nodes, network, jobs and time; real agents. */
class simulation {
  public:
    explicit simulation(options o);
    ~simulation();
    result run();

  private:
    enum class kind : std::uint8_t {
        deliver,
        wake,
        sample,
        restart,
        job_done,
        cut,
        heal,
        go,
        come,
        change,
        start,
        others_come,
    };
    struct event {
        nanos at;
        std::uint64_t order;
        kind what;
        std::uint32_t node;
        std::uint64_t extra;
        std::string bytes;
        bool operator<(const event &other) const
        {
            return at != other.at ? at > other.at : order > other.order;
        }
    };

    void build();
    void build_phases();
    void push(nanos at, kind what, std::uint32_t node, std::uint64_t extra = 0,
              std::string bytes = {});
    void handle(event &e);
    void boot(std::uint32_t n);
    void crash(std::uint32_t n);
    void sample(std::uint32_t n);
    void apply(std::uint32_t n, effects &&out);
    void transmit(std::uint32_t from, outbound &&o);
    bool dies(std::uint32_t n, bool protocol_step);
    void ask(std::uint32_t n, const msg::ask &a);
    void begin_move(std::uint32_t n, job &j, const msg::ask &a);
    void query(std::uint32_t n, const msg::query &q);
    void job_done(job_id id);
    void move_ranks(job_id id, job &j);
    void answer(std::uint32_t n, const msg::outcome &o);
    void schedule(std::uint32_t n);
    nanos delay(std::uint32_t a, std::uint32_t b, std::size_t bytes);

    const options o_;
    world world_;
    invariants invariants_;
    random_source random_;
    result result_;
    std::uint64_t order_ = 0;
    std::vector<event> queue_;
    bool cut_ = false;
};

} // namespace zc::agent::sim

#endif
