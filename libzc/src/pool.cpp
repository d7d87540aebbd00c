/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include "kernel.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <new>
#include <sys/mman.h>

namespace zc {

namespace {

/* Each cut costs one more mremap() when the slot is exchanged; beyond this it
 * is cheaper to populate the slot anew. */
constexpr std::size_t kMaxCuts = 8;

/* Free slots looked at, most recently used first. */
constexpr std::size_t kSearch = 32;

/* Slots may be of other kinds than the next message wants, and spares need
 * addresses too, so addresses are reserved far in excess of the budget. */
std::size_t arena_bytes(std::size_t budget)
{
    constexpr std::size_t kLeast = std::size_t{1} << 30;
    constexpr std::size_t kMost = std::size_t{1} << 42;
    return budget >= kMost / 16 ? kMost : std::max(budget * 16, kLeast);
}

/** Appends the pages of @r that have no memory behind them. */
void find_absent(range r, std::vector<range> &absent)
{
    std::array<unsigned char, 1024> resident;
    while (!r.empty()) {
        std::size_t len = std::min(r.size(), resident.size() * kPage);
        if (mincore(as_pointer(r.begin), len, resident.data()) == -1) {
            absent.push_back(r);
            return;
        }
        for (std::size_t i = 0; i < len / kPage; i++) {
            addr_t page = r.begin + i * kPage;
            if (resident[i] & 1)
                continue;
            if (!absent.empty() && absent.back().end == page)
                absent.back().end += kPage;
            else
                absent.push_back(range_at(page, kPage));
        }
        r.begin += len;
    }
}

/* A user's mapping brought its properties along. They must not reach the next
 * user: a buffer that vanishes in forked children, or is zeroed there, would
 * be a nasty surprise. Nothing happens where the property is not set. */
void reset_inherited(range span)
{
    advise(span, MADV_DOFORK);
    advise(span, MADV_KEEPONFORK);
    advise(span, MADV_DODUMP);
}

} // namespace

pool::pool(std::size_t budget_bytes, splits &boundaries)
    : budget_(budget_bytes), boundaries_(boundaries), arena_(arena_bytes(budget_bytes))
{
}

bool pool::has_room() const
{
    constexpr std::size_t kEnough = std::size_t{64} << 20;
    return arena_.size() >= std::min(budget_, kEnough);
}

int pool::acquire(std::size_t len, addr_t expected, placement place, slot **out, int node)
{
    if (len > budget_)
        return -EMSGSIZE;
    slot_kind kind = slot_kind_for(place, std::min(len, arena_.size()), node);
    addr_t at = slot_place(kind, range{}, expected);
    range wanted = touched_units(range_at(at, len), kPage);
    range units = place == placement::huge ? whole_units(range_at(at, len), kHuge) : range{};
    if (wanted.size() > budget_)
        return -EMSGSIZE;

    std::unique_lock lock(mutex_);
    if (kind.span_bytes > arena_.size()) {
        usage_.refused_addresses++;
        return -EMSGSIZE;
    }
    slot *s = take_best_locked(kind, wanted, units);
    if (!s) {
        usage_.refused_addresses++;
        return usage_.in_use_now > 0 ? -ENOBUFS : -ENOMEM;
    }
    s->data = s->span.begin + at;
    s->len = len;
    wanted = shifted(wanted, 0, s->span.begin);
    std::vector<range> missing = s->populated.missing_from(wanted);
    if (!charge_locked(*s, wanted)) {
        usage_.refused_budget++;
        free_locked(s);
        return -ENOBUFS;
    }
    usage_.acquired++;
    usage_.in_use_now += len;
    usage_.in_use_max = std::max(usage_.in_use_max, usage_.in_use_now);
    keep_a_spare_locked(*s, s->huge_units.empty() ? wanted : s->huge_units);
    lock.unlock();

    if (int err = prepare(*s, wanted, missing)) {
        lock.lock();
        usage_.in_use_now -= len;
        destroy_locked(s);
        return err;
    }
    *out = s;
    return 0;
}

void pool::release(slot *s)
{
    std::lock_guard lock(mutex_);
    usage_.in_use_now -= s->len;
    free_locked(s);
}

/**
 * The slot that lacks least of @wanted, but rather one that cannot serve as a
 * spare than one that can: both are needed, and a landing buffer that took the
 * spare would have to be populated while the other's pages lie idle. In case
 * of a tie the slot used last: its pages are likeliest in cache.
 */
slot *pool::take_best_locked(slot_kind kind, range wanted, range units)
{
    free_list &list = free_[kind];
    range core = units.empty() ? wanted : units;
    std::size_t best = list.size(), least = SIZE_MAX;
    std::size_t stop = list.size() > kSearch ? list.size() - kSearch : 0;
    for (std::size_t i = list.size(); i-- > stop && least > 0;) {
        const slot &s = *list[i];
        std::size_t missing =
            wanted.size() - s.populated.bytes_in(shifted(wanted, 0, s.span.begin));
        if (roomy(s, shifted(core, 0, s.span.begin)))
            missing += wanted.size();
        if (missing < least) {
            best = i;
            least = missing;
        }
    }
    if (best == list.size()) {
        slot *s = create_locked(kind);
        if (s)
            set_huge_units(*s, shifted(units, 0, s->span.begin));
        return s;
    }
    slot *s = list[best];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(best));
    range here = shifted(units, 0, s->span.begin);
    if (s->cuts.size() > kMaxCuts || s->huge_units != here) {
        if (!renew_locked(*s)) {
            free_locked(s);
            return nullptr;
        }
        set_huge_units(*s, here);
    }
    return s;
}

