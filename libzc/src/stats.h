/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STATS_H_INCLUDED
#define ZC_STATS_H_INCLUDED

#include "zc/zc.h"

#include <array>
#include <mutex>

namespace zc {

/** What became of the bytes of one delivery. Its edges are in no part of it. */
struct tally {
    std::array<std::size_t, ZC_MEANS_COUNT> rebound{};
    std::array<std::size_t, ZC_REASON_COUNT> copied{};

    /** The same in the terms of zc.h, of a message of @len bytes. */
    zc_delivery_t summary(std::size_t len) const;
};

/** Counts deliveries by outcome. Any thread. */
class counters {
  public:
    void add(const tally &parts, const zc_delivery_t &summary);
    /** Fills in the fields about deliveries, and no others. */
    void report(zc_stats_t &out) const;

  private:
    mutable std::mutex mutex_;
    zc_stats_t sum_{};
};

} // namespace zc

#endif /* ZC_STATS_H_INCLUDED */
