/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_SERVER_H_INCLUDED
#define ZCL_SERVER_H_INCLUDED

#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>

struct zcl_context;
struct zcl_lane;

namespace zcl {

/** What a server keeps with a lane. */
struct served {
    virtual ~served() = default;
};

/**
 * The thread or call that moves the bytes: the one point of variation. All calls but stop() are
 * made with the context's lock held; wait() lets go of it while it sleeps.
 */
class server {
  public:
    virtual ~server() = default;
    /** Return: 0 or a negative errno. */
    virtual int start() = 0;
    /** The lane has a socket. May call zcl_context::fail() as may all below. */
    virtual void add(zcl_lane &lane) = 0;
    /** Ends the server's own thread. Without the lock; withdraw() is all that may follow. */
    virtual void stop() {}
    /** There is more to send. */
    virtual void send(zcl_lane &lane) = 0;
    /** Where the next bytes belong has changed: expected, or memory came free. */
    virtual void receive(zcl_lane &lane) = 0;
    /** When it returns nothing of the lane is under way. */
    virtual void withdraw(zcl_lane &lane) = 0;
    /** Does what can be done without waiting. */
    virtual void serve() = 0;
    /** Returns when there are events, or at @deadline_ns from now, or earlier. 0 or -EINTR. */
    virtual int wait(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns) = 0;
    /** There are events (called by the code that makes one). */
    virtual void happened() {}
    /** As zcl_descriptor(). */
    virtual int descriptor() const { return -EOPNOTSUPP; }
};

std::unique_ptr<server> make_uring_server(zcl_context &context);
/** By a thread of its own, or by the caller. */
std::unique_ptr<server> make_epoll_server(zcl_context &context, bool own_thread);

} // namespace zcl

#endif /* ZCL_SERVER_H_INCLUDED */