slot *pool::create_locked(slot_kind kind)
{
    std::size_t alignment = kind.place == placement::page ? kPage : kHuge;
    auto fresh = std::make_unique<slot>();
    slot *s = fresh.get();
    /* So that giving a slot back never needs memory. */
    free_[kind].reserve(all_.size() + 1);
    range span = arena_.open(kind.span_bytes, alignment);
    while (span.empty() && evict_oldest_locked(false))
        span = arena_.open(kind.span_bytes, alignment);
    if (span.empty())
        return nullptr;
    s->kind = kind;
    s->span = span;
    try {
        all_.emplace(s, std::move(fresh));
    } catch (const std::bad_alloc &) {
        arena_.close(span);
        throw;
    }
    discourage_huge(s->span);
    addr_t ends[] = {span.begin, span.end};
    (void)boundaries_.admit(ends);
    return s;
}

void pool::destroy_locked(slot *s)
{
    usage_.populated_now -= s->populated.bytes();
    arena_.close(s->span);
    all_.erase(s);
}

void pool::free_locked(slot *s)
{
    s->data = 0;
    s->len = 0;
    s->idle_since_ns = now_ns();
    free_[s->kind].push_back(s);
}

/** Makes a slot like new, in place. */
bool pool::renew_locked(slot &s)
{
    if (!arena_.renew(s.span))
        return false;
    usage_.populated_now -= s.populated.bytes();
    s.populated.clear();
    s.pending.clear();
    s.cuts.clear();
    s.foreign = false;
    s.huge_units = {};
    discourage_huge(s.span);
    return true;
}

void pool::drop_locked(slot &s, range r)
{
    for (const range &part : s.populated.common_with(r)) {
        (void)kernel.discard(part);
        usage_.populated_now -= part.size();
    }
    s.populated.erase(r);
    s.pending.erase(r);
}

/* Where huge pages come unasked, a slot on small pages must decline them: a
 * page more than was charged would be a page over the budget. */
void pool::discourage_huge(range r)
{
    if (kernel_thp_mode() == thp_mode::always) {
        has_declined_huge_ = true;
        advise(r, MADV_NOHUGEPAGE);
    }
}

void pool::set_huge_units(slot &s, range units)
{
    if (units.empty())
        return;
    s.huge_units = units;
    s.add_cut(units.begin);
    s.add_cut(units.end);
    advise(units, MADV_HUGEPAGE);
}

/** Gives the longest unused free slot back, of all or only of those that hold
 *  memory. False if there is none. */
bool pool::evict_oldest_locked(bool populated_only)
{
    free_list *oldest = nullptr;
    std::size_t place = 0;
    for (auto &[kind, list] : free_)
        for (std::size_t i = 0; i < list.size(); i++) {
            if (populated_only && list[i]->populated.ranges().empty())
                continue;
            if (!oldest || list[i]->idle_since_ns < (*oldest)[place]->idle_since_ns) {
                oldest = &list;
                place = i;
            }
        }
    if (!oldest)
        return false;
    slot *s = (*oldest)[place];
    oldest->erase(oldest->begin() + static_cast<std::ptrdiff_t>(place));
    usage_.forced_trims++;
    destroy_locked(s);
    return true;
}

/** Charges the pages of @wanted that @s lacks to the budget, making room if
 *  need be: first free slots go, then the slot's own pages outside @wanted. */
bool pool::charge_locked(slot &s, range wanted)
{
    std::size_t more = wanted.size() - s.populated.bytes_in(wanted);
    auto fits = [&] { return usage_.populated_now + more <= budget_; };
    while (!fits() && evict_oldest_locked(true))
        ;
    if (!fits()) {
        drop_locked(s, {s.span.begin, wanted.begin});
        drop_locked(s, {wanted.end, s.span.end});
    }
    if (!fits())
        return false;
    s.populated.insert(wanted);
    usage_.populated_now += more;
    usage_.populated_max = std::max(usage_.populated_max, usage_.populated_now);
    usage_.pages_populated += more / kPage;
    return true;
}

