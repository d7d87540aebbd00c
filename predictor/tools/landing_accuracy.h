/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_LANDING_ACCURACY_H_INCLUDED
#define ZCP_TOOLS_LANDING_ACCURACY_H_INCLUDED

#include <array>
#include <string>

#include "receive_trace.h"
#include "share.h"

namespace zc::report {

/** What became of the answer to one landing query. */
enum class landing_outcome {
    exact,
    congruent,        /* another address, at the same offset in its page */
    unseen_key,       /* silent: nothing was ever received from there with that tag */
    silent,           /* silent for lack of confidence */
    new_address,      /* wrong: that address was new for this sender and tag, and just a visit */
    phase_change,     /* wrong: new, and so is what came after it: the program moved on */
    wrong_of_several, /* wrong: the address was known, another was expected */
    count
};
constexpr std::array<const char *, static_cast<size_t>(landing_outcome::count)> kLandingOutcomes = {
    "exact",       "congruent",    "never seen key",          "silent",
    "new address", "phase change", "wrong of several buffers"};

constexpr size_t kConfidenceBins = 10;

/** How well unexpected messages were landed. */
struct landing_result {
    struct counts {
        uint64_t exact = 0;
        uint64_t congruent = 0; /* modulo 4 KiB, the exact ones included */
        uint64_t silent = 0;
        uint64_t n = 0;
    };
    std::array<counts, nr_size_classes> by_class;
    std::array<uint64_t, kLandingOutcomes.size()> outcomes{}; /* over 8 KiB */
    /* By confidence from 0.0 … 0.1 to 0.9 … 1.0: was what was claimed (the
     * address, or its class) right? All sizes. */
    std::array<share, kConfidenceBins> calibration{};
    uint64_t bytes = 0; /* memory of the engine */
};

/**
 * Replays the run as it went: a message sent before its receive was posted asks
 * when it is sent and settles when the receive is posted; the others are seen
 * when posted.
 */
landing_result measure_landing(const trace &trace, const std::string &predictor);

/** Nanoseconds per receive of that replay: learning, and the queries. */
double measure_cost_ns(const trace &trace, const std::string &predictor);

} // namespace zc::report

#endif
