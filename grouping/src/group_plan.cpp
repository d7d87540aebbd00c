/* SPDX-License-Identifier: BSD-3-Clause */
#include "group_plan.h"

#include <algorithm>
#include <bit>

#include "cut.h"
#include "per_sender.h"
#include "singh_graham.h"
#include "traffic.h"

namespace zc::groups {

constexpr uint32_t kLeastHistory = 16;
constexpr uint32_t kMostHistory = 2048; /* a search passes over all of it: two microseconds */
constexpr size_t kLeastFlows = 16;
constexpr size_t kSlack = 1024; /* engine and its parts, rounding */

static bool is_reference(zcp_groups_kind_t kind)
{
    return kind == ZCP_GROUPS_BASIC || kind == ZCP_GROUPS_HISTORICAL ||
           kind == ZCP_GROUPS_LEVENSHTEIN;
}

size_t most_flows(const setting &s)
{
    return 2 * s.period_flows + s.lasting_flows;
}

/* A query holds the walk, the forecast, and, while cutting, edges and links. */
static size_t query_bytes(const setting &s)
{
    return flow_table::bytes_needed(s.period_flows) + most_flows(s) * sizeof(flow) +
           cut_bytes_needed(most_flows(s), s.ranks);
}

size_t bytes_needed(const setting &s, zcp_groups_kind_t kind)
{
    size_t held = 0;
    if (is_reference(kind))
        held = singh_graham::bytes_needed(s);
    else if (kind == ZCP_GROUPS_PERSISTENCE)
        held = persistence::bytes_needed(s);
    else if (kind == ZCP_GROUPS_MATRIX)
        held = decayed_matrix::bytes_needed(s);
    else
        held = per_sender::bytes_needed(s);
    return kSlack + held + query_bytes(s);
}

/* Largest value in first … last that fits, found by halving; 0 if none does. */
template <typename T, typename Fits>
static T largest(T first, T last, Fits fits)
{
    if (last < first || !fits(first))
        return 0;
    while (first < last) {
        const T middle = last - (last - first) / 2;
        if (fits(middle))
            first = middle;
        else
            last = middle - 1;
    }
    return first;
}

bool plan(const zcp_groups_params_t &params, setting &out)
{
    setting s{};
    s.ranks = params.ranks;
    s.period = params.period_ns ? kTicksPerPeriod : params.period_events;
    s.literals = params.literals;
    s.window = params.window;
    s.support = params.support;
    s.adaptive = params.adaptive != 0;
    s.kmp = static_cast<zcp_groups_kmp_t>(params.kmp);
    s.match = static_cast<zcp_groups_match_t>(params.match);
    s.recent = static_cast<zcp_groups_recent_t>(params.recent);
    s.history = kLeastHistory;
    s.sample = std::max(std::min(params.period_events, 1u << 16), 2 * s.window);
    s.longest_sample = s.adaptive ? std::max(s.sample, 1u << 13) : s.sample;
    s.search_bytes = s.archive_bytes = is_reference(params.kind) ? params.max_bytes / 4 : 0;

    const size_t pairs = size_t{s.ranks} * (s.ranks - 1);
    const size_t in_a_period =
        params.period_ns ? pairs : std::min<size_t>(pairs, params.period_events);
    const auto within = [&](size_t bytes) {
        return [&, bytes](auto member) {
            return [&s, &params, bytes, member](auto value) {
                setting tried = s;
                tried.*member = value;
                return bytes_needed(tried, params.kind) <= bytes;
            };
        };
    };
    /* Tables may take what the least histories leave, up to two thirds; within
     * that the current pairs come before the lasting ones. */
    const size_t least = std::min({kLeastFlows, pairs, in_a_period});
    s.period_flows = s.lasting_flows = least;
    const size_t bare = bytes_needed(s, params.kind);
    if (bare > params.max_bytes)
        return false;
    const size_t spare = params.max_bytes - bare;
    s.period_flows = largest(least, in_a_period, within(bare + spare / 3)(&setting::period_flows));
    s.lasting_flows = largest(least, pairs, within(bare + spare / 3 * 2)(&setting::lasting_flows));
    const uint32_t history =
        largest(kLeastHistory, kMostHistory, within(params.max_bytes)(&setting::history));
    s.history = std::bit_floor(history);
    out = s;
    return true;
}

std::unique_ptr<forecaster> make_forecaster(const setting &s, zcp_groups_kind_t kind,
                                            std::pmr::memory_resource *memory)
{
    using how = singh_graham::predictor;
    switch (kind) {
    case ZCP_GROUPS_PERSISTENCE:
        return std::make_unique<persistence>(s, memory);
    case ZCP_GROUPS_MATRIX:
        return std::make_unique<decayed_matrix>(s, memory);
    case ZCP_GROUPS_BASIC:
        return std::make_unique<singh_graham>(s, how::basic, memory);
    case ZCP_GROUPS_HISTORICAL:
        return std::make_unique<singh_graham>(s, how::specific, memory);
    case ZCP_GROUPS_LEVENSHTEIN:
        return std::make_unique<singh_graham>(s, how::levenshtein, memory);
    default:
        return std::make_unique<per_sender>(s, memory);
    }
}

} // namespace zc::groups
