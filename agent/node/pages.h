/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_PAGES_H_INCLUDED
#define ZC_AGENT_PAGES_H_INCLUDED

#include <map>
#include <string>

#include "admission.h"
#include "agent.h"
#include "kernel_load.h"
#include "rank_files.h"

namespace zc::agent {

/** What an agent shows of itself, besides its logic. */
struct outward {
    double wall_s = 0; /* seconds since 1970, at @now */
    nanos now = 0;
    kernel_reading kernel;
    machine_shape shape;
    std::map<rank_key, rank_reading> ranks;
    std::uint64_t strangers = 0;
    std::uint64_t dropped = 0;
    std::uint64_t sent = 0;
    std::uint64_t profiles_refused = 0;
    std::uint64_t ranks_untimed = 0;
    std::uint64_t events_missed = 0; /* messages of ranks, since the agent began */
    std::string transparent;         /* policy.transparent */
    std::uint64_t held_unread = 0;
};

/** "/nodes", "/ranks", "/groups", "/history", "/status": JSON; "/metrics": Prometheus text. */
std::map<std::string, std::string> make_pages(const agent &a, const admission &door,
                                              const outward &o);

/** One line of JSON for the record of a run: the sample of now, or a decision. */
std::string record_line(const agent &a, const outward &o);
std::string record_line(const record &r, double wall_s, const std::string &host);

std::string hex(std::uint64_t id);

} // namespace zc::agent

#endif
