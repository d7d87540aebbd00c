/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_MOVABLE_H_INCLUDED
#define ZC_HOLDER_MOVABLE_H_INCLUDED

#include <string>
#include <utility>
#include <vector>

namespace zc::holder {

/** What a rank needs in its environment to be able to move. */
struct movable_settings {
    std::vector<std::pair<std::string, std::string>> added; /* which the user has not set */
    std::vector<std::string> kept; /* of those that the user has set otherwise: what comes of it */
    bool moves = false;            /* it is a rank that may move, as far as these go */
};

/**
 * Nothing for ranks of Open MPI and of another netmod than zc, which cannot move, nor for those
 * that the user has set not to.
 *
 * @variable: of the environment, empty if it is not set.
 */
movable_settings settings_of_movable(std::string (*variable)(const char *name));

/** Adds them to the environment of this process, from which the rank has its own. */
movable_settings make_movable();

} // namespace zc::holder

#endif
