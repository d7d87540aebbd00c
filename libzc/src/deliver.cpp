/* SPDX-License-Identifier: BSD-3-Clause */
#include "context.h"

#include "kernel.h"
#include "rebind.h"
#include "refusal.h"
#include "stopwatch.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace zc;

namespace {

/* Refusals of the module in one delivery. Each costs a call; pages so strewn
 * with refused ones are better copied. */
constexpr unsigned kMostRefusals = 32;

/* A copy this long is worth looking at the clock for. */
constexpr std::size_t kWorthTiming = std::size_t{64} << 10;

constexpr way kByModule{ZC_MEANS_KMOD, ZC_MEANS_KMOD};

/** Copies @part of the message to where it belongs in @dst. */
void copy_part(const slot &landing, range dst, range part)
{
    if (!part.empty())
        std::memcpy(as_pointer(part.begin),
                    as_pointer(shifted(part, dst.begin, landing.data).begin), part.size());
}

/** An empty slot, lent by the pool for one exchange. */
class lent_spare {
  public:
    lent_spare(pool &owner, const slot &landing, range body)
        : owner_(owner), spare_(owner.take_spare(landing, body))
    {
    }
    ~lent_spare()
    {
        if (spare_)
            owner_.give_spare(spare_);
    }
    lent_spare(const lent_spare &) = delete;
    lent_spare &operator=(const lent_spare &) = delete;
    explicit operator bool() const { return spare_ != nullptr; }
    slot *operator->() const { return spare_; }
    slot &operator*() const { return *spare_; }

  private:
    pool &owner_;
    slot *spare_;
};

} // namespace

zc_delivery_t zc_context::deliver(slot *landing, range dst)
{
    tally t;
    if (!dst.empty())
        rebind_or_copy(*landing, dst, t);
    zc_delivery_t how = t.summary(dst.size());
    counters_.add(t, how);
    if (how.reason != ZC_REASON_NONE && params_.log)
        for (int reason = 0; reason < ZC_REASON_COUNT; reason++)
            if (std::size_t bytes = t.copied[reason])
                log_once(static_cast<zc_reason_t>(reason), bytes, dst);
    pool_.release(landing);
    return how;
}

void zc_context::rebind_or_copy(slot &landing, range dst, tally &t)
{
    plan p;
    zc_reason_t refusal = ZC_REASON_NO_MEMORY;
    try {
        refusal = make_plan(landing, dst, p);
    } catch (const std::bad_alloc &) {
    }
    if (refusal != ZC_REASON_NONE) {
        stopwatch watch(learns() && dst.size() >= kWorthTiming);
        copy_part(landing, dst, dst);
        t.copied[refusal] += dst.size();
        learn(ZC_MEANS_COPY, {dst.size(), 0}, watch.ns());
        return;
    }
    copy_part(landing, dst, {dst.begin, p.body.begin});
    copy_part(landing, dst, {p.body.end, dst.end});
    swap_pages(landing, dst, {p.body.begin, p.moved.begin}, t);
    swap_pages(landing, dst, {p.moved.end, p.body.end}, t);
    /* Last: it may leave nothing of the landing buffer. */
    move_pages(landing, dst, p, t);
}

/** Delivers p.moved. */
void zc_context::move_pages(slot &landing, range dst, const plan &p, tally &t)
{
    if (p.moved.empty())
        return;
    zc_reason_t refusal = ZC_REASON_NO_MEMORY;
    try {
        refusal = move_through_spare(landing, dst, p, t);
    } catch (const std::bad_alloc &) {
    }
    if (refusal != ZC_REASON_NONE)
        deliver_rest(landing, dst, p.moved, refusal, t);
}

/** Delivers p.moved, by mremap as far as that goes. Or does nothing: then
 *  returns why. */
zc_reason_t zc_context::move_through_spare(slot &landing, range dst, const plan &p, tally &t)
{
    stopwatch watch(learns());
    range source = shifted(p.moved, dst.begin, landing.data);
    lent_spare spare(pool_, landing, source);
    if (!spare)
        return ZC_REASON_NO_MEMORY;
    range parking = shifted(source, landing.span.begin, spare->span.begin);

    /* The VMAs that meet in the parking place are the user's, and those that
     * will meet in the user's range are the landing slot's. */
    std::vector<addr_t> parked_cuts{parking.begin}, all_cuts{p.moved.begin, p.moved.end};
    for (const range &piece : p.pieces)
        parked_cuts.push_back(piece.end - p.moved.begin + parking.begin);
    for_each_part(source.begin, source.size(), landing.cuts, [&](range part) {
        all_cuts.push_back(part.begin - source.begin + p.moved.begin);
        return true;
    });
    all_cuts.insert(all_cuts.end(), parked_cuts.begin(), parked_cuts.end());
    if (!splits_.admit(all_cuts))
        return ZC_REASON_MAPPING_LIMIT;

    tell(p.moved);
    exchange_result done =
        exchange_pages({p.moved, source.begin, parking.begin, p.pieces, landing.cuts});
    t.rebound[ZC_MEANS_MREMAP] += done.moved;
    if (done.moved)
        keep_huge_allowed(range_at(p.moved.begin, done.moved), landing);
    if (done.error) {
        zc_reason_t reason = done.error != -ENOMEM ? ZC_REASON_SYSCALL
                             : splits_.at_limit()  ? ZC_REASON_MAPPING_LIMIT
                                                   : ZC_REASON_NO_MEMORY;
        deliver_rest(landing, dst, {p.moved.begin + done.moved, p.moved.end}, reason, t);
    }
    pool_.exchanged(landing, range_at(source.begin, done.moved), *spare, parked_cuts);
    if (!done.error) {
        extent moved = extent_of(landing, dst, p.moved, p.moved.size());
        moved.moves = p.moves;
        learn(ZC_MEANS_MREMAP, moved, p.planning_ns + watch.ns());
    }
    return ZC_REASON_NONE;
}

