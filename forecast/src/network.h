/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_NETWORK_H_INCLUDED
#define ZCF_NETWORK_H_INCLUDED

#include "message.h"

namespace zc::forecast {

/** How fast the run's messages travelled. */
struct network {
    /** Between hosts, or on one. */
    struct path {
        double latency_ns;
        double slow; /* bytes per nanosecond: three of four messages were faster */
        double usual;
        double fast;         /* one of four was faster */
        std::size_t samples; /* large messages it was measured by; 0: an assumption */
    };
    path remote{30'000, 1.0, 1.1, 1.2, 0}; /* 10 Gbit/s */
    path local{2'000, 2.0, 4.0, 5.0, 0};

    /* By message: bytes per nanosecond of its link while it travelled; 0: not known. */
    std::vector<double> rates;
    /* By message: another one went the other way between its two ranks, which are on two hosts,
     * while it travelled. A library that sends both over one connection has each delay the other.
     */
    std::vector<bool> crossed;

    const path &of(const message &m) const { return m.one_host ? local : remote; }
};

/**
 * By the messages whose transfer both sides waited for from its beginning, in whatever call.
 *
 * Messages that travel at once share a link, and calls such as MPI_Waitall tell only when
 * the last of several has come. So it is the link whose rate is measured: all bytes that a
 * host sent, or received, in a time without a break, by that time. A message travels at the rate of
 * the busier of its two links, which is the higher one: the other waited for it.
 *
 *     to rank 1   |======|                    the host's link sent 3 messages between | and |:
 *     to rank 2   |==============|            their bytes by that time
 *     to rank 1             |====|
 */
network measure_network(const zct::run &run, const std::vector<message> &messages);

} // namespace zc::forecast

#endif
