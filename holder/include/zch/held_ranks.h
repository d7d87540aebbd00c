/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCH_HELD_RANKS_H_INCLUDED
#define ZCH_HELD_RANKS_H_INCLUDED

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace zc::holder {

class network;

/** A rank below zc-hold, wherever it is. */
struct held_rank {
    std::string job;
    std::string first; /* the job that the launcher has started, if this one was spawned by it */
    int rank = 0;
    int size = 0;            /* of the job; 0: not known */
    std::string home;        /* the host where it was started, and its zc-hold stays */
    int pid = 0;             /* of its zc-hold */
    std::string host, place; /* where it is: name, and the endpoint of zc-hold --listen, empty where
                                the rank was started */
    bool moving = false;
    std::string asked_at; /* the endpoint of its zc-hold's host; empty: this host */
};

/** What was found on this host and on those that were asked. */
struct held_survey {
    std::vector<held_rank> ranks;
    std::map<std::string, std::string> hosts; /* that listen: their names, by endpoint */
    std::vector<std::string> silent;          /* endpoints at which nothing answers */
};

/** What a zc-hold says of a move. */
struct held_move {
    bool ok = false;
    bool again = false;      /* another rank's move was in the way, which ends */
    bool other_host = false; /* it was for the host to which it was to go: another may take it */
    std::string why;
    double ms = 0;
    double copy_ms = 0, wait_ms = 0; /* while it ran; in all that follows it stood still */
    double leave_ms = 0, dump_ms = 0, send_ms = 0, restore_ms = 0, bind_ms = 0;
    std::uint64_t copied = 0; /* bytes of memory, while it ran, in so many rounds */
    unsigned rounds = 0;
    double late_ms = 0;      /* longer than it was to take */
    std::string copy_ended;  /* why no more was sent while it ran, by pre_copy.h; empty: none was */
    std::uint64_t bytes = 0; /* sent of the image */
    std::uint64_t bytes_there = 0; /* of the image, which had been sent before */
};

/** With what a rank leaves. Called by the thread that moves the rank. */
class leaves_with {
  public:
    virtual ~leaves_with() = default;
    /** It is as far as it can be before the others are, and runs on. @last: it leaves when it may
     * go on; else it copies what is left then, and is ready once more. */
    virtual void ready(bool last) = 0;
    /** Asked again and again from then on, until it says so. */
    virtual bool may_go_on() = 0;
    /** The others of its job, by number. */
    virtual std::vector<int> ranks() const = 0;
    /** Readable when it would say so. */
    virtual int wake_fd() const = 0;
    /** It waits no longer than that, in all, whatever comes of who waits for it. */
    virtual std::chrono::milliseconds longest() const = 0;
};

/**
 * Asks zc-hold on this host by the sockets of its processes, and on others by zc-hold --listen.
 * Waits for what it asks. move() may be called by several threads at once: each has sockets of its
 * own, since one of ZeroMQ's belongs to the thread that uses it, and they share ZeroMQ's context,
 * which belongs to none. All else is for one thread.
 */
class held_ranks {
  public:
    /** @key_file: read, and ZeroMQ used, when another host is asked. */
    explicit held_ranks(std::string key_file);
    ~held_ranks();
    held_ranks(const held_ranks &) = delete;
    held_ranks &operator=(const held_ranks &) = delete;

    /** @places: HOST or HOST:PORT each, where zc-hold listens. Those at which ranks are found to be
     * are asked, too. Throws error, key_error. */
    held_survey look(const std::vector<std::string> &places, std::chrono::milliseconds patience);
    /** At which of the endpoints @places zc-hold --listen answers; all are asked at once. Throws
     * error, key_error. */
    std::set<std::string> that_listen(const std::set<std::string> &places,
                                      std::chrono::milliseconds patience);
    /** Tells the zc-hold of @which to move it to the endpoint @to. It refuses if the rank is not on
     * the host of @which, if that is named: another has moved it. Throws error if no answer comes
     * in time, or @over says that it is not waited for any more: the move may go on. @others: with
     * which the rank leaves; nullptr: it leaves when it can. @within: so long it is to take, if it
     * can be; zero: as it likes. */
    held_move move(const held_rank &which, const std::string &to,
                   std::chrono::milliseconds patience, const std::function<bool()> &over = {},
                   leaves_with *others = nullptr, std::chrono::milliseconds within = {});

  private:
    network &the_network();
    std::string key_file_;
    std::mutex mutex_; /* of what is made when it is needed first */
    std::unique_ptr<network> network_;
};

} // namespace zc::holder

#endif
