/* SPDX-License-Identifier: BSD-3-Clause */
/* How a message is to be delivered: deliver.cpp carries it out. */
#include "context.h"

#include "kernel.h"
#include "rebind.h"
#include "stopwatch.h"

using namespace zc;

namespace {

/* So much may be worth an exchange. */
constexpr std::size_t kLarge = std::size_t{64} << 10;
/* The measurement takes two to three milliseconds, as it takes to copy so much
 * once. Until then the estimates do, as deliveries have corrected them. */
constexpr std::uint64_t kMeasureAfter = std::uint64_t{32} << 20;

/** Calls of mremap() it takes: one for each VMA on either side. */
std::size_t moves_of(const slot &landing, range dst, range moved, const vma_pieces &pieces)
{
    std::size_t moves = pieces.count();
    for_each_part(shifted(moved, dst.begin, landing.data).begin, moved.size(), landing.cuts,
                  [&](range) { return ++moves > 0; });
    return moves;
}

} // namespace

/** A message, or a part of one, of @len bytes with these whole @pages. */
extent zc_context::extent_of(const slot &landing, range dst, range pages, std::size_t len)
{
    extent e{len, pages.size()};
    e.in_units = congruent(landing.data, dst.begin, kHuge) ? whole_units(pages, kHuge).size() : 0;
    e.huge = landing.kind.place == placement::huge;
    return e;
}

/** Decides whether, which pages, and how to exchange. Cheap questions first. */
zc_reason_t zc_context::make_plan(const slot &landing, range dst, plan &p)
{
    if (!(params_.means & kRebindingMeans))
        return ZC_REASON_DISABLED;
    if (!(means_ & kRebindingMeans))
        return pool_.has_room() ? ZC_REASON_NO_MEANS : ZC_REASON_NO_MEMORY;
    range pages = whole_units(dst, kPage);
    if (pages.empty() || dst.size() < params_.rebind_min_bytes)
        return ZC_REASON_SMALL;
    measure_if_worthwhile(dst.size());
    question q{costs(), extent_of(landing, dst, pages, dst.size()), means_now()};
    std::uint32_t resting = means_ & ~q.means & means_bit(ZC_MEANS_KMOD);
    way w = choose(q);
    if (!w.exchanges()) {
        q.means |= resting;
        if (!resting || !q.answer().exchanges())
            return ZC_REASON_SMALL;
        return module_is_blind() ? ZC_REASON_DEVICE : ZC_REASON_NOTIFIER;
    }
    if (!congruent(landing.data, dst.begin, kPage))
        return landing.expected ? ZC_REASON_NOT_CONGRUENT : ZC_REASON_UNPREDICTED;
    if (!intersection(pool_.addresses(), dst).empty())
        return ZC_REASON_NO_MEANS; /* a landing buffer delivered into another */
    if (q.what.huge && !congruent(landing.data, dst.begin, kHuge))
        return ZC_REASON_PAGE_SIZE;
    if (!nodes_.match(pages, shifted(pages, dst.begin, landing.data).begin))
        return ZC_REASON_NODE;

    zc_reason_t refusal = ZC_REASON_SMALL;
    if (w.uses(ZC_MEANS_MREMAP)) {
        refusal = plan_moves(landing, dst, w, q, p);
        if (refusal == ZC_REASON_NONE)
            return ZC_REASON_NONE;
        w = q.answer(means_bit(ZC_MEANS_MREMAP));
    }
    /* The module sees for itself what it may exchange. */
    p.body = pages;
    p.moved = {pages.end, pages.end};
    return w.exchanges() ? ZC_REASON_NONE : refusal;
}

/** The cheapest way; where it is a close call, now and then the other one. */
way zc_context::choose(question &q)
{
    way best = q.answer();
    if (!learns())
        return best;
    way other = second_way(q.costs, q.what, q.means, best);
    if (!q.close_call(best, other) || !tries_the_other(++close_calls_))
        return best;
    /* Restrict the means, so that later checks do not revert the choice. */
    q.means = means_bit(other.units) | means_bit(other.pages);
    return other;
}