/**
 * Delivers whole pages by the module: exchanges them, and copies what it
 * refuses. The slot keeps its mappings and its place in the books; but where
 * the user had never touched a page, it now lacks one.
 */
void zc_context::swap_pages(slot &landing, range dst, range pages, tally &t)
{
    if (pages.empty())
        return;
    try {
        landing.pending.insert(shifted(pages, dst.begin, landing.data));
    } catch (const std::bad_alloc &) {
        copy_part(landing, dst, pages);
        t.copied[ZC_REASON_NO_MEMORY] += pages.size();
        return;
    }
    const extent all = extent_of(landing, dst, pages, pages.size());
    stopwatch watch(learns());
    tell(pages);
    unsigned refusals = 0, again = 0;
    while (!pages.empty()) {
        exchanger::result r =
            device_.exchange(pages, shifted(pages, dst.begin, landing.data).begin);
        t.rebound[ZC_MEANS_KMOD] += r.done;
        pages.begin += r.done;
        if (pages.empty() && refusals == 0)
            learn(ZC_MEANS_KMOD, all, watch.ns());
        if (pages.empty())
            break;
        if (r.done)
            again = 0;
        range refused = refused_part(r.cause, pages, again++);
        range rest{refused.end, pages.end};
        if (++refusals == kMostRefusals || !swap_pays(landing, dst, rest))
            refused = pages;
        copy_part(landing, dst, refused);
        t.copied[refusal_reason(r.cause)] += refused.size();
        pages.begin = refused.end;
    }
}

/** Delivers what mremap did not, for @reason. */
void zc_context::deliver_rest(slot &landing, range dst, range rest, zc_reason_t reason, tally &t)
{
    if ((means_ & means_bit(ZC_MEANS_KMOD)) && module_usable() && swap_pays(landing, dst, rest)) {
        swap_pages(landing, dst, rest, t);
    } else {
        copy_part(landing, dst, rest);
        t.copied[reason] += rest.size();
    }
}

bool zc_context::swap_pays(const slot &landing, range dst, range pages) const
{
    if (pages.empty() || (params_.flags & ZC_FLAG_ALWAYS_REBIND))
        return !pages.empty();
    extent e = extent_of(landing, dst, pages, pages.size());
    zc_costs_t c = costs();
    return way_ns(c, e, kByModule) < copy_ns(c, e.len);
}

void zc_context::tell(range pages) const
{
    if (params_.before_rebind)
        params_.before_rebind(params_.before_rebind_arg, as_pointer(pages.begin), pages.size());
}

/* Where huge pages come unasked, landing slots on small pages decline them,
 * and that wish came along to the user's memory, which must not lose them. There is
 * no way back to "no wish", so the user is left with the opposite one. The pool
 * is asked, not the system: reading the setting takes as long as a rebind. */
void zc_context::keep_huge_allowed(range body, const slot &landing)
{
    if (pool_.has_declined_huge() && landing.kind.place != placement::huge &&
        !whole_units(body, kHuge).empty())
        advise(body, MADV_HUGEPAGE);
}

void zc_context::log_once(zc_reason_t reason, std::size_t bytes, range dst)
{
    std::uint32_t bit = 1u << reason;
    if (logged_.fetch_or(bit) & bit)
        return;
    std::array<char, 128> culprit{};
    if (reason == ZC_REASON_DEVICE)
        culprit = space_.drivers().culprit();
    std::array<char, 320> line;
    std::snprintf(line.data(), line.size(),
                  "zc: copied %zu bytes to %#zx: %s%s%s (first time; more are only counted)", bytes,
                  static_cast<std::size_t>(dst.begin), zc_reason_name(reason),
                  culprit[0] ? ": " : "", culprit.data());
    params_.log(params_.log_arg, line.data());
}
