/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_AGENT_AGENT_SETTINGS_H_INCLUDED
#define ZC_AGENT_AGENT_SETTINGS_H_INCLUDED

#include <string>
#include <vector>

#include "zcp/grouping.h"

#include "basics.h"

namespace zc::agent {

enum class mode : std::uint8_t { off, observe, move };

/** Whose messages groups are learned from: of a job's ranks at the node, or of all. */
enum class collection : std::uint8_t { node, job };

/** What the predictors of Singh & Graham can be told. */
struct pattern_settings {
    std::uint32_t literals = 3; /* L */
    std::uint32_t window = 4;   /* W */
    std::uint32_t support = 2;  /* K */
    std::uint32_t period = 512; /* sampling period, in messages */
    bool adaptive = false;      /* the period is adapted to the pattern found */
    zcp_groups_kmp_t kmp = ZCP_GROUPS_KMP_ZC;
    zcp_groups_match_t match = ZCP_GROUPS_MATCH_WHOLE;
    zcp_groups_recent_t recent = ZCP_GROUPS_RECENT_OVER;
    enum class membership { near, all };
    membership group = membership::near; /* whom a rank takes along of those in the pattern */
};
constexpr std::uint32_t kLongestPeriod = 8192;

/** What an agent's logic can be told; zcmd.toml has the same names. */
struct settings {
    /* [agent] */
    mode act = mode::move;
    std::vector<std::string> seeds; /* addresses of agents to join by */

    /* [membership] */
    nanos period = kSecond; /* between pings */
    nanos ping_timeout = 400 * kMillisecond;
    nanos suspicion = 5 * kSecond;     /* silent for so long: dead */
    nanos forget = 600 * kSecond;      /* dead for so long: no longer looked for */
    std::uint32_t max_members = 128;   /* known at a time */
    nanos probe_period = 10 * kSecond; /* between measurements of bandwidth */
    std::uint32_t probe_bytes = 256 << 10;

    /* [policy] */
    std::string policy = "network"; /* random, application, network */
    std::uint32_t hops = 8;         /* of a steal packet */
    nanos steal_least = 2 * kSecond;
    nanos steal_most = 64 * kSecond;
    std::string decision = "balance"; /* balance, threshold */

    /* [decision] */
    double threshold = 0.75;    /* processors for each thread; below it a node gives a rank away */
    double hysteresis = 0.15;   /* the iteration must become shorter by this part */
    double payback = 2.0;       /* gain over cost */
    nanos settle = 5 * kSecond; /* overloaded for so long before anything is given */
    nanos residence = 30 * kSecond; /* a rank stays at least; doubles with each move */
    nanos memory = 600 * kSecond;   /* a rank does not return to where it was for so long */
    double oversubscribe = 4;       /* ranks per processor a node accepts; max_ranks overrides */
    std::uint32_t max_ranks = 0;
    std::string grouping = "zc"; /* one of grouping_names() */
    collection collect = collection::node;
    nanos collect_delay = 2 * kSecond; /* what ranks have sent is put in order; over a sample */
    std::size_t grouping_bytes = 0;    /* memory for each job; 0: the engine's default */
    pattern_settings patterns;         /* of the groupings that look for patterns */
    std::uint32_t most_at_once = 64;   /* ranks in one step */

    /* [cost] */
    double bandwidth = 100e6; /* bytes per second where it was not measured */
    double spawn = 1.5;       /* seconds to start the successors, until measured */

    /* [protocol] */
    nanos commit_window = 8 * kSecond;  /* from first message to asking the job */
    nanos lease = 60 * kSecond;         /* a borrowed rank is not decided on by its owner */
    nanos move_timeout = 120 * kSecond; /* asked, and no word */
};

} // namespace zc::agent

#endif