/** Plans what @w does by mremap: asks the kernel whether it may be done, and
 *  whether it still pays. */
zc_reason_t zc_context::plan_moves(const slot &landing, range dst, way w, question q, plan &p)
{
    stopwatch watch(learns());
    bool alone = w.pages == ZC_MEANS_MREMAP;
    range pages = whole_units(dst, kPage);
    range wanted = alone ? pages : whole_units(pages, kHuge);
    p.moved = wanted;
    if (zc_reason_t reason = space_.examine(wanted, params_.flags, p.pieces))
        return reason;
    if (zc_reason_t reason = fit_page_sizes(landing, dst, p))
        return reason;
    p.body = alone ? p.moved : pages;
    q.what = extent_of(landing, dst, p.body, dst.size());
    q.what.moves = p.moves = moves_of(landing, dst, p.moved, p.pieces);
    p.planning_ns = watch.ns();
    if (q.ns(w) <= q.ns(q.answer(means_bit(ZC_MEANS_MREMAP))))
        return ZC_REASON_NONE;
    return p.moved == wanted ? ZC_REASON_SMALL : ZC_REASON_PAGE_SIZE;
}

/** The means to choose from. Copying is always allowed, but for tests. */
std::uint32_t zc_context::means_now()
{
    constexpr std::uint32_t kCopy = means_bit(ZC_MEANS_COPY), kKmod = means_bit(ZC_MEANS_KMOD);
    std::uint32_t means = params_.flags & ZC_FLAG_ALWAYS_REBIND ? means_ & ~kCopy : means_ | kCopy;
    return (means & kKmod) && !module_usable() ? means & ~kKmod : means;
}

/* The module looks at every page, but sees no more than pins. */
bool zc_context::module_is_blind()
{
    return !(params_.flags & ZC_FLAG_ALLOW_DEVICES) &&
           space_.drivers().ask_cheaply() == hold::reference;
}

bool zc_context::module_usable()
{
    return !module_is_blind() && device_.usable();
}

/** The thread whose delivery makes the measurement worthwhile pays for it;
 *  others go on with the estimates until it is done. */
void zc_context::measure_if_worthwhile(std::size_t len)
{
    if (len < kLarge || (params_.flags & ZC_FLAG_ALWAYS_REBIND) || measured_.load())
        return;
    if (unmeasured_bytes_.fetch_add(len) + len >= kMeasureAfter && !measured_.exchange(true))
        (void)calibrate(nullptr);
}

/**
 * The user's huge pages are never split, nor traded for small ones: where one
 * reaches over an end of the range, the range ends before it, and where there
 * are any in it, landing buffer must have huge pages at the same places.
 */
zc_reason_t zc_context::fit_page_sizes(const slot &landing, range dst, plan &p)
{
    p.moved = space_.without_straddling(p.moved, p.pieces);
    if (p.moved.empty())
        return ZC_REASON_PAGE_SIZE;
    p.pieces.clip(p.moved);

    /* Exchanged between addresses congruent modulo 2 MiB a huge page moves
     * whole, seen or not; only else every single one must be looked for. */
    using huge = address_space::huge;
    bool tables = congruent(landing.data, dst.begin, kHuge);
    huge user = space_.huge_inside(p.moved, tables ? kFewUnits : SIZE_MAX);
    if (user == huge::unknown) {
        /* Then what was found out slowly, when the buffer was acquired, holds
         * for the address it was acquired for. */
        if (!tables || landing.expected != dst.begin)
            return ZC_REASON_PAGE_SIZE;
        user = landing.kind.place == placement::huge ? huge::yes : huge::no;
    }
    if ((user == huge::yes) != (landing.kind.place == placement::huge))
        return ZC_REASON_PAGE_SIZE;
    if (user == huge::no)
        return ZC_REASON_NONE;
    range source = shifted(p.moved, dst.begin, landing.data);
    bool both = tables && space_.huge_inside(source, kFewUnits) != huge::no;
    return both ? ZC_REASON_NONE : ZC_REASON_PAGE_SIZE;
}
