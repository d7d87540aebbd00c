/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_FORECASTER_H_INCLUDED
#define ZCP_GROUPING_FORECASTER_H_INCLUDED

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "flow.h"
#include "zcp/grouping.h"

namespace zc::groups {

/** The clock of an engine: events learned, or a period in kTicksPerPeriod. Modulo 2^32. */
using tick = uint32_t;
constexpr uint32_t kTicksPerPeriod = 1024;
/** Pairs below it are not likely to talk in a period. */
constexpr float kLikelyMessages = 0.5f;

/** What all predictors are made for; resolved, no zero fields. */
struct setting {
    uint32_t ranks;
    tick period;          /* in ticks */
    size_t period_flows;  /* most pairs kept of one period */
    size_t lasting_flows; /* most pairs kept in the matrix */
    uint32_t history;     /* events kept per sender; a power of two */
    uint32_t sample;      /* Singh & Graham: sampling period to begin with, events */
    uint32_t longest_sample;
    size_t search_bytes;  /* memory of a pattern search */
    size_t archive_bytes; /* and of the patterns of earlier samples */
    uint32_t literals, window, support;
    bool adaptive;
    zcp_groups_kmp_t kmp;
    zcp_groups_match_t match;
    zcp_groups_recent_t recent;
};

/** One way to tell the next period's traffic from the past. */
class forecaster {
  public:
    /** likely: the one continuation thought best; mean: all, by how much they are trusted. */
    enum class view { likely, mean };

    virtual ~forecaster() = default;

    virtual void learn(const zcp_event_t &event, tick now) = 0;
    /** @now: first tick of the next period. */
    virtual void period_over(tick now) = 0;
    /** Appends the traffic of the period that begins at @now; a pair may come in parts. */
    virtual void forecast(view view, tick now, std::pmr::vector<flow> &out,
                          std::pmr::memory_resource *scratch) const = 0;

    virtual uint64_t pairs_dropped() const = 0;
    virtual uint64_t partial_searches() const { return 0; }
    virtual uint32_t sampling() const { return 0; }
    virtual float agreement() const = 0;
};

} // namespace zc::groups

#endif
