/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcp/grouping.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cut.h"
#include "fundamental.h"
#include "group_plan.h"
#include "memory.h"

using namespace zc::groups;

namespace {

constexpr std::array<const char *, ZCP_GROUPS_KIND_COUNT> kNames = {
    "default", "persistence", "matrix", "basic", "historical", "levenshtein"};
constexpr uint32_t kMostPeriod = 1u << 20;
constexpr uint32_t kIdlePeriods = 64; /* silence after which all is decayed anyway */

/** The caller's struct may be older (shorter) than ours, or newer if what is new is zero. */
template <typename Params>
bool read_params(const Params &given, Params &out)
{
    if (given.size < sizeof(size_t))
        return false;
    const char *bytes = reinterpret_cast<const char *>(&given);
    for (size_t i = sizeof(Params); i < given.size; i++) {
        if (bytes[i] != 0)
            return false;
    }
    out = Params{};
    std::memcpy(&out, &given, std::min(sizeof(Params), given.size));
    return true;
}

template <typename T>
void set_default(T &value, T by_default)
{
    if (value == 0)
        value = by_default;
}

bool complete(zcp_groups_params_t &p)
{
    if (p.ranks == 0 || p.ranks > ZCP_GROUPS_MAX_RANKS || p.kind < 0 ||
        p.kind >= ZCP_GROUPS_KIND_COUNT || p.kmp >= ZCP_GROUPS_KMP_COUNT || p.adaptive > 1 ||
        p.match >= ZCP_GROUPS_MATCH_COUNT || p.recent >= ZCP_GROUPS_RECENT_COUNT)
        return false;
    set_default(p.period_events, std::max(512u, 8 * p.ranks));
    set_default(p.max_bytes, (size_t{4} << 20) + (size_t{4} << 10) * p.ranks);
    set_default(p.kinds, UINT32_MAX);
    set_default(p.literals, 3u);
    set_default(p.window, 4u);
    set_default(p.support, 2u);
    return p.period_events <= kMostPeriod && p.literals >= 2 && p.literals <= p.window &&
           p.window <= 32 && p.support >= 2;
}

uint64_t rounded(double value)
{
    return value < 0x1p63 ? static_cast<uint64_t>(std::llround(value)) : UINT64_MAX;
}

zcp_flow_t published(const flow &f)
{
    const double messages = std::min(static_cast<double>(f.messages), 4294967295.0);
    return {f.src, f.dst, rounded(f.bytes),
            std::max(1u, static_cast<uint32_t>(std::lround(messages))),
            std::clamp(f.confidence, 0.0f, 1.0f)};
}

flow internal(const zcp_flow_t &f)
{
    return {f.src, f.dst, static_cast<double>(f.bytes), static_cast<float>(f.messages),
            f.confidence};
}

/** What every call that may run out of memory does about it. */
template <typename Call>
auto guarded(Call call) noexcept -> decltype(call())
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (const std::length_error &) {
        return -ENOMEM;
    }
}

} // namespace

struct zcp_groups {
    zcp_groups(const zcp_groups_params_t &p, const setting &s)
        : params(p), engine_setting(s), memory(p.max_bytes - sizeof(zcp_groups)),
          engine(make_forecaster(s, p.kind, &memory))
    {
    }

    tick now() const
    {
        return params.period_ns ? static_cast<tick>(elapsed) : static_cast<tick>(events);
    }

    /** Sets the clock; ends the periods that are over, the last of which may be long ago. */
    void advance(uint64_t time_ns)
    {
        if (events == 0)
            first_ns = time_ns;
        if (time_ns > first_ns) {
            const long double since = static_cast<long double>(time_ns - first_ns) /
                                      static_cast<long double>(params.period_ns);
            const auto ticks = static_cast<uint64_t>(std::min(since * kTicksPerPeriod, 0x1p62L));
            elapsed = std::max(elapsed, ticks);
        }
        for (uint32_t i = 0; i < kIdlePeriods && elapsed - period_began >= kTicksPerPeriod; i++)
            end_period(period_began + kTicksPerPeriod);
        period_began += (elapsed - period_began) / kTicksPerPeriod * kTicksPerPeriod;
    }

    void end_period(uint64_t at)
    {
        period_began = at;
        periods++;
        engine->period_over(static_cast<tick>(at));
    }

    /** Each pair once, most bytes first. */
    std::pmr::vector<flow> ask(forecaster::view view) const
    {
        auto flows = reserved<flow>(most_flows(engine_setting), &memory);
        engine->forecast(view, now(), flows, &memory);
        add_up_equal_pairs(flows);
        std::sort(flows.begin(), flows.end(), [](const flow &x, const flow &y) {
            return x.bytes != y.bytes ? x.bytes > y.bytes
                   : x.src != y.src   ? x.src < y.src
                                      : x.dst < y.dst;
        });
        return flows;
    }

    int64_t publish(forecaster::view view, zcp_flow_t *flows, size_t capacity) const
    {
        const auto all = ask(view);
        for (size_t i = 0; i < std::min(capacity, all.size()); i++)
            flows[i] = published(all[i]);
        return static_cast<int64_t>(all.size());
    }

    zcp_groups_params_t params;
    setting engine_setting;
    mutable bounded_memory memory;
    std::unique_ptr<forecaster> engine;
    uint64_t events = 0;
    uint64_t ignored = 0;
    uint64_t periods = 0;
    uint64_t period_began = 0; /* events or ticks */
    uint64_t first_ns = 0;
    uint64_t elapsed = 0; /* ticks since the first event, with period_ns */
};

