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

/** How ranks are moved, and how time passes. All is called by several threads at once; for one rank
 * by one thread. */
class rank_mover {
  public:
    virtual ~rank_mover() = default;
    /** Of the ranks in order the @nth; waits for the end. */
    virtual attempt move(std::size_t nth) = 0;
    /** By a clock that does not go back; tests have another one. */
    virtual double now_s();
    virtual void wait(double seconds);
};

/** Of each rank in order. */
struct rank_outcome {
    bool moved = false;
    bool busy = false; /* another rank's move was in the way all the time */
    std::string why;   /* it stayed */
    int attempts = 0;
};

struct move_limits {
    double timeout_s = 600; /* for all */
    std::size_t at_once = 32;
};

/**
 * Moves @ranks ranks, each by a thread of its own, at most @at_once of them at a time: who asks has
 * a connection for each, and both hosts have a process for each, and the image of each in memory. A
 * rank that is refused as another one's move is in the way is tried again, less and less often,
 * until the timeout has passed since the beginning; meanwhile others have its place. What has moved
 * stays where it is, whatever comes of the others, and all are tried. The caller's thread moves the
 * first rank, so one rank needs no other thread; ranks for which the system has no thread are moved
 * by the caller's as well, afterwards.
 */
std::vector<rank_outcome> move_together(rank_mover &by, std::size_t ranks,
                                        const move_limits &limits);

} // namespace zc::control

#endif
