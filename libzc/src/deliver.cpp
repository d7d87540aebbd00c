/* SPDX-License-Identifier: BSD-3-Clause */
#include "context.h"

#include "kernel.h"
#include "rebind.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/mman.h>

using namespace zc;

namespace {

/* A delivery this long is worth measuring the machine for. */
constexpr std::size_t kWorthMeasuring = std::size_t{64} << 10;

void copy_part(range part, addr_t from, addr_t to)
{
    if (!part.empty())
        std::memcpy(as_pointer(shifted(part, from, to).begin), as_pointer(part.begin), part.size());
}

} // namespace

zc_delivery_t zc_context::deliver(slot *landing, range dst)
{
    zc_delivery_t how = rebind_or_copy(*landing, dst);
    counters_.add(how);
    if (how.reason != ZC_REASON_NONE)
        log_once(how.reason, dst);
    pool_.release(landing);
    return how;
}

zc_delivery_t zc_context::rebind_or_copy(slot &landing, range dst)
{
    zc_delivery_t how{0, dst.size(), ZC_MEANS_COPY, ZC_REASON_NONE};
    if (dst.empty())
        return how;
    try {
        plan p;
        how.reason = make_plan(landing, dst, p);
        if (how.reason == ZC_REASON_NONE)
            how.reason = carry_out(landing, dst, p, how.bytes_rebound);
    } catch (const std::bad_alloc &) {
        how.reason = ZC_REASON_NO_MEMORY;
    }
    if (how.bytes_rebound == 0)
        copy_part(landing.message_of(dst.size()), landing.data, dst.begin);
    else
        how.means = ZC_MEANS_MREMAP;
    how.bytes_copied = dst.size() - how.bytes_rebound;
    return how;
}

/** Decides whether, and which pages, to exchange. Cheap questions first. */
zc_reason_t zc_context::make_plan(const slot &landing, range dst, plan &p)
{
    if (!(means_ & means_bit(ZC_MEANS_MREMAP)))
        return ZC_REASON_NO_MEANS;
    p.body = whole_units(dst, kPage);
    p.tables = congruent(landing.data, dst.begin, kHuge);
    if (p.body.empty() || dst.size() < params_.rebind_min_bytes)
        return ZC_REASON_SMALL;
    measure_if_first(dst.size());
    if (!pays(dst.size(), p.body.size(), p.tables, 2))
        return ZC_REASON_SMALL;
    if (!congruent(landing.data, dst.begin, kPage))
        return landing.expected ? ZC_REASON_NOT_CONGRUENT : ZC_REASON_UNPREDICTED;
    if (!intersection(pool_.addresses(), dst).empty())
        return ZC_REASON_NO_MEANS; /* a landing buffer delivered into another */

    if (zc_reason_t reason = space_.examine(p.body, params_.flags & ZC_FLAG_ALLOW_PINNED, p.pieces))
        return reason;
    if (zc_reason_t reason = fit_page_sizes(landing, dst, p))
        return reason;
    return pays(dst.size(), p.body.size(), p.tables, moves_of(landing, dst, p)) ? ZC_REASON_NONE
                                                                                : ZC_REASON_SMALL;
}

/** The thread whose delivery is the first that could be exchanged pays for
 *  the measurement; others go on with the estimates until it is done. */
void zc_context::measure_if_first(std::size_t len)
{
    bool needed = len >= kWorthMeasuring && !(params_.flags & ZC_FLAG_ALWAYS_REBIND);
    if (needed && !measured_.load() && !measured_.exchange(true))
        (void)calibrate(nullptr);
}

/** Calls of mremap() it takes: one for each VMA on either side. */
std::size_t zc_context::moves_of(const slot &landing, range dst, const plan &p)
{
    std::size_t moves = p.pieces.count();
    for_each_part(shifted(p.body, dst.begin, landing.data).begin, p.body.size(), landing.cuts,
                  [&](range) { return ++moves > 0; });
    return moves;
}

/**
 * The user's huge pages are never split, nor traded for small ones: where one
 * reaches over an end of the body, the body ends before it, and where there
 * are any in it, landing buffer must have huge pages at the same places.
 */
