/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_FINDING_H_INCLUDED
#define ZCF_FINDING_H_INCLUDED

#include <string>
#include <vector>

#include "message.h"
#include "site_names.h"

namespace zc::forecast {

/** What was found of some messages. Times are sums over them, in nanoseconds: waits of different
 * ranks at once count each, so they are more than a run can gain. */
struct finding {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t late_senders = 0;
    std::int64_t late_sender_ns = 0;  /* receivers waited for the message to be sent */
    std::uint64_t late_receivers = 0; /* their senders were held */
    std::uint64_t late_receiver_bytes = 0;
    std::int64_t held_ns = 0;          /* senders waited for the receive to be posted */
    std::int64_t transfer_wait_ns = 0; /* receivers then waited for the transfer */
    std::uint64_t unexpected = 0;      /* sent before the receive was posted */
    std::uint64_t unexpected_bytes = 0;
    std::uint64_t most_unexpected_bytes = 0; /* that lay at one receiver at one time */
    std::int32_t most_unexpected_rank = -1;  /* at which; -1: there are none */
    std::int64_t lost_overlap_ns = 0;        /* could have been hidden behind the program's work */
    predictability foreseen;                 /* where they go, of the unexpected ones */

    /** Adds all of a message but what lay at one time. */
    void add(const message &m);

    /** What ch4:zc could change of it. */
    std::int64_t cost_ns() const { return held_ns + transfer_wait_ns + lost_overlap_ns; }
};

/** A pair of call sites, by their names: sender's, receiver's. */
struct site_pair {
    std::string send;
    std::string receive;
    auto operator<=>(const site_pair &) const = default;
};

struct site_finding {
    site_pair where;
    finding found;
};

/** All findings. */
struct findings {
    finding total;
    std::vector<site_finding> sites;    /* in order of their names */
    std::vector<std::uint32_t> site_of; /* by message: its place among the sites */

    /** Places among the sites, those that cost most first. */
    std::vector<std::size_t> by_cost() const;
};

findings find(const zct::run &run, const std::vector<message> &messages, const site_names &name);

} // namespace zc::forecast

#endif
