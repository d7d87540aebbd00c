/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LOOP_H_INCLUDED
#define ZC_HOLDER_LOOP_H_INCLUDED

#include <functional>
#include <map>

namespace zc::holder {

/** What one thread waits for: descriptors, and sockets of ZeroMQ. */
class loop {
  public:
    using action = std::function<void()>;
    /** Calls @then as long as @fd has one of @events (of poll(2)), or an error. Replaces what was.
     */
    void watch(int fd, short events, action then);
    void watch(void *socket, action then);
    void forget(int fd) { descriptors_.erase(fd); }
    void forget(void *socket) { sockets_.erase(socket); }
    /** Waits at most so long; -1: until something happens. */
    void turn(int timeout_ms);

  private:
    struct watched {
        short events;
        action then;
    };
    std::map<int, watched> descriptors_;
    std::map<void *, action> sockets_;
};

} // namespace zc::holder

#endif
