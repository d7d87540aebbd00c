/* SPDX-License-Identifier: BSD-3-Clause */
#include "context.h"

#include "kernel.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <unistd.h>

using namespace zc;

namespace {

/* From here on whole page tables are worth moving. */
constexpr std::size_t kTableBytes = std::size_t{4} << 20;

/* The guess for a message without a prediction: malloc() returns large blocks 16
 * bytes into a page, so this is right more often than any other. */
constexpr addr_t kUsualOffset = 16;

/* The page-table geometry the library is written for; else it copies. */
bool geometry_fits()
{
    return sysconf(_SC_PAGESIZE) == static_cast<long>(kPage);
}

std::uint32_t possible(std::uint32_t wanted, const exchanger &device)
{
    if (!geometry_fits())
        return means_bit(ZC_MEANS_COPY);
    return device.ready() ? wanted : wanted & ~means_bit(ZC_MEANS_KMOD);
}

} // namespace

zc_context::zc_context(const zc_params_t &params)
    : params_(params), max_map_count_(kernel_max_map_count()),
      device_(geometry_fits() && (params.means & means_bit(ZC_MEANS_KMOD))),
      means_(possible(params.means, device_)),
      splits_(params.max_splits ? params.max_splits : max_map_count_ / 4, max_map_count_),
      pool_(params.budget_bytes, splits_)
{
    if (device_.ready())
        costs_ = measured_costs_ = with_kmod_guessed(kCostsUnmeasured);
    log_device();
    if (!pool_.has_room()) {
        means_ = means_bit(ZC_MEANS_COPY);
        log_room();
    }
}

void zc_context::set_costs(const zc_costs_t &costs)
{
    std::lock_guard lock(costs_mutex_);
    costs_ = measured_costs_ = costs;
    experience_.forget();
    measured_ = true;
}

/** @means took @measured_ns for @done; zero if the time was not taken. */
void zc_context::learn(zc_means_t means, const extent &done, double measured_ns)
{
    if (measured_ns <= 0)
        return;
    std::lock_guard lock(costs_mutex_);
    experience_.learn(means, way_ns(measured_costs_, done, {means, means}), measured_ns);
    costs_ = experience_.applied(measured_costs_);
}

zc_costs_t zc_context::costs() const
{
    std::lock_guard lock(costs_mutex_);
    return costs_;
}

int zc_context::calibrate(zc_costs_t *out)
{
    zc_costs_t costs;
    if (!pool_.has_room()) { /* nor for measuring, or for what it would be good for */
        if (out)
            *out = this->costs();
        return 0;
    }
    /* Deliveries of other threads go on with the estimates meanwhile, and do not measure, too. */
    measured_ = true;
    calibrations_++;
    if (int err = zc::calibrate(space_, device_, params_.flags, costs))
        return err;
    adopt_costs(costs);
    if (out)
        *out = this->costs();
    return 0;
}

int zc_context::acquire(std::size_t len, const void *expected, slot **out)
{
    addr_t at = expected ? as_address(expected) : kUsualOffset;
    placement place = placement::page;
    int node = kAnyNode;
    if (expected && (means_ & kRebindingMeans)) {
        range target = range_at(at, len);
        node = nodes_.node_of(target);
        auto huge = space_.huge_inside(target, kFewUnits);
        if (huge == address_space::huge::yes ||
            (huge == address_space::huge::unknown && address_space::huge_in_vmas_of(target)))
            place = placement::huge;
        else if (len >= kTableBytes)
            place = placement::table;
    }
    if (int err = pool_.acquire(len, at, place, out, node))
        return err;
    (*out)->expected = as_address(expected);
    return 0;
}

int zc_context::eligible(range pages)
{
    vma_pieces pieces;
    if (pages.empty())
        return ZC_REASON_SMALL;
    return space_.examine(pages, params_.flags, pieces);
}

std::size_t zc_context::trim(bool all)
{
    std::uint64_t now = now_ns();
    return pool_.trim(all ? now : now - std::min(now, params_.idle_ns));
}

void zc_context::report(zc_stats_t &out) const
{
    counters_.report(out);
    pool::usage use = pool_.report();
    out.acquired = use.acquired;
    out.refused_budget = use.refused_budget;
    out.populated_now = use.populated_now;
    out.populated_max = use.populated_max;
    out.in_use_now = use.in_use_now;
    out.in_use_max = use.in_use_max;
    out.pages_populated = use.pages_populated;
    out.forced_trims = use.forced_trims;
    out.splits_now = splits_.count();
    out.kmod_error = device_.error();
    out.addresses = pool_.addresses().size();
    out.refused_addresses = use.refused_addresses;
    out.calibrations = calibrations_.load();
}

/* Most machines have no module, and a user who allows every means does not want that
 * message from every process. */
void zc_context::log_device() const
{
    bool by_name = params_.means != kAllMeans && (params_.means & means_bit(ZC_MEANS_KMOD));
    bool silent = device_.error() == -ECANCELED || (device_.error() == -ENOENT && !by_name);
    if (!params_.log || device_.ready() || silent)
        return;
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(), "zc: /dev/zc is not used: %s", device_.status());
    params_.log(params_.log_arg, line.data());
}

void zc_context::log_room() const
{
    if (!params_.log)
        return;
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(),
                  "zc: only %zu KiB of addresses for landing memory (RLIMIT_AS, RLIMIT_MEMLOCK): "
                  "what lands is copied",
                  pool_.addresses().size() / 1024);
    params_.log(params_.log_arg, line.data());
}
