/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_EVALUATE_H_INCLUDED
#define ZC_BENCH_EVALUATE_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

#include "stream.h"

/** How one predictor did on one stream, a sample per period. */
struct scores {
    std::vector<double> jaccard; /* pairs foretold and come, of pairs foretold or come */
    std::vector<double> inside;  /* share of the period's bytes within the groups foretold */
    std::vector<double> cut_us;  /* from the mean traffic to groups */
    double ns_per_event = 0;     /* learning and ends of periods */
    uint64_t bytes = 0;          /* memory, peak */
};

enum class cutter { ours, scotch };

/**
 * Feeds the stream; at the end of each period, from the third on, asks for the
 * next one's pairs and groups of at most @max_size, and compares with what comes; of
 * long streams at most 150 periods or so, evenly spread.
 * A stream's last, incomplete period is not scored.
 */
scores evaluate(const zc::groups::event_stream &stream, zcp_groups_kind_t kind, cutter how,
                uint32_t period, uint32_t max_size);

/** What groups cut from the next period itself would keep inside: it cannot be known before. */
scores evaluate_oracle(const zc::groups::event_stream &stream, uint32_t period, uint32_t max_size);

#endif
