/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONTEXT_H_INCLUDED
#define ZC_CONTEXT_H_INCLUDED

#include "cost.h"
#include "exchanger.h"
#include "experience.h"
#include "nodes.h"
#include "pool.h"
#include "splits.h"
#include "stats.h"
#include "vma.h"

#include <atomic>

/**
 * zc_context - what a zc_t points to: the parts, and the decision between them
 *
 *   pool      landing slots           splits     mapping boundaries made
 *   space     what the kernel says    exchanger  the kernel module
 *   costs     what each means would take, corrected by experience
 *   counters  what came of it
 */
struct zc_context {
    explicit zc_context(const zc_params_t &params);

    /** Begins anew with these. */
    void set_costs(const zc_costs_t &costs);
    /** The like, with a guess for the module where they know nothing of it: a
     *  file may be from before it was there, and in a process that a device
     *  mirrored while it was measured, nothing could be. */
    void adopt_costs(const zc_costs_t &costs)
    {
        set_costs(device_.ready() ? zc::with_kmod_guessed(costs) : costs);
    }
    zc_costs_t costs() const;
    int calibrate(zc_costs_t *out);

    int acquire(std::size_t len, const void *expected, zc::slot **out);
    void release(zc::slot *s) { pool_.release(s); }
    zc_delivery_t deliver(zc::slot *landing, zc::range dst);
    int eligible(zc::range pages);
    std::size_t trim(bool all);
    void report(zc_stats_t &out) const;

  private:
    /** What the choice of means depends on. */
    struct question {
        zc_costs_t costs;
        zc::extent what;
        std::uint32_t means;

        zc::way answer(std::uint32_t without = 0) const
        {
            return cheapest_way(costs, what, means & ~without);
        }
        double ns(zc::way w) const { return way_ns(costs, what, w, means); }
        bool close_call(zc::way best, zc::way other) const
        {
            return other != best && ns(other) <= zc::kClose * ns(best);
        }
    };

    /** What is to be exchanged: the pages of @body, those of @moved by mremap
     *  and those before and behind it by the module. */
    struct plan {
        zc::range body;
        zc::range moved;        /* all of body, its whole units, or nothing at its end */
        zc::vma_pieces pieces;  /* moved by VMA */
        std::size_t moves = 2;  /* calls of mremap it takes */
        double planning_ns = 0; /* that asking about moved has taken */
    };

    /* plan.cpp */
    zc_reason_t make_plan(const zc::slot &landing, zc::range dst, plan &p);
    zc_reason_t plan_moves(const zc::slot &landing, zc::range dst, zc::way w, question q, plan &p);
    zc_reason_t fit_page_sizes(const zc::slot &landing, zc::range dst, plan &p);
    zc::way choose(question &q);
    std::uint32_t means_now();
    bool module_is_blind();
    bool module_usable();
    void measure_if_worthwhile(std::size_t len);
    static zc::extent extent_of(const zc::slot &landing, zc::range dst, zc::range pages,
                                std::size_t len);
    bool learns() const { return !(params_.flags & ZC_FLAG_ALWAYS_REBIND); }
    void learn(zc_means_t means, const zc::extent &done, double measured_ns);

    /* deliver.cpp */
    void rebind_or_copy(zc::slot &landing, zc::range dst, zc::tally &t);
    void move_pages(zc::slot &landing, zc::range dst, const plan &p, zc::tally &t);
    zc_reason_t move_through_spare(zc::slot &landing, zc::range dst, const plan &p, zc::tally &t);
    void swap_pages(zc::slot &landing, zc::range dst, zc::range pages, zc::tally &t);
    void deliver_rest(zc::slot &landing, zc::range dst, zc::range rest, zc_reason_t reason,
                      zc::tally &t);
    bool swap_pays(const zc::slot &landing, zc::range dst, zc::range pages) const;
    void tell(zc::range pages) const;
    void keep_huge_allowed(zc::range body, const zc::slot &landing);
    void log_once(zc_reason_t reason, std::size_t bytes, zc::range dst);
    void log_device() const;
    void log_room() const;

    const zc_params_t params_;
    const std::size_t max_map_count_;
    zc::exchanger device_;
    std::uint32_t means_; /* allowed and possible; constant once created */
    const zc::nodes nodes_;
    zc::address_space space_;
    zc::splits splits_;
    zc::pool pool_;
    zc::counters counters_;

    mutable std::mutex costs_mutex_;
    zc_costs_t measured_costs_ = zc::kCostsUnmeasured;
    zc::experience experience_;
    zc_costs_t costs_ = zc::kCostsUnmeasured; /* measured_costs_ as experience has it */
    std::atomic<bool> measured_{false};
    std::atomic<std::uint64_t> calibrations_{0};
    std::atomic<std::uint64_t> unmeasured_bytes_{0}; /* delivered until then, in large messages */
    std::atomic<std::uint64_t> close_calls_{0};
    std::atomic<std::uint32_t> logged_{0}; /* bits 1u << zc_reason_t */
    static_assert(ZC_REASON_COUNT <= 32);
};

#endif /* ZC_CONTEXT_H_INCLUDED */
