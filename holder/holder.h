/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_HOLDER_H_INCLUDED
#define ZC_HOLDER_HOLDER_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "criu.h"
#include "ends.h"
#include "image.h"
#include "image_client.h"
#include "line.h"
#include "loop.h"
#include "memory_directory.h"
#include "pre_copy.h"
#include "promised_room.h"
#include "rank_process.h"
#include "zch/rank_traffic.h"

namespace zc::holder {

struct settings {
    std::string key_file;
    std::string criu = "criu";
    std::string job;  /* what it is called; empty: as the launcher does */
    std::string self; /* how this process was called; empty: what the rank spawns is not held */
    std::string spawned_by;     /* the first job, if the rank was spawned; else empty */
    bool user_namespace = true; /* if CRIU needs one */
    std::string not_movable;    /* why the rank of this process is not; empty: it is */
    std::chrono::seconds patience{60};
    bool pre_copy = true; /* send memory while the rank runs */
    bool lazy = false;    /* restore it before it has its memory, which the other host has */
    bool tracking = true; /* with lazy: let the kernel tell what the rank writes meanwhile */
};

/** What a holder leaves to its owner, which relays the rank's streams or does not. */
class surroundings {
  public:
    virtual ~surroundings() = default;
    virtual void say(const nlohmann::json &what) = 0;
    virtual network &the_network() = 0;
    /** The rank has stopped: the state of its streams, and what it has not read of each of @ends.
     */
    virtual nlohmann::json freeze(const std::vector<end> &ends) = 0;
    virtual void thaw() = 0;
    /** For the user. */
    virtual void warn(const std::string &text) = 0;
};

/**
 * The parent of a rank on one host, and what a move asks of it. The rank is told by lines over a
 * socket, as the netmod wants it (mpi-ch4-netmod/zc/zc_order.h):
 *
 *   holder                       rank
 *   WITH rank           ───▶                           that one is to leave, too
 *   LIVES port token    ───▶                           what liveness_server::order() says; only of
 *         seconds                                        the holder that has started the rank
 *   LEAVE               ───▶
 *                       ◀───     DETACHED, or REFUSED and why; REFUSED AGAIN: as other ranks that
 *                                move are in the way
 *   BIND incarnation    ───▶                           the token
 *                       ◀───     BOUND incarnation, or REFUSED and why
 *   TRACK               ───▶                           while it runs
 *                       ◀───     TRACKED, with a userfaultfd(2), or UNTRACKED and why
 *   TELL clocks         ───▶                           with a file (rank_traffic.h), while it runs:
 *                                                      when it begins, and after BOUND
 *                       ◀───     TELLING, or UNTOLD and why
 *
 * Requests, and the answers to their owner ("said"):
 *
 *   examine             examined: needs, refused   the rank runs, and is not asked
 *   copy {to, key,      ready, copied              its memory is sent while it runs (pre_copy.h);
 *         most, track,                             the kernel tells what it writes; or it is ready
 *         waits, within_ms}                        when there is little left to send, and goes on
 *   finish              copied                     with what it has written meanwhile
 *   stay                                           it does not leave: what was sent is forgotten
 *   leave {lazy, with,  detached: refused          it runs still, and has nothing of UCX; not
 *          lives}                                  before there is room for its image
 *   send {to, key,      sent                       dumped, stopped, its image is at another's
 *         lazy}
 *   thaw {incarnation}  bound                      the token is for the rank here
 *   end                                            it is killed: it lives elsewhere
 *
 * and failed, with why, at any time, and again if that is because of other ranks that move. That
 * a rank is detached is said whenever it is.
 *
 *   COPYING
 *    ▲   │ all that is worth it
 *   copy ▼  leave         DETACHED        send
 *   RUNNING ─────▶ LEAVING ─────▶ DETACHED ───▶ DUMPING ──▶ SENDING ──▶ SENT
 *    ▲   ▲            │              │             │           │         │  │ end
 *    │   └─ REFUSED ──┘              └───────┬─────┴───────────┴─────────┘  ▼
 *    │                                     thaw                           ENDED
 *    └────────── BOUND ─── BINDING ◀─────────┘
 *
 * With "lazy" CRIU leaves memory out of the image, and keeps the rank frozen, until SENT: in
 * SENDING the holder reads it from the rank itself. If CRIU ends before, or does not end well then
 * and leave the rank stopped, the move has failed: the rank may run. If CRIU cannot leave it out,
 * the rank is dumped once more, with its memory.
 */
class holder {
  public:
    enum class state {
        RUNNING,
        COPYING,
        LEAVING,
        DETACHED,
        DUMPING,
        SENDING,
        SENT,
        BINDING,
        ENDED
    };

