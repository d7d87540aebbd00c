/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LINE_H_INCLUDED
#define ZC_HOLDER_LINE_H_INCLUDED

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "curve_door.h"
#include "keys.h"
#include "stream.h"

namespace zc::holder {

using clock = std::chrono::steady_clock;

/** ZeroMQ for one process: keys, and the door of what listens. */
class network {
  public:
    explicit network(key_pair keys);
    ~network();
    network(const network &) = delete;
    network &operator=(const network &) = delete;
    void *context() const { return context_; }
    const key_pair &keys() const { return keys_; }
    curve_door &door() { return *door_; }
    /** A socket of @type that listens at @endpoint, or is connected with it. Throws error. */
    void *listen(int type, const std::string &endpoint);
    void *connect(int type, const std::string &endpoint);

  private:
    void *open(int type);
    key_pair keys_;
    void *context_;
    std::optional<curve_door> door_;
};

/** Where @socket listens, with its port. */
std::string endpoint_of(void *socket);

/** What the launcher has given a rank, as streams: by each what is sent, and what comes. */
class rank_streams {
  public:
    static constexpr std::size_t kWindow = 256 << 10;
    outgoing &out(stream_id which);
    incoming &in(stream_id which);
    bool has_out(stream_id which) const { return out_.contains(which); }
    bool has_in(stream_id which) const { return in_.contains(which); }
    /** To another connection: what is not known to have been used goes again. */
    void rewind();
    /** All that was pushed has been used. */
    bool is_done() const;
    nlohmann::json save() const;
    void restore(const nlohmann::json &saved);

    std::map<stream_id, outgoing> &all_out() { return out_; }
    std::map<stream_id, incoming> &all_in() { return in_; }

  private:
    std::map<stream_id, outgoing> out_;
    std::map<stream_id, incoming> in_;
};

/**
 * A connection with one other holder: requests and answers, JSON of a line each, and, if they are
 * attached, the streams of a rank. What is lost with a connection is sent again over the next; it
 * is the patience of its owner that ends. One thread. A rank's image has another (image_client.h).
 */
class line {
  public:
    /** @socket: a DEALER, which the line owns. */
    explicit line(void *socket);
    ~line();
    line(const line &) = delete;
    line &operator=(const line &) = delete;

    void *socket() const { return socket_; }
    void say(const nlohmann::json &what);
    /** What has come; throws error if it is no JSON. */
    std::vector<nlohmann::json> hear();
    /** From now on, or, nullptr, no longer. */
    void attach(rank_streams *streams);
    /** Receives and sends what can be, without waiting. */
    void pump();
    /** Of the other no sign for so long. */
    std::chrono::milliseconds silence() const;
    /** All that was said has been heard. */
    bool is_done() const { return control_out_.is_done(); }

  private:
    void receive();
    void dispatch(const frame &got);
    bool send(const frame &what);
    void send_all(outgoing &from);
    void acknowledge(incoming &of);
    void resend_what_waits();

    void *socket_;
    outgoing control_out_{stream_id::control, 1 << 20};
    incoming control_in_{stream_id::control};
    rank_streams *streams_ = nullptr;
    clock::time_point heard_, progress_, sign_;
    clock::duration again_; /* without progress: all that waits is sent once more */
};

} // namespace zc::holder

#endif