/** Backs the slot's @wanted pages with memory; @missing ones surely lack it. */
int pool::prepare(slot &s, range wanted, std::vector<range> missing)
{
    if (s.foreign)
        reset_inherited(s.span);
    for (const range &part : s.pending.common_with(wanted))
        find_absent(part, missing);
    s.pending.erase(wanted);
    for (const range &part : missing) {
        if (s.foreign && intersection(part, s.huge_units).empty()) {
            /* The mapping may have come with a user's wish for huge pages. */
            advise(part, MADV_NOHUGEPAGE);
            s.add_cut(part.begin);
            s.add_cut(part.end);
        }
        if (int err = s.kind.node == kAnyNode ? kernel.populate(part)
                                              : kernel.populate_on(part, s.kind.node))
            return err == -EINTR ? -EAGAIN : -ENOMEM;
    }
    return 0;
}

/** Makes sure that the delivery of @s will find a spare without delay. */
void pool::keep_a_spare_locked(const slot &s, range body)
{
    if (!has_room())
        return;
    for (const slot *other : free_[s.kind])
        if (roomy(*other, shifted(body, s.span.begin, other->span.begin)))
            return;
    if (slot *fresh = create_locked(s.kind))
        free_locked(fresh);
}

/* An exchange frees what is in its way; a few pages are cheap to lose, many
 * would cost both their freeing now and their population later. */
bool pool::roomy(const slot &s, range body)
{
    return s.populated.bytes_in(body) <= body.size() / 4;
}

slot *pool::take_spare(const slot &landing, range body)
{
    std::lock_guard lock(mutex_);
    free_list &list = free_[landing.kind];
    std::size_t best = list.size(), least = SIZE_MAX;
    for (std::size_t i = list.size(); i-- > 0 && least > 0;) {
        std::size_t full =
            list[i]->populated.bytes_in(shifted(body, landing.span.begin, list[i]->span.begin));
        if (full < least) {
            best = i;
            least = full;
        }
    }
    slot *s = nullptr;
    if (best < list.size() &&
        roomy(*list[best], shifted(body, landing.span.begin, list[best]->span.begin))) {
        s = list[best];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(best));
    } else {
        s = create_locked(landing.kind);
    }
    if (s)
        drop_locked(*s, shifted(body, landing.span.begin, s->span.begin));
    return s;
}

void pool::give_spare(slot *spare)
{
    std::lock_guard lock(mutex_);
    free_locked(spare);
}

void pool::exchanged(slot &landing, range body, slot &spare, std::span<const addr_t> parked_cuts)
{
    std::lock_guard lock(mutex_);
    try {
        range parked = shifted(body, landing.span.begin, spare.span.begin);
        page_set spare_populated = spare.populated, spare_pending = spare.pending;
        page_set landing_populated = landing.populated, landing_pending = landing.pending;
        spare_populated.insert(parked);
        spare_pending.insert(parked);
        landing_populated.erase(body);
        landing_pending.erase(body);
        for (addr_t cut : parked_cuts)
            spare.add_cut(cut);
        spare.foreign = true;
        spare.huge_units = shifted(landing.huge_units, landing.span.begin, spare.span.begin);
        std::swap(spare.populated, spare_populated);
        std::swap(spare.pending, spare_pending);
        std::swap(landing.populated, landing_populated);
        std::swap(landing.pending, landing_pending);
    } catch (const std::bad_alloc &) {
        /* No memory to write down what is where: begin anew with nothing. */
        (void)renew_locked(spare);
        (void)renew_locked(landing);
    }
}

/* One at a time: giving pages back takes milliseconds, and a thread may be waiting for
 * a slot that holds some. */
std::size_t pool::trim(std::uint64_t older_than_ns)
{
    std::size_t given_back = 0;
    for (bool found = true; found;) {
        std::lock_guard lock(mutex_);
        found = false;
        for (auto &[kind, list] : free_) {
            auto idle = std::ranges::find_if(
                list, [&](const slot *s) { return s->idle_since_ns <= older_than_ns; });
            if (idle == list.end())
                continue;
            found = true;
            slot *s = *idle;
            list.erase(idle);
            given_back += s->populated.bytes();
            destroy_locked(s);
            break;
        }
    }
    return given_back;
}

pool::usage pool::report() const
{
    std::lock_guard lock(mutex_);
    return usage_;
}

} // namespace zc