const char *zcp_groups_kind_name(zcp_groups_kind_t kind) noexcept
{
    return kind >= 0 && kind < ZCP_GROUPS_KIND_COUNT ? kNames[kind] : nullptr;
}

int zcp_groups_kind_parse(const char *name) noexcept
{
    for (int kind = 0; name && kind < ZCP_GROUPS_KIND_COUNT; kind++) {
        if (std::string_view(name) == kNames[kind])
            return kind;
    }
    return -1;
}

int zcp_groups_create(const zcp_groups_params_t *params, zcp_groups_t **out) noexcept
{
    zcp_groups_params_t p;
    if (!params || !out || !read_params(*params, p) || !complete(p))
        return -EINVAL;
    setting s;
    if (!plan(p, s))
        return -ENOSPC;
    return guarded([&] {
        *out = new zcp_groups(p, s);
        return 0;
    });
}

void zcp_groups_destroy(zcp_groups_t *g) noexcept
{
    delete g;
}

void zcp_groups_event(zcp_groups_t *g, const zcp_event_t *event) noexcept
{
    const auto &p = g->params;
    if (event->src >= p.ranks || event->dst >= p.ranks || event->kind >= 32 ||
        !(p.kinds >> event->kind & 1)) {
        g->ignored++;
        return;
    }
    /* Only the system can be short of memory here; the event is then half learned. */
    (void)guarded([&] {
        if (p.period_ns != 0)
            g->advance(event->time_ns);
        if (event->src != event->dst)
            g->engine->learn(*event, g->now());
        g->events++;
        if (p.period_ns == 0 && g->events - g->period_began == p.period_events)
            g->end_period(g->events);
        return 0;
    });
}

int64_t zcp_groups_forecast(const zcp_groups_t *g, zcp_flow_t *flows, size_t capacity) noexcept
{
    if (!g || (!flows && capacity > 0))
        return -EINVAL;
    return guarded([&] { return g->publish(forecaster::view::likely, flows, capacity); });
}

int64_t zcp_groups_expect(const zcp_groups_t *g, zcp_flow_t *flows, size_t capacity) noexcept
{
    if (!g || (!flows && capacity > 0))
        return -EINVAL;
    return guarded([&] { return g->publish(forecaster::view::mean, flows, capacity); });
}

int64_t zcp_groups_cut(const zcp_groups_t *g, uint32_t max_size, uint32_t *group_of) noexcept
{
    if (!g || !group_of || max_size == 0)
        return -EINVAL;
    return guarded([&]() -> int64_t {
        const auto flows = g->ask(forecaster::view::mean);
        return cut(flows, g->params.ranks, max_size, {group_of, g->params.ranks}, &g->memory);
    });
}

int64_t zcp_groups_around(const zcp_groups_t *g, uint32_t rank, uint32_t max_size,
                          uint32_t *ranks) noexcept
{
    if (!g || !ranks || max_size == 0 || rank >= g->params.ranks)
        return -EINVAL;
    return guarded([&]() -> int64_t {
        const auto flows = g->ask(forecaster::view::mean);
        return around(flows, g->params.ranks, rank, {ranks, max_size}, &g->memory);
    });
}

int zcp_groups_stats(const zcp_groups_t *g, zcp_groups_stats_t *stats) noexcept
{
    if (!g || !stats || stats->size < sizeof(*stats))
        return -EINVAL;
    stats->events = g->events;
    stats->ignored = g->ignored;
    stats->periods = g->periods;
    stats->pairs_dropped = g->engine->pairs_dropped();
    stats->partial = g->engine->partial_searches();
    stats->bytes = g->memory.used() + sizeof(*g);
    stats->peak_bytes = g->memory.peak() + sizeof(*g);
    stats->max_bytes = g->params.max_bytes;
    stats->sampling = g->engine->sampling();
    stats->agreement = g->engine->agreement();
    return 0;
}

static bool readable(const zcp_flow_t *flows, size_t nr, uint32_t ranks)
{
    return (flows || nr == 0) && ranks > 0 && ranks <= ZCP_GROUPS_MAX_RANKS;
}

static std::vector<flow> internal(const zcp_flow_t *flows, size_t nr)
{
    std::vector<flow> out(nr);
    std::transform(flows, flows + nr, out.begin(), [](const zcp_flow_t &f) { return internal(f); });
    return out;
}

int64_t zcp_flows_cut(const zcp_flow_t *flows, size_t nr, uint32_t ranks, uint32_t max_size,
                      uint32_t *group_of) noexcept
{
    if (!readable(flows, nr, ranks) || !group_of || max_size == 0)
        return -EINVAL;
    return guarded([&]() -> int64_t {
        std::vector<uint32_t> groups(ranks);
        const uint32_t count =
            cut(internal(flows, nr), ranks, max_size, groups, std::pmr::new_delete_resource());
        std::copy(groups.begin(), groups.end(), group_of);
        return count;
    });
}

int64_t zcp_flows_around(const zcp_flow_t *flows, size_t nr, uint32_t ranks, uint32_t rank,
                         uint32_t max_size, uint32_t *group) noexcept
{
    if (!readable(flows, nr, ranks) || !group || max_size == 0 || rank >= ranks)
        return -EINVAL;
    return guarded([&]() -> int64_t {
        return around(internal(flows, nr), ranks, rank, {group, max_size},
                      std::pmr::new_delete_resource());
    });
}

int64_t zcp_fundamental_period(const uint32_t *text, size_t length) noexcept
{
    if (length >= (size_t{1} << 31))
        return -ENOMEM;
    return guarded([&]() -> int64_t {
        return static_cast<int64_t>(
            fundamental_period({text, length}, std::pmr::new_delete_resource()));
    });
}
