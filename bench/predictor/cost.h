/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_COST_H_INCLUDED
#define ZC_BENCH_COST_H_INCLUDED

#include <cstddef>
#include <vector>

#include "../figures/report.h"

/** Nanoseconds per receive with its landing query, default engine: what the figures ask for. */
struct costs {
    std::vector<double> live_keys; /* at 1,000 of them, one value per batch */
    double least_of_peers = 0;     /* medians, from 2 to 4,096 peers */
    double most_of_peers = 0;
    double early = 0; /* medians of the first and the last tenth of a long run */
    double late = 0;
    double short_horizon = 0; /* medians, horizon 8 and 512 */
    double long_horizon = 0;
    double bytes = 0;  /* of an engine with default parameters, everything in use */
    double silent = 0; /* percent of random addresses of which nothing was said */
};

/**
 * What prediction costs by number of live keys and of peers, length of the run, horizon
 * and DPD's window, beside the graph and DPD of the papers; prints and records it all.
 */
costs measure_costs(report &out, size_t batches, bool quick);

#endif
