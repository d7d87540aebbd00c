/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_GROUPING_SUPPORT_H_INCLUDED
#define ZC_TESTS_GROUPING_SUPPORT_H_INCLUDED

#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "stream.h"
#include "synthetic.h"
#include "zcp/grouping.h"

namespace zcg_test {

struct release {
    void operator()(zcp_groups_t *g) const { zcp_groups_destroy(g); }
};
using engine = std::unique_ptr<zcp_groups_t, release>;

inline zcp_groups_params_t params_of(uint32_t ranks, zcp_groups_kind_t kind = ZCP_GROUPS_DEFAULT,
                                     uint32_t period = 64)
{
    zcp_groups_params_t p{};
    p.size = sizeof(p);
    p.ranks = ranks;
    p.kind = kind;
    p.period_events = period;
    return p;
}

inline engine make(const zcp_groups_params_t &p)
{
    zcp_groups_t *out = nullptr;
    EXPECT_EQ(0, zcp_groups_create(&p, &out));
    return engine(out);
}

inline void feed(zcp_groups_t *g, const std::vector<zcp_event_t> &events, size_t from = 0,
                 size_t to = SIZE_MAX)
{
    for (size_t i = from; i < std::min(to, events.size()); i++)
        zcp_groups_event(g, &events[i]);
}

inline std::vector<zcp_flow_t> forecast(const zcp_groups_t *g)
{
    const int64_t nr = zcp_groups_forecast(g, nullptr, 0);
    EXPECT_GE(nr, 0);
    std::vector<zcp_flow_t> flows(static_cast<size_t>(nr));
    EXPECT_EQ(nr, zcp_groups_forecast(g, flows.data(), flows.size()));
    return flows;
}

inline zcp_groups_stats_t stats_of(const zcp_groups_t *g)
{
    zcp_groups_stats_t stats{};
    stats.size = sizeof(stats);
    EXPECT_EQ(0, zcp_groups_stats(g, &stats));
    return stats;
}

/** Mean Jaccard of the pairs foretold for the next period and those that come, from @from on. */
inline double foretold(const zc::groups::event_stream &stream, zcp_groups_kind_t kind,
                       uint32_t period, size_t from)
{
    const engine g = make(params_of(stream.ranks, kind, period));
    double sum = 0;
    size_t nr = 0;
    for (size_t at = 0; at + 2 * period <= stream.events.size(); at += period) {
        feed(g.get(), stream.events, at, at + period);
        if (at < from)
            continue;
        std::set<std::pair<uint32_t, uint32_t>> said;
        for (const zcp_flow_t &f : forecast(g.get()))
            said.insert({f.src, f.dst});
        std::set<std::pair<uint32_t, uint32_t>> came;
        for (size_t i = at + period; i < at + 2 * period; i++) {
            const zcp_event_t &e = stream.events[i];
            if (e.src != e.dst)
                came.insert({e.src, e.dst});
        }
        auto either = said;
        either.insert(came.begin(), came.end());
        const size_t both = said.size() + came.size() - either.size();
        sum += either.empty() ? 1 : static_cast<double>(both) / static_cast<double>(either.size());
        nr++;
    }
    return nr ? sum / static_cast<double>(nr) : 0;
}

} // namespace zcg_test

#endif
