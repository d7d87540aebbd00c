/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_LANE_CONTEXT_H_INCLUDED
#define ZCL_LANE_CONTEXT_H_INCLUDED

#include "inbound.h"
#include "outbound.h"
#include "server.h"
#include "zcl/lane.h"

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zcl {

using clock = std::chrono::steady_clock;

/** A file descriptor that is closed with its owner. */
class owned_fd {
  public:
    explicit owned_fd(int fd = -1) : fd_(fd) {}
    owned_fd(owned_fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    owned_fd &operator=(owned_fd &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~owned_fd();
    int get() const { return fd_; }

  private:
    int fd_;
};

} // namespace zcl

enum class zcl_lane_state { opening, open, broken };

/** One connection. All fields are guarded by the context's lock. */
struct zcl_lane {
    zcl_lane(zcl_context &owner, zcl::owned_fd socket, bool accepted, const zcl::hello &first);

    zcl_context &context;
    zcl::owned_fd fd;
    const bool accepted; /* the peer connected: not the user's before it has proved itself */
    zcl_lane_state state = zcl_lane_state::opening;
    bool stranger = false; /* sent away; sweep() removes it */
    zcl::clock::time_point deadline;
    std::uint64_t name = 0;
    int send_error = 0; /* nothing more can be sent; what is there can still be read */
    zcl::inbound_user user;
    zcl::inbound in;
    zcl::outbound out;
    std::list<zcl_event_t> begins, ends; /* one each, until it is told */
    std::unique_ptr<zcl::served> served; /* the server's own */
};

struct zcl_context {
    explicit zcl_context(const zcl_params_t &given);
    ~zcl_context();

    int start();
    bool forked() const;

    /** @secret: of the side that listens; null: that is us. */
    zcl_lane *add(zcl::owned_fd socket, bool accepted, const unsigned char *secret);
    /** Accepts the connections that wait at the listener. */
    void accept_all();
    /** Sending has failed: receiving will, when all that had come is read. */
    void send_failed(zcl_lane &lane, int status);
    /** The lane has ended, for its user; @status as in ZCL_EVENT_BROKEN. */
    void fail(zcl_lane &lane, int status);
    void remove(zcl_lane &lane);
    /**
     * What recvmsg(2) or the like has returned for the lane's plan; @error if that is negative.
     * False: nothing more to read now, or the lane is broken.
     */
    bool received(zcl_lane &lane, ssize_t n, int error);
    /** Removes lanes that have not proved their secret; the user may hold none of them. */
    void sweep();
    /** Reports frames of which all is sent. */
    void sent(zcl_lane &lane, std::size_t bytes);
    /** How much landing memory a lane may take now. */
    std::size_t share() const;
    /** Ends lanes that have not proved themselves in time. Returns when to look again. */
    zcl::clock::time_point check_deadlines();
    bool accepting() const { return zcl::clock::now() >= accept_again; }
    void log(const char *what, int error = 0) const;
    /** Where the next bytes of a lane belong, as inbound::plan(); null: that has broken it. */
    const zcl::inbound::spans *plan(zcl_lane &lane, std::size_t tail);
    bool make_room();
    void tell_sent(zcl_lane &lane, zcl::outbound::item &i, int status);
    void drop_unsent(zcl_lane &lane, int status);

    zcl_params_t params;
    std::string interface;
    sockaddr_storage local{};
    zcl::hello hello{};
    std::array<char, ZCL_PAGE> trash; /* for padding */
    std::mutex lock;
    zcl::owned_fd listener;
    /* The event of a lane or a frame is allocated with it, so that it can always be told. */
    std::list<zcl_event_t> events;
    std::vector<std::unique_ptr<zcl_lane>> lanes;
    std::size_t nr_opening = 0;
    std::size_t nr_sent_away = 0;          /* strangers that sweep() has not removed */
    zcl::clock::time_point accept_again{}; /* after descriptors ran out */
    bool told_of_strangers = false, told_of_descriptors = false; /* in the log */
    zcl_stats_t stats{};
    zcl::inbound_counts gone; /* of lanes that were closed */
    std::unique_ptr<zcl::server> server;
    const std::uint64_t fork_epoch;
};

#endif /* ZCL_LANE_CONTEXT_H_INCLUDED */
