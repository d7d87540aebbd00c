/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_MOVES_TOGETHER_H_INCLUDED
#define ZC_CONTROL_MOVES_TOGETHER_H_INCLUDED

#include <cstddef>
#include <string>
#include <vector>

namespace zc::control {

/** What became of one attempt to move a rank. */
struct attempt {
    bool ok = false;
    bool again = false; /* another rank's move was in the way, which ends */
    std::string why;
};

/** With which others a rank leaves. */
class departure {
  public:
    virtual ~departure() = default;
    /** Whether there are any: else it leaves when it can. */
    virtual bool has_others() const = 0;
    /** It begins, perhaps anew within one attempt, as to another host: the others wait for it. */
    virtual void prepares() = 0;
    /** The rank is as far as it can be before the others are. @last: it leaves when it may go on;
     * else it is ready once more before. */
    virtual void ready(bool last) = 0;
    /** Asked again and again from then on, until it says so. */
    virtual bool may_go_on() = 0;
    /** Readable when it would say so, unless that is because the time is up. -1: never. */
    virtual int wake_fd() const = 0;
};

/** How ranks are moved, and how time passes. All is called by several threads at once; for one rank
 * by one thread. */
class rank_mover {
  public:
    virtual ~rank_mover() = default;
    /** Of the ranks in order the @nth; waits for the end. A rank that has not been ready before its
     * end has left with nobody. */
    virtual attempt move(std::size_t nth, departure &leaving) = 0;
    /** What leaves together has the same. */
    virtual std::string group_of(std::size_t nth);
    /** By a clock that does not go back; tests have another one. */
    virtual double now_s();
    virtual void wait(double seconds);
};

/** Of each rank in order. */
struct rank_outcome {
    bool moved = false;
    bool busy = false; /* the moves of others were in the way all the time */
    std::string why;   /* it stayed */
    int attempts = 0;
};

struct move_limits {
    double timeout_s = 600; /* for all */
    std::size_t at_once = 32;
    double wait_s = 120; /* for others, when a rank could leave; 0: for none */
};

/**
 * Moves @ranks ranks, each by a thread of its own, at most @at_once of them at a time: who asks has
 * a connection for each, and both hosts have a process for each, and the image of each in memory. A
 * rank that is refused as another one's move is in the way is tried again, less and less often,
 * until the timeout has passed since the beginning; meanwhile others have its place. What has moved
 * stays where it is, whatever comes of the others, and all are tried. The caller's thread moves the
 * first rank, so one rank needs no other thread; ranks for which the system has no thread are moved
 * by the caller's as well, afterwards.
 *
 * Ranks of a group leave together, for which each is in one of these states:
 *
 *                               FINISHING ────┐ if it is not READY once more in time
 *                                 ▲   │       │
 *                                 │   ▼       ▼
 *   TO_BEGIN ──▶ PREPARING ────▶  READY  ────▶ LEAVING ──▶ ENDED
 *                   ▲                             │
 *                   └────────── RESTING ◀─────────┘ to be tried again
 *
 * and ends, or rests, from each of them if its move has failed, or is PREPARING once more, for
 * another host.
 *
 * Those that are READY go on when none of the group is PREPARING or FINISHING, or TO_BEGIN where
 * there is a place for it: first those that have to finish, then all leave. Or each goes on by
 * itself, when wait_s have passed since it was READY first: one that is FINISHING then has left
 * without a word. So nobody waits for a rank that has failed, or has to be tried again; when that
 * is, those that are on the way then leave with it.
 */
std::vector<rank_outcome> move_together(rank_mover &by, std::size_t ranks,
                                        const move_limits &limits);

} // namespace zc::control

#endif
