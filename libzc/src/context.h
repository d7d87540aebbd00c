/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTEXT_H_INCLUDED
#define ZC_CONTEXT_H_INCLUDED

#include "cost.h"
#include "pool.h"
#include "splits.h"
#include "stats.h"
#include "vma.h"

#include <atomic>

/**
 * zc_context - what a zc_t points to: the parts, and the decision between them
 *
 *   pool      landing slots           splits   mapping boundaries made
 *   space     what the kernel says    costs    what each means would take
 *   counters  what came of it
 */
struct zc_context {
    explicit zc_context(const zc_params_t &params);

    bool valid() const { return pool_.valid(); }
    void set_costs(const zc_costs_t &costs);
    zc_costs_t costs() const;
    int calibrate(zc_costs_t *out);

    int acquire(std::size_t len, const void *expected, zc::slot **out);
    void release(zc::slot *s) { pool_.release(s); }
    zc_delivery_t deliver(zc::slot *landing, zc::range dst);
    int eligible(zc::range pages);
    std::size_t trim(bool all);
    void report(zc_stats_t &out) const;

  private:
    /** What is to be exchanged, and how it lies in memory. */
    struct plan {
        zc::range body;        /* the user's pages */
        zc::vma_pieces pieces; /* body by VMA */
        bool tables = false;   /* congruent modulo 2 MiB */
    };

    zc_delivery_t rebind_or_copy(zc::slot &landing, zc::range dst);
    zc_reason_t make_plan(const zc::slot &landing, zc::range dst, plan &p);
    zc_reason_t fit_page_sizes(const zc::slot &landing, zc::range dst, plan &p);
    zc_reason_t carry_out(zc::slot &landing, zc::range dst, const plan &p, std::size_t &moved);
    bool pays(std::size_t len, std::size_t rebindable, bool tables, std::size_t moves);
    static std::size_t moves_of(const zc::slot &landing, zc::range dst, const plan &p);
    void keep_huge_allowed(zc::range body, const zc::slot &landing);
    void measure_if_first(std::size_t len);
    void log_once(zc_reason_t reason, zc::range dst);

    const zc_params_t params_;
    const std::size_t max_map_count_;
    const std::uint32_t means_;
    zc::address_space space_;
    zc::splits splits_;
    zc::pool pool_;
    zc::counters counters_;

    mutable std::mutex costs_mutex_;
    zc_costs_t costs_ = zc::kCostsUnmeasured;
    std::atomic<bool> measured_{false};
    std::atomic<std::uint32_t> logged_{0}; /* bits 1u << zc_reason_t */
};

#endif /* ZC_CONTEXT_H_INCLUDED */
