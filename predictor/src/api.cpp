/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcp/predictor.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
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

namespace {

using namespace zc::predict;

constexpr const char *kKindNames[] = {"default",   "graph",  "dpd",        "last",
                                      "last-size", "offset", "last-sender"};
static_assert(std::size(kKindNames) == ZCP_KIND_COUNT);

constexpr const char *kCauseNames[] = {"none",   "unsure",   "beyond", "constant", "period",
                                       "stride", "any-size", "class",  "stream",   "fixed"};
static_assert(std::size(kCauseNames) == ZCP_CAUSE_COUNT);

/* Sizes of the first version: callers may be older than this library. */
constexpr size_t kExplanationSizeFirst = sizeof(zcp_explanation_t);
constexpr size_t kStatsSizeFirst = sizeof(zcp_stats_t);

constexpr uint32_t kDefaultHorizon = 16;
constexpr uint32_t kMaxHorizon = 512;
constexpr size_t kDefaultBytes = size_t{1} << 20;
constexpr size_t kLeastBytes = size_t{64} << 10;
constexpr uint32_t kDefaultWindow = 256;
constexpr float kDefaultConfidence = 0.25f;

/* Room for the objects themselves and the rounding of small tables. */
constexpr size_t kReserveBytes = 2048;

/* How max_bytes is shared between landing and a reference predictor. */
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
    if (params.dpd_least == 0)
        params.dpd_least = params.dpd_window;
    if (params.min_confidence == 0)
        params.min_confidence = kDefaultConfidence;

    return kind_is_known(params) && params.horizon <= kMaxHorizon &&
           params.max_bytes >= kLeastBytes && params.min_confidence > 0 &&
           params.min_confidence <= 1 && /* NaN fails too */
           (params.kind != ZCP_DPD ||
            (params.dpd_least <= params.dpd_window &&
             periodicity::bytes_needed(params.dpd_window) <= share(params).predictor));
}

std::unique_ptr<predictor> make_predictor(const zcp_params_t &params, size_t max_bytes)
{
    switch (params.kind) {
    case ZCP_GRAPH:
        return std::make_unique<graph>(max_bytes);
    case ZCP_DPD:
        return std::make_unique<periodicity>(params.dpd_window, params.dpd_least);
    case ZCP_LAST:
        return std::make_unique<last_address>(max_bytes, alike::sender_and_tag);
    case ZCP_LAST_SIZE:
        return std::make_unique<last_address>(max_bytes, alike::envelope);
    case ZCP_LAST_SENDER:
        return std::make_unique<last_address>(max_bytes, alike::sender_and_size);
    default:
        return std::make_unique<malloc_offset>();
    }
}

zcp *make_engine(const zcp_params_t &params)
{
    if (params.kind == ZCP_DEFAULT)
        return new keyed(params.max_bytes - kReserveBytes, params.horizon, params.min_confidence);
    const budget budget = share(params);
    return new landing(make_predictor(params, budget.predictor), budget.landing, params.horizon,
                       params.min_confidence);
}

/* Fills the text of an explanation. */
void describe(const zcp &engine, zcp_explanation_t &e)
{
    const auto percent = static_cast<int>(e.confidence * 100.0f);
    const auto print = [&](const char *format, auto... values) {
        std::snprintf(e.text, sizeof(e.text), format, values...);
    };
    switch (e.cause) {
    case ZCP_CAUSE_NONE:
        print("%s", "nothing like it has been received from that sender with that tag");
        break;
    case ZCP_CAUSE_UNSURE:
        print("%#" PRIx64 " would be the guess, but only %d %% of late were right", e.guess,
              percent);
        break;
    case ZCP_CAUSE_BEYOND:
        print("%" PRIu32 " messages of it are unsettled; no more than %" PRIu32 " are foreseen",
              e.unsettled, engine.horizon());
        break;
    case ZCP_CAUSE_CONSTANT:
        print("%#" PRIx64 ": where the last one went; right %d %% of late", e.guess, percent);
        break;
    case ZCP_CAUSE_PERIOD:
        print("%#" PRIx64 ": buffers recur after %" PRIu32 " receives; right %d %% of late",
              e.guess, e.period, percent);
        break;
    case ZCP_CAUSE_STRIDE:
        print("%#" PRIx64 ": addresses advance evenly; right %d %% of late", e.guess, percent);
        break;
    case ZCP_CAUSE_ANY_SIZE:
        print("%#" PRIx64 ": from that sender and tag messages of other sizes went there; "
              "right %d %% of late",
              e.guess, percent);
        break;
    case ZCP_CAUSE_CLASS:
        print("addresses do not recur, but %d %% of late were %#" PRIx64 " modulo %#" PRIx64,
              percent, e.guess, e.modulus);
        break;
    case ZCP_CAUSE_STREAM:
        print("%#" PRIx64 ": the next receive of it in the stream of all; right %d %% of late",
              e.guess, percent);
        break;
    default:
        print("%#" PRIx64 " modulo %#" PRIx64 " by rule; right %d %% of late", e.guess, e.modulus,
              percent);
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
        *out = make_engine(params);
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

const char *zcp_cause_name(zcp_cause_t cause) noexcept
{
    const auto index = static_cast<unsigned>(cause);
    return index < ZCP_CAUSE_COUNT ? kCauseNames[index] : nullptr;
}

int zcp_explain(const zcp_t *p, const zcp_envelope_t *envelope,
                zcp_explanation_t *explanation) noexcept
{
    if (!p || !envelope || !explanation || explanation->size < kExplanationSizeFirst ||
        !concrete(*envelope))
        return -EINVAL;
    const size_t size = explanation->size;
    *explanation = {};
    explanation->size = size;
    p->explain(*envelope, *explanation);
    describe(*p, *explanation);
    return explanation->cause > ZCP_CAUSE_BEYOND ? 1 : 0;
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
