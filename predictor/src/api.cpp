/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcp/predictor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>

#include "baseline.h"
#include "graph.h"
#include "keyed.h"
#include "landing.h"
#include "periodicity.h"

/* The opaque handle is the landing layer and nothing else. */
struct zcp final : zc::predict::landing {
    using zc::predict::landing::landing;
};

namespace {

using namespace zc::predict;

constexpr const char *kKindNames[] = {"default", "graph", "dpd", "last", "last-size", "offset"};
static_assert(std::size(kKindNames) == ZCP_KIND_COUNT);

constexpr size_t kStatsSizeFirst = sizeof(zcp_stats_t); /* of the first version */

constexpr uint32_t kDefaultHorizon = 16;
constexpr uint32_t kMaxHorizon = 512;
constexpr size_t kDefaultBytes = size_t{1} << 20;
constexpr size_t kLeastBytes = size_t{64} << 10;
constexpr uint32_t kDefaultWindow = 256;
constexpr float kDefaultConfidence = 0.25f;

/* Room for the objects themselves and the rounding of small tables. */
constexpr size_t kReserveBytes = 2048;

/* How max_bytes is shared. */
struct budget {
    size_t landing;
    size_t predictor;
};

budget share(const zcp_params_t &params)
{
    const size_t scratch = params.horizon * sizeof(zcp_receive_t);
    const size_t rest = params.max_bytes - kReserveBytes - scratch;
    return {rest * 3 / 8, rest - rest * 3 / 8};
}

/* MPI's wildcards and MPI_PROC_NULL are negative ranks; no message comes from
 * them. A negative tag is allowed: collectives have none. */
bool concrete(const zcp_envelope_t &envelope)
{
    return envelope.source >= 0;
}

/* A caller built against a later header may ask for what this library does not know. */
bool unknown_fields_are_zero(const zcp_params_t &given)
{
    const auto *bytes = reinterpret_cast<const unsigned char *>(&given);
    return given.size <= sizeof(given) ||
           std::all_of(bytes + sizeof(given), bytes + given.size, [](auto b) { return b == 0; });
}

/* C lets any number into an enum, C++ does not let us read it as one. */
bool kind_is_known(const zcp_params_t &params)
{
    std::underlying_type_t<zcp_kind_t> kind;
    static_assert(sizeof(kind) == sizeof(params.kind));
    std::memcpy(&kind, &params.kind, sizeof(kind));
    return kind < ZCP_KIND_COUNT;
}

/* Fills in defaults; false if a field is out of range. */
bool complete(const zcp_params_t *given, zcp_params_t &params)
{
    params = {};
    if (given) {
        if (given->size < sizeof(given->size) || !unknown_fields_are_zero(*given))
            return false;
        std::memcpy(&params, given, std::min(given->size, sizeof(params)));
    }
    if (params.horizon == 0)
        params.horizon = kDefaultHorizon;
    if (params.max_bytes == 0)
        params.max_bytes = kDefaultBytes;
    if (params.dpd_window == 0)
        params.dpd_window = kDefaultWindow;
    if (params.min_confidence == 0)
        params.min_confidence = kDefaultConfidence;

    return kind_is_known(params) && params.horizon <= kMaxHorizon &&
           params.max_bytes >= kLeastBytes && params.min_confidence > 0 &&
           params.min_confidence <= 1 && /* NaN fails too */
           (params.kind != ZCP_DPD ||
            periodicity::bytes_needed(params.dpd_window) <= share(params).predictor);
}

std::unique_ptr<predictor> make_predictor(const zcp_params_t &params, size_t max_bytes)
{
    switch (params.kind) {
    case ZCP_GRAPH:
        return std::make_unique<graph>(max_bytes);
    case ZCP_DPD:
        return std::make_unique<periodicity>(params.dpd_window);
    case ZCP_LAST:
        return std::make_unique<last_address>(max_bytes, false);
    case ZCP_LAST_SIZE:
        return std::make_unique<last_address>(max_bytes, true);
    case ZCP_OFFSET:
        return std::make_unique<malloc_offset>();
    default:
        return std::make_unique<keyed>(max_bytes);
    }
}

} // namespace

const char *zcp_kind_name(zcp_kind_t kind) noexcept
{
    const auto index = static_cast<unsigned>(kind);
    return index < ZCP_KIND_COUNT ? kKindNames[index] : nullptr;
}

int zcp_kind_parse(const char *name) noexcept
{
    if (!name)
        return -1;
    const auto end = std::end(kKindNames);
    const auto found = std::find(std::begin(kKindNames), end, std::string_view(name));
    return found == end ? -1 : static_cast<int>(found - std::begin(kKindNames));
}

int zcp_create(const zcp_params_t *given, zcp_t **out) noexcept
{
    zcp_params_t params;
    if (!out || !complete(given, params))
        return -EINVAL;
    try {
        const budget budget = share(params);
        *out = new zcp(make_predictor(params, budget.predictor), budget.landing, params.horizon,
                       params.min_confidence);
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

void zcp_destroy(zcp_t *p) noexcept
{
    delete p;
}

void zcp_receive(zcp_t *p, const zcp_receive_t *receive) noexcept
{
    if (p && receive && concrete(receive->envelope))
        p->receive(*receive);
}

int zcp_arrival(zcp_t *p, const zcp_envelope_t *envelope, zcp_landing_t *out) noexcept
{
    if (!p || !envelope || !out || !concrete(*envelope))
        return -EINVAL;
    return p->arrive(*envelope, *out) ? 1 : 0;
}

void zcp_settle(zcp_t *p, zcp_claim_t claim, uint64_t addr) noexcept
{
    if (p)
        p->settle(claim, addr);
}

void zcp_cancel(zcp_t *p, zcp_claim_t claim) noexcept
{
    if (p)
        p->cancel(claim);
}

uint32_t zcp_next(const zcp_t *p, zcp_receive_t *out, uint32_t k) noexcept
{
    return p && out ? p->next({out, k}) : 0;
}

int zcp_stats(const zcp_t *p, zcp_stats_t *stats) noexcept
{
    if (!p || !stats || stats->size < kStatsSizeFirst)
        return -EINVAL;
    const size_t size = stats->size;
    p->read_stats(*stats);
    stats->size = size;
    return 0;
}
