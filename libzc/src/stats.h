/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STATS_H_INCLUDED
#define ZC_STATS_H_INCLUDED

#include "zc/zc.h"

#include <mutex>

namespace zc {

/** Counts deliveries by outcome. Any thread. */
class counters {
  public:
    void add(const zc_delivery_t &delivery);
    /** Fills in the fields about deliveries, and no others. */
    void report(zc_stats_t &out) const;

  private:
    mutable std::mutex mutex_;
    zc_stats_t sum_{};
};

} // namespace zc

#endif /* ZC_STATS_H_INCLUDED */
