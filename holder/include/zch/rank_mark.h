/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCH_RANK_MARK_H_INCLUDED
#define ZCH_RANK_MARK_H_INCLUDED

#include <cstdint>
#include <optional>
#include <string>

#include "zch/held_ranks.h"

namespace zc::holder {

/**
 * What zc-hold writes into the environment of its rank, by which the rank is known on whatever host
 * it is: "PID RANK SIZE HOME JOB", of which PID and HOME are those of the zc-hold that the launcher
 * has started.
 */
inline constexpr const char *kRankMark = "ZC_HOLD_RANK";

/** Of @one its job, rank, size, home and pid. */
std::string mark_of(const held_rank &one);

/** Likewise; none if that is no such text. */
std::optional<held_rank> read_mark(const std::string &text);

/** The number of the job @name, the same on all hosts; not 0. */
std::uint64_t number_of_job(const std::string &name);

} // namespace zc::holder

#endif