zc_reason_t zc_context::fit_page_sizes(const slot &landing, range dst, plan &p)
{
    range trimmed = space_.without_straddling(p.body, p.pieces);
    if (trimmed.empty())
        return ZC_REASON_PAGE_SIZE;
    bool shortened = trimmed != p.body;
    p.body = trimmed;
    p.pieces.clip(trimmed);
    if (shortened && !pays(dst.size(), p.body.size(), p.tables, 2))
        return ZC_REASON_PAGE_SIZE;

    /* Exchanged between addresses congruent modulo 2 MiB a huge page moves
     * whole, seen or not; only else every single one must be looked for. */
    using huge = address_space::huge;
    std::size_t look_at = p.tables ? kFewUnits : SIZE_MAX;
    huge user = space_.huge_inside(p.body, look_at);
    if (user == huge::unknown) {
        /* Then what was found out slowly, when the buffer was acquired, holds
         * for the address it was acquired for. */
        if (!p.tables || landing.expected != dst.begin)
            return ZC_REASON_PAGE_SIZE;
        user = landing.kind.place == placement::huge ? huge::yes : huge::no;
    }
    if ((user == huge::yes) != (landing.kind.place == placement::huge))
        return ZC_REASON_PAGE_SIZE;
    if (user == huge::no)
        return ZC_REASON_NONE;
    range source = shifted(p.body, dst.begin, landing.data);
    bool both = p.tables && space_.huge_inside(source, kFewUnits) != huge::no;
    return both ? ZC_REASON_NONE : ZC_REASON_PAGE_SIZE;
}

/** Does exchanging beat copying? Each further VMA takes one more move. */
bool zc_context::pays(std::size_t len, std::size_t rebindable, bool tables, std::size_t moves)
{
    if (params_.flags & ZC_FLAG_ALWAYS_REBIND)
        return true;
    zc_costs_t c = costs();
    c.mremap_ns_fixed *= static_cast<double>(moves) / 2;
    return zc_cheapest(&c, len, rebindable, tables, means_) == ZC_MEANS_MREMAP;
}

/**
 * Exchanges as planned. Either nothing has happened on return (@moved is 0),
 * or the whole message has been delivered, @moved bytes of it by exchange.
 */
zc_reason_t zc_context::carry_out(slot &landing, range dst, const plan &p, std::size_t &moved)
{
    range source = shifted(p.body, dst.begin, landing.data);
    slot *spare = pool_.take_spare(landing, source);
    if (!spare)
        return ZC_REASON_NO_MEMORY;
    range parking = shifted(source, landing.span.begin, spare->span.begin);

    /* The VMAs that meet in the parking place are the user's, and those that
     * will meet in the user's range are the landing slot's. */
    std::vector<addr_t> parked_cuts{parking.begin}, all_cuts{p.body.begin, p.body.end};
    for (const range &piece : p.pieces)
        parked_cuts.push_back(piece.end - p.body.begin + parking.begin);
    for_each_part(source.begin, source.size(), landing.cuts, [&](range part) {
        all_cuts.push_back(part.begin - source.begin + p.body.begin);
        return true;
    });
    all_cuts.insert(all_cuts.end(), parked_cuts.begin(), parked_cuts.end());
    if (!splits_.admit(all_cuts)) {
        pool_.give_spare(spare);
        return ZC_REASON_MAPPING_LIMIT;
    }

    if (params_.before_rebind)
        params_.before_rebind(params_.before_rebind_arg, as_pointer(p.body.begin), p.body.size());
    exchange_result done =
        exchange_pages({p.body, source.begin, parking.begin, p.pieces, landing.cuts});
    moved = done.moved;
    range taken = range_at(source.begin, moved);
    if (moved) {
        /* Only what did not move is still there to be copied. */
        copy_part({landing.data, taken.begin}, landing.data, dst.begin);
        copy_part({taken.end, landing.data + dst.size()}, landing.data, dst.begin);
        keep_huge_allowed(range_at(p.body.begin, moved), landing);
    }
    pool_.exchanged(landing, taken, *spare, parked_cuts);
    pool_.give_spare(spare);
    if (!done.error)
        return ZC_REASON_NONE;
    if (done.error != -ENOMEM)
        return ZC_REASON_SYSCALL;
    return splits_.at_limit() ? ZC_REASON_MAPPING_LIMIT : ZC_REASON_NO_MEMORY;
}

/* Where huge pages come unasked, landing slots on small pages decline them,
 * and that wish came along to the user, whom it must not rob of them. There is
 * no way back to "no wish", so the user is left with the opposite one. The pool
 * is asked, not the system: reading the setting takes as long as a rebind. */
void zc_context::keep_huge_allowed(range body, const slot &landing)
{
    if (pool_.has_declined_huge() && landing.kind.place != placement::huge &&
        !whole_units(body, kHuge).empty())
        advise(body, MADV_HUGEPAGE);
}

void zc_context::log_once(zc_reason_t reason, range dst)
{
    std::uint32_t bit = 1u << reason;
    if (!params_.log || (logged_.fetch_or(bit) & bit))
        return;
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(),
                  "zc: copied %zu bytes to %#zx: %s (first time; more are only counted)",
                  dst.size(), static_cast<std::size_t>(dst.begin), zc_reason_name(reason));
    params_.log(params_.log_arg, line.data());
}
