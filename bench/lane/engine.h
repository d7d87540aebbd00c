/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_LANE_ENGINE_H_INCLUDED
#define ZC_BENCH_LANE_ENGINE_H_INCLUDED

#include "control.h"

#include <cstddef>
#include <memory>
#include <string>

/**
 * One way to move bulk between the two processes. Both ends make the same calls. Messages of
 * a direction arrive in order. An engine that fails ends the program with a message: a
 * benchmark has nothing to fall back on.
 */
class engine {
  public:
    virtual ~engine() = default;

    /** Meets the other side; @first on one of the two. */
    virtual void connect(control &peer, bool first) = 0;
    /** A receive for a message that has not been sent: goes straight to @buf. */
    virtual void post(void *buf, std::size_t len) = 0;
    /** Waits for the next message; returns where it lies: where it was posted, or landed. */
    virtual const void *receive(std::size_t len) = 0;
    /** Starts sending. */
    virtual void send(const void *buf, std::size_t len) = 0;
    /** Waits until all that was sent has left its buffers. */
    virtual void wait_sent() = 0;
    /** What receive() returned last is not needed any more. */
    virtual void release() = 0;
};

/** "uring", "thread": a lane; nullptr and @why if it does not work here. */
std::unique_ptr<engine> make_lane_engine(const std::string &way, const std::string &address,
                                         std::string *why);

/**
 * UCX's active messages, with a thread that makes progress while the application
 * computes. @two: a worker, and so an endpoint, for each direction, so that
 * what answers one side's bulk does not stand behind the other's.
 */
std::unique_ptr<engine> make_ucx_engine(bool two, std::size_t longest);

#endif /* ZC_BENCH_LANE_ENGINE_H_INCLUDED */
