/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTROL_NEXT_HOST_H_INCLUDED
#define ZC_CONTROL_NEXT_HOST_H_INCLUDED

#include <functional>
#include <string>
#include <vector>

#include "moves_together.h"
#include "placement.h"
#include "zch/held_ranks.h"

namespace zc::control {

/** Where zc-hold listens. */
struct listening_host {
    std::string name, endpoint;
};

/** Moves a rank of @job to that one of @hosts, which are not empty, that has the fewest ranks of
 * the job; to the next one, if that cannot take it. If none can, and one could later, that one's
 * reason counts. @move_to: moves it to this host; what that throws is why the rank stays. */
holder::held_move
move_to_one_of(std::vector<listening_host> hosts, const std::string &job, placement &where,
               departure &leaving,
               const std::function<holder::held_move(const listening_host &)> &move_to);

} // namespace zc::control

#endif
