/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "negotiation.h"
#include "rendezvous.h"
#include "window.h"

namespace zc::migrate::sim {

/** What a simulated job does, and what may befall it. */
struct scenario {
    int ranks = 2;
    std::int64_t safe_points = 4; /* of each rank */
    int requests = 1;
    bool exchanges = false;   /* neighbours wait for each other's messages between safe points */
    bool time_passes = false; /* at any moment the patience of all may come to its end */
    int put_off = 0;          /* so often a meeting finds messages in flight */
    int functions = 0;        /* of the program, which ranks call each time that they have met */
    bool weighs = false;      /* requests depend on the ranks' states, */
    int heavy = 0;            /* and so many of them are refused for these */
    int mover = -1;           /* a met request replaces this rank by a successor */
    int silent = -1;          /* this rank goes on only when the others have made all theirs, */
    std::int64_t silent_after = 1; /* from this safe point */
};

/** What must not happen has. */
struct violation : std::runtime_error {
    using runtime_error::runtime_error;
};

class world;

/** Decides what happens next. */
class chooser {
  public:
    virtual ~chooser() = default;
    /** One of @count possibilities; @of may be stopped instead. */
    virtual std::size_t choose(world &of, std::size_t count) = 0;
};

/**
 * Ranks of a job that runs the negotiation and the rendezvous as they are, over windows in memory.
 * A one-sided operation takes effect, and its origin knows, when the chooser says so; so does each
 * step of each rank and of the thread of the socket, and within a step, before each access of the
 * rank to its own words but the first, all others may make steps of theirs.
 *
 * Throws violation if ranks meet that are not all at the same safe point of the same
 * request, if one leaves while others have met, if a request is not answered exactly once or is
 * refused for lateness although no time has passed, or if nothing can happen any more although not
 * all have ended.
 */
class world {
  public:
    world(const scenario &what, chooser &decides);
    ~world();
    world(const world &) = delete;
    world &operator=(const world &) = delete;

    /** Until all ranks have ended or it was stopped. */
    void run();
    void stop() noexcept { stopped_ = true; }
    bool is_stopped() const noexcept { return stopped_; }

    /** Equal for worlds of one scenario in which the same can happen. */
    std::uint64_t fingerprint() const;
    /** What is possible now, in words; as many as the chooser has been offered. */
    std::string describe(std::size_t possibility) const;
    /** Is that only a tick of the clock? */
    bool is_time(std::size_t possibility) const;
    /** The rank that makes a step then, -1 if none does. */
    int steps(std::size_t possibility) const;

    int met() const noexcept { return met_; }
    int refused() const noexcept { return refused_; }

  private:
    enum class kind {
        step,
        impatient,
        apply,
        answer,
        ask,
        ring,
        expire,
        tick,
        conclude,
        end,
        resume
    };
    struct action {
        kind what;
        int rank;
        std::size_t index;
    };
    enum class where { computing, counted, called, calling, met, settling, finishing };

    struct operation;
    class memory_window;
    class memory_round;
    class socket;
    class nothing_asked;
    struct rank;

    void list_actions();
    bool may_go_on(int r) const;
    void pick();
    void perform(const action &one);
    void step(int r, double now);
    void leave(rank &who);
    void take(rank &who, rendezvous::next next, int r);
    void arrived_everywhere(int r);
    void conclude();
    void end();
    void apply(operation &one);
    void answer(operation &one);
    void access(int r, std::int64_t value) noexcept;
    void between(int r) noexcept;
    std::unique_ptr<window> open(int r);
    std::unique_ptr<rendezvous> meeting_of(int r);
    void expect(bool holds, const std::string &otherwise) const;

    const scenario what_;
    chooser &decides_;
    std::unique_ptr<socket> socket_;
    std::vector<std::vector<operation>> pending_; /* of each target, in the order of their start */
    std::vector<action> actions_;
    double now_ = 0;
    bool stopped_ = false, ended_ = false;
    int stepping_ = -1;                  /* the rank whose step others may interrupt */
    std::vector<std::int64_t> accesses_; /* what it has seen in this step */
    bool interrupted_ = false;
    std::optional<violation> within_; /* a step, where it cannot be thrown */
    int put_off_ = 0, functions_ = 0, heavy_ = 0, met_ = 0, refused_ = 0;
    double called_ = 0; /* when functions of the program were */
    std::vector<std::unique_ptr<rank>> ranks_;
};

} // namespace zc::migrate::sim
