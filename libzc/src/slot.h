/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SLOT_H_INCLUDED
#define ZC_SLOT_H_INCLUDED

#include "nodes.h"
#include "page_set.h"

#include <compare>

namespace zc {

/** What a slot's data can be congruent with. */
enum class placement {
    page,  /* modulo 4 KiB, on small pages */
    table, /* modulo 2 MiB, on small pages: whole page tables can move */
    huge,  /* modulo 2 MiB, on huge pages where a whole one fits */
};

/** Slots of one kind are interchangeable: data at the same place in each. */
struct slot_kind {
    placement place;
    std::size_t span_bytes;
    int node = kAnyNode; /* that its memory is to come from */
    friend auto operator<=>(const slot_kind &, const slot_kind &) = default;
};

/**
 * slot - a piece of the arena that holds, or has held, one landing buffer
 *
 *   |<-------------------------- span ------------------------->|
 *   |....|#########################################|............|
 *        ^ data                                    ^ data + len
 *
 * Owned by the pool's free list or by the caller that took it out of there; the
 * owner alone reads and writes its members.
 *
 *   pending is a subset of populated
 *   budget spent on the slot == populated.bytes()
 */
struct slot {
    slot_kind kind{};
    range span;
    addr_t data = 0;     /* first byte of the message; 0 while free */
    std::size_t len = 0; /* acquired length */
    addr_t expected = 0; /* user address it was acquired for; 0 if unknown */

    page_set populated;       /* charged to the budget */
    page_set pending;         /* came from a user: may lack pages */
    std::vector<addr_t> cuts; /* addresses where two VMAs may meet, ascending */
    bool foreign = false;     /* holds VMAs that were a user's */
    range huge_units;         /* advised to be huge pages */
    std::uint64_t idle_since_ns = 0;

    void add_cut(addr_t at);
    /** The first @bytes of the message. */
    range message_of(std::size_t bytes) const { return range_at(data, bytes); }
};

/** Place in the slot for data congruent with @expected. */
addr_t slot_place(slot_kind kind, range span, addr_t expected);

/** The kind of slot for a message: sizes are rounded up to quarters of powers
 *  of two, so that slots are reused and waste at most a fifth of addresses. */
slot_kind slot_kind_for(placement place, std::size_t len, int node = kAnyNode);

} // namespace zc

#endif /* ZC_SLOT_H_INCLUDED */
