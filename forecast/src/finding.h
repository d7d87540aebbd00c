/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_FINDING_H_INCLUDED
#define ZCF_FINDING_H_INCLUDED

#include <map>
#include <string>

#include "message.h"

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
    std::int64_t lost_overlap_ns = 0; /* could have been hidden behind the program's work */

    void add(const message &m);
};

/** A pair of call sites, by their numbers in the ranks' files: sender's, receiver's. */
struct site_pair {
    std::string send;
    std::string receive;
    auto operator<=>(const site_pair &) const = default;
};

/** All findings, and the most memory that unexpected messages would need at a receiver. */
struct findings {
    finding total;
    std::map<site_pair, finding> sites;
    std::uint64_t most_unexpected_bytes = 0;
    std::int32_t most_unexpected_rank = -1; /* where; -1: there are none */
};

/** @name: of a site, from a rank's place in the run and the site's number there. */
template <typename Name>
findings find(const zct::run &run, const std::vector<message> &messages, Name name);

/** The most bytes of unexpected messages at each rank at one time. */
std::vector<std::uint64_t> unexpected_memory(const zct::run &run,
                                             const std::vector<message> &messages);

template <typename Name>
findings find(const zct::run &run, const std::vector<message> &messages, Name name)
{
    findings all;
    for (const message &m : messages) {
        all.total.add(m);
        all.sites[{name(m.send.rank, m.send.site), name(m.receive.rank, m.receive.site)}].add(m);
    }
    const std::vector<std::uint64_t> memory = unexpected_memory(run, messages);
    for (std::size_t i = 0; i < memory.size(); i++) {
        if (memory[i] <= all.most_unexpected_bytes)
            continue;
        all.most_unexpected_bytes = memory[i];
        all.most_unexpected_rank = run.ranks[i].rank;
    }
    return all;
}

} // namespace zc::forecast

#endif
