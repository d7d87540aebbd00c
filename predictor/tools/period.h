/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_PERIOD_H_INCLUDED
#define ZCP_TOOLS_PERIOD_H_INCLUDED

#include <cstddef>

#include "receive_trace.h"

namespace zc::report {

/** The lag at which a stream repeats exactly for longest. */
struct period_found {
    size_t period = 0; /* 0: no two rounds are alike */
    size_t begin = 0;  /* position where the stretch begins */
    size_t length = 0; /* receives in it, the first round included */
};

/**
 * Looks at lags up to 4,096, in posting order, at whole receives. The shortest
 * of the lags whose stretch is within a tenth of the longest.
 */
period_found find_period(const trace &trace);

} // namespace zc::report

#endif
