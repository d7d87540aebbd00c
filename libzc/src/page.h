/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PAGE_H_INCLUDED
#define ZC_PAGE_H_INCLUDED

#include <algorithm>
#include <cstddef>
#include <cstdint>

/* Addresses are numbers here: most of the library reasons about ranges that it
 * must not touch. A pointer is made only where bytes are read or written. */

namespace zc {

using addr_t = std::uintptr_t;

/* The only geometry rebinding is written for; zc_create() switches rebinding
 * off where the machine's differs. One page table maps kHuge bytes, which is
 * also the size of a transparent huge page. */
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHuge = std::size_t{2} << 20;

constexpr addr_t round_down(addr_t a, std::size_t unit)
{
    return a & ~(addr_t{unit} - 1);
}

constexpr addr_t round_up(addr_t a, std::size_t unit)
{
    return round_down(a + unit - 1, unit);
}

/** Equal offset within a unit? */
constexpr bool congruent(addr_t a, addr_t b, std::size_t unit)
{
    return ((a ^ b) & (unit - 1)) == 0;
}

/** Half-open [begin, end). */
struct range {
    addr_t begin = 0;
    addr_t end = 0;

    constexpr std::size_t size() const { return end - begin; }
    constexpr bool empty() const { return end <= begin; }
    constexpr bool contains(addr_t a) const { return begin <= a && a < end; }
    constexpr bool contains(range r) const { return begin <= r.begin && r.end <= end; }
    friend constexpr bool operator==(range, range) = default;
};

constexpr range range_at(addr_t begin, std::size_t len)
{
    return {begin, begin + len};
}

constexpr range intersection(range a, range b)
{
    range r{std::max(a.begin, b.begin), std::min(a.end, b.end)};
    return r.empty() ? range{} : r;
}

/** The units lying wholly inside @r; empty if there is none. */
constexpr range whole_units(range r, std::size_t unit)
{
    range in{round_up(r.begin, unit), round_down(r.end, unit)};
    return in.empty() ? range{} : in;
}

/** All units that @r touches. */
constexpr range touched_units(range r, std::size_t unit)
{
    return {round_down(r.begin, unit), round_up(r.end, unit)};
}

/** The range as far from @to as @r is from @from; empty stays empty. */
constexpr range shifted(range r, addr_t from, addr_t to)
{
    return r.empty() ? range{} : range{r.begin - from + to, r.end - from + to};
}

inline void *as_pointer(addr_t a)
{
    return reinterpret_cast<void *>(a);
}

inline addr_t as_address(const void *p)
{
    return reinterpret_cast<addr_t>(p);
}

} // namespace zc

#endif /* ZC_PAGE_H_INCLUDED */
