/* SPDX-License-Identifier: BSD-3-Clause */
#include "context.h"

#include <cerrno>
#include <cstring>
#include <new>

using namespace zc;

/* The C boundary: checks arguments, turns handles into objects, and keeps
 * exceptions in. */

namespace {

slot *as_slot(zc_landing_t *landing)
{
    return reinterpret_cast<slot *>(landing);
}

const slot *as_slot(const zc_landing_t *landing)
{
    return reinterpret_cast<const slot *>(landing);
}

/** The caller's struct, extended by zeros to ours or cut to it. */
template <typename T>
T import(const T *theirs)
{
    T ours{};
    if (theirs)
        std::memcpy(&ours, theirs, std::min(theirs->size, sizeof(T)));
    ours.size = sizeof(T);
    return ours;
}

/** Fills as much of the caller's struct as it has room for. */
template <typename T>
int export_to(const T &ours, T *theirs)
{
    if (!theirs || theirs->size < sizeof(theirs->size))
        return -EINVAL;
    std::size_t size = theirs->size;
    std::memcpy(theirs, &ours, std::min(size, sizeof(T)));
    theirs->size = size;
    return 0;
}

bool wraps(const void *p, std::size_t len)
{
    return as_address(p) + len < as_address(p);
}

int checked_params(const zc_params_t *theirs, zc_params_t &out)
{
    constexpr std::uint32_t kKnownFlags =
        ZC_FLAG_ALLOW_PINNED | ZC_FLAG_ALWAYS_REBIND | ZC_FLAG_ALLOW_DEVICES;
    constexpr std::size_t kBudget = std::size_t{256} << 20;
    constexpr std::uint64_t kIdleNs = 10'000'000'000;

    if (theirs && theirs->size < sizeof(theirs->size))
        return -EINVAL;
    out = import(theirs);
    if ((out.flags & ~kKnownFlags) || (out.means & ~kAllMeans))
        return -EINVAL;
    if (out.budget_bytes == 0)
        out.budget_bytes = kBudget;
    if (out.means == 0)
        out.means = kAllMeans;
    if (out.idle_ns == 0)
        out.idle_ns = kIdleNs;
    return 0;
}

/** Runs @f, which may run out of memory. */
template <typename F>
int guarded(F f) noexcept
{
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (...) {
        return -EIO; /* nothing else is thrown by what we call */
    }
}

} // namespace

extern "C" {

int zc_create(const zc_params_t *params, zc_t **out) noexcept
{
    return guarded([&] {
        zc_params_t checked;
        if (!out)
            return -EINVAL;
        if (int err = checked_params(params, checked))
            return err;
        zc_costs_t costs = kCostsUnmeasured;
        if (checked.cost_file) {
            if (int err = load_costs(checked.cost_file, costs))
                return err;
        }
        auto made = std::make_unique<zc_context>(checked);
        if (checked.cost_file)
            made->adopt_costs(costs);
        *out = made.release();
        return 0;
    });
}

void zc_destroy(zc_t *zc) noexcept
{
    delete zc;
}

int zc_landing_acquire(zc_t *zc, size_t len, const void *expected, zc_landing_t **out) noexcept
{
    if (!zc || !out || len == 0 || wraps(expected, len))
        return -EINVAL;
    return guarded([&] {
        slot *s = nullptr;
        int err = zc->acquire(len, expected, &s);
        if (!err)
            *out = reinterpret_cast<zc_landing_t *>(s);
        return err;
    });
}

void *zc_landing_data(const zc_landing_t *landing) noexcept
{
    return landing ? as_pointer(as_slot(landing)->data) : nullptr;
}

void zc_landing_release(zc_t *zc, zc_landing_t *landing) noexcept
{
    if (zc && landing)
        zc->release(as_slot(landing));
}

int zc_deliver(zc_t *zc, zc_landing_t *landing, void *dst, size_t len, zc_delivery_t *how) noexcept
{
    if (!zc || !landing || len > as_slot(landing)->len || (len > 0 && !dst) || wraps(dst, len))
        return -EINVAL;
    zc_delivery_t done = zc->deliver(as_slot(landing), range_at(as_address(dst), len));
    if (how)
        *how = done;
    return 0;
}

size_t zc_pool_trim(zc_t *zc, int all) noexcept
{
    return zc ? zc->trim(all != 0) : 0;
}

int zc_stats(const zc_t *zc, zc_stats_t *stats) noexcept
{
    zc_stats_t ours{};
    if (!zc)
        return -EINVAL;
    zc->report(ours);
    return export_to(ours, stats);
}

int zc_calibrate(zc_t *zc, zc_costs_t *out) noexcept
{
    if (!zc || (out && out->size < sizeof(out->size)))
        return -EINVAL;
    return guarded([&] {
        zc_costs_t costs{};
        if (int err = zc->calibrate(&costs))
            return err;
        return out ? export_to(costs, out) : 0;
    });
}

int zc_costs(const zc_t *zc, zc_costs_t *out) noexcept
{
    return zc ? export_to(zc->costs(), out) : -EINVAL;
}

int zc_eligible(zc_t *zc, const void *addr, size_t len) noexcept
{
    if (!zc || len == 0 || wraps(addr, len))
        return -EINVAL;
    return guarded(
        [&] { return zc->eligible(whole_units(range_at(as_address(addr), len), kPage)); });
}

} // extern "C"
