/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PROCESSOR_SPEED_H_INCLUDED
#define ZC_AGENT_PROCESSOR_SPEED_H_INCLUDED

#include <deque>
#include <functional>

#include "basics.h"

namespace zc::agent {

/**
 * How fast a processor of this node is: the rate of a fixed calculation, a stencil over an array
 * that fits into the first cache. It is taken by the processor time of this thread, so that neither
 * other threads nor quotas of cgroups matter, which are load and number of processors; the fastest
 * of many short runs, as what shares a core or a cache slows some of them. What shares a core does
 * so for a tenth of a second and more, so the runs are spread over time.
 *
 * The same program on all nodes, so the ratio of two values is that of their speeds. About 1 is a
 * core of a server of 2020.
 */
class processor_speed {
  public:
    /** @run: seconds that the calculation takes once; @wait: lets time pass; both for tests. */
    explicit processor_speed(std::function<double()> run = {}, std::function<void()> wait = {});

    /** Measures once more, 0.1 ms of processor time, the first time for 0.3 s, of which it sleeps
     *  nearly all. Returns the highest speed of the last ten minutes, in steps of a tenth, so that
     *  decisions do not follow noise. To be called once a second or so. */
    double at(nanos now);

  private:
    struct reading {
        nanos since;
        double speed; /* the highest of a minute */
    };
    double of_a_moment();
    std::function<double()> run_;
    std::function<void()> wait_;
    std::deque<reading> readings_;
};

/** Seconds of processor time of one run of the calculation. */
double time_of_calculation();

} // namespace zc::agent

#endif
