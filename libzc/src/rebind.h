/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_REBIND_H_INCLUDED
#define ZC_REBIND_H_INCLUDED

#include "vma.h"

#include <span>

namespace zc {

/** An exchange of pages between a user's range and a landing range. */
struct exchange {
    range user;                    /* whole pages, one or more VMAs */
    addr_t landing;                /* as long as user; holds the message */
    addr_t spare;                  /* as long as user; mapped and empty */
    const vma_pieces &user_pieces; /* user by VMA */
    std::span<const addr_t> cuts;  /* where landing may change VMA, ascending */
};

/** @moved bytes from the front of the range were exchanged; the rest is as it
 *  was. @error: 0 if that is all, else -errno of the call that failed. */
struct exchange_result {
    std::size_t moved;
    int error;
};

/**
 * exchange_pages - two moves of page tables through an empty spare
 *
 *               user        landing     spare
 *    before     old         message     (empty)
 *    move 1     (empty)     message     old
 *    move 2     message     (empty)     old
 *
 * Each move replaces its target in one step of the kernel's and leaves its
 * source mapped, so no address of the three is ever free for another mmap().
 * Between the moves user reads as zeros: it is about to be overwritten, and
 * the program may not look at it before the receive completes.
 *
 * mremap() refuses ranges of several VMAs up to Linux 6.16, and then only
 * after it has unmapped the target. So each call gets one VMA of its source.
 */
exchange_result exchange_pages(const exchange &x) noexcept;

/** The message's pages if they are in one move; for tests and bookkeeping:
 *  calls @each(begin, end) for the VMAs of [at, at + len). */
template <typename F>
void for_each_part(addr_t at, std::size_t len, std::span<const addr_t> cuts, F each)
{
    addr_t end = at + len;
    for (addr_t cut : cuts) {
        if (cut <= at)
            continue;
        if (cut >= end)
            break;
        if (!each(range{at, cut}))
            return;
        at = cut;
    }
    each(range{at, end});
}

} // namespace zc

#endif /* ZC_REBIND_H_INCLUDED */
