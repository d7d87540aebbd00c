/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_MOVES_IN_TURN_H_INCLUDED
#define ZC_CONTROL_MOVES_IN_TURN_H_INCLUDED

#include <string>
#include <vector>

namespace zc::control {

/** What became of one attempt to move a rank. */
struct attempt {
    bool ok = false;
    bool again = false; /* another rank's move was in the way, which ends */
    std::string why;
};

/** How ranks are moved, and how time passes. */
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
    bool busy = false; /* another rank was away all the time */
    std::string why;   /* it stayed */
    int attempts = 0;
};

/**
 * Moves @ranks ranks one after the other, since only one rank of a job can be away at a time: a
 * rank that is refused as another one is away is tried again, less and less often, until
 * @timeout_s have passed since the beginning. What has moved stays where it is, whatever comes of
 * the others. @stops: after one that stays no other is tried.
 */
std::vector<rank_outcome> move_in_turn(rank_mover &by, std::size_t ranks, double timeout_s,
                                       bool stops);

} // namespace zc::control

#endif