    /** @orders: the holder's half of the socket; @ends: the rank's halves of all; @self: what the
     * launcher has told of it, if that is known. */
    holder(loop &events, settings how, surroundings &owner, rank_process rank, descriptor orders,
           std::vector<end> ends, state begin, std::optional<held_rank> self);
    ~holder();
    holder(const holder &) = delete;
    holder &operator=(const holder &) = delete;

    /** When its owner has it. */
    void begin();
    void obey(const nlohmann::json &request);
    /** Each turn of the loop. */
    void step();
    /** It has more to do at once, whatever its descriptors have. */
    bool is_busy() const;
    /** A child has ended. The status of wait(2), if it was the rank. */
    std::optional<int> child_ended();
    rank_process &rank() { return rank_; }
    const std::vector<end> &ends() const { return ends_; }
    state now() const { return state_; }

  private:
    bool order(const std::string &lines);
    void tell();
    void untold(const std::string &why);
    void listen();
    void heard(const std::string &line);
    void copy(const nlohmann::json &request);
    void tracked();
    void untracked(const std::string &why);
    void finish_copy();
    void copy_on();
    void say_of_copy(nlohmann::json what);
    bool catches_up() const;
    void send_on();
    void examine();
    void connect(const std::string &to, const std::string &key);
    void forget_other_host();
    void lose_other_host(const std::string &why);
    void leave(const nlohmann::json &request);
    std::string promise_room();
    void detached();
    void dump(const nlohmann::json &request);
    void dump(bool lazy, const std::string &not_lazy);
    void paused();
    void dumped();
    void criu_ended(bool well);
    void end_dump();
    void let_go();
    void dump_all(const std::string &why);
    void dump_fails(const std::string &why);
    void thaw(std::uint64_t incarnation);
    void kill_rank();
    void fail(const std::string &why);

    loop &loop_;
    settings how_;
    surroundings &owner_;
    rank_process rank_;
    descriptor orders_;
    descriptor passed_; /* the last that has come with an answer */
    std::vector<end> ends_;
    state state_;
    std::optional<held_rank> self_;
    std::optional<traffic_file> traffic_; /* where it tells what it sends */
    bool asked_to_tell_ = false;          /* and has not answered */
    bool said_untold_ = false;
    std::string partial_;
    clock::time_point since_;
    std::string to_, key_; /* where the image goes, and what is to be shown there */
    bool said_ready_ = false;
    bool asked_to_track_ = false; /* and has not answered */
    std::size_t extras_ = 0;  /* WITH and LIVES, which a build that does not know them answers */
    std::string not_tracked_; /* why what is written is not known; empty: it is */
    std::string not_lazy_;    /* why the memory is in the image all the same; empty: it is not */
    promised_room promised_;  /* of this host, for the image, until that is there */
    std::unique_ptr<memory_directory> images_;
    std::unique_ptr<criu_run> criu_;
    std::optional<dump_pause> pause_;
    std::optional<clock::time_point>
        let_go_;                           /* when the pause has ended, until the rank is stopped */
    std::unique_ptr<image_client> client_; /* to the other host */
    std::unique_ptr<pre_copy> copy_;
    std::uint64_t copied_ = 0; /* bytes, before the rank left */
    std::unique_ptr<image_sender> sender_;
    clock::time_point dump_begin_;
};

} // namespace zc::holder

#endif
