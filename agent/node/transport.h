/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_TRANSPORT_H_INCLUDED
#define ZC_AGENT_TRANSPORT_H_INCLUDED

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include <zmq.h>

#include "basics.h"
#include "curve_door.h"
#include "keys.h"

namespace zc::agent {

class transport_error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/**
 * Bytes between agents: ZeroMQ over TCP, one socket that receives, one per peer that
 * sends, encrypted and authenticated with CURVE. Only our own public key is let in;
 * all others are refused during the handshake, before a byte of theirs reaches us,
 * and counted. Messages may be lost or late, never garbled. One thread.
 */
class transport {
  public:
    static constexpr std::size_t kMostInbound = 1024;
    /**
     * @most_inbound: connections taken, of half of our descriptors at most. Later ones wait until
     * another ends: any host that can reach the port can open some, and silent ones are
     * kept for five seconds.
     */
    transport(const std::string &listen, const key_pair &keys,
              std::size_t most_inbound = kMostInbound);
    ~transport();
    transport(const transport &) = delete;
    transport &operator=(const transport &) = delete;

    /** Where it really listens: the port filled in, if it was *. */
    const std::string &endpoint() const { return endpoint_; }
    /** Never blocks; what cannot be queued, or for which there is no descriptor, is dropped and
     * counted. */
    void send(nanos now, const std::string &address, const std::string &bytes);
    /** False: nothing there. */
    bool receive(std::string &bytes);
    /** To be polled: messages, requests for admission, failures of handshakes. */
    void *inbox() const { return inbox_; }
    void *door() const { return door_->socket(); }
    void *monitor() const { return monitor_; }
    void answer_door() { door_->answer(); }
    void read_monitor();
    /** Closes what has not been used for long. */
    void tidy(nanos now);

    std::uint64_t strangers() const { return strangers_ + door_->strangers(); }
    std::uint64_t dropped() const { return dropped_; }
    std::size_t connections() const { return peers_.size(); }
    std::size_t inbound() const { return inbound_.size(); }
    /** None is taken now. */
    bool is_full() const { return full_; }

  private:
    struct peer_socket {
        void *socket = nullptr;
        nanos used = 0;
    };
    void *open(int type);
    void *open_or_throw(int type);
    void *connect(nanos now, const std::string &address);
    void close_oldest();

    key_pair keys_;
    void *context_ = nullptr;
    void *inbox_ = nullptr;
    std::optional<curve_door> door_;
    void *monitor_ = nullptr;
    std::string endpoint_;
    std::map<std::string, peer_socket> peers_;
    std::uint64_t strangers_ = 0;
    std::uint64_t dropped_ = 0;
    nanos made_room_ = -kSecond;
    void count_inbound(std::uint16_t kind, int fd);
    std::size_t most_inbound_;
    std::set<int> inbound_; /* ZeroMQ's descriptors */
    int listener_ = -1;     /* likewise */
    bool full_ = false;
};

} // namespace zc::agent

#endif
