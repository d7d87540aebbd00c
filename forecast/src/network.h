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

    const path &of(const message &m) const { return m.one_host ? local : remote; }
};

/** By the messages whose transfer both sides waited for from its beginning. */
network measure_network(const std::vector<message> &messages);

} // namespace zc::forecast

#endif
