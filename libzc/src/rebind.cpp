/* SPDX-License-Identifier: BSD-3-Clause */
#include "rebind.h"

#include "kernel.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace zc {

namespace {

/* Kernels before 6.17 unmap the target of a move first and may fail after it,
 * for want of memory. Then all that can be done is to map the target again,
 * at once, and never over what another thread may have put there. */
void keep_mapped(range r)
{
    if (is_mapped(r))
        return;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(as_pointer(r.begin), r.size(), PROT_READ | PROT_WRITE, kFlags, -1, 0) != MAP_FAILED)
        return;
    for (addr_t page = r.begin; page < r.end; page += kPage)
        (void)mmap(as_pointer(page), kPage, PROT_READ | PROT_WRITE, kFlags, -1, 0);
}

/** Brings the user's pages of @r back from the spare. Where that fails the
 *  user's range is at least mapped, and the message is copied over it. */
void put_back(const exchange &x, range r)
{
    for (const range &piece : x.user_pieces) {
        range part = intersection(piece, r);
        if (part.empty())
            continue;
        addr_t parked = part.begin - x.user.begin + x.spare;
        if (kernel.move(parked, part.begin, part.size()) != 0)
            keep_mapped(part);
    }
}

} // namespace

exchange_result exchange_pages(const exchange &x) noexcept
{
    for (const range &piece : x.user_pieces) {
        addr_t target = piece.begin - x.user.begin + x.spare;
        if (int err = kernel.move(piece.begin, target, piece.size())) {
            keep_mapped(range_at(target, piece.size()));
            put_back(x, {x.user.begin, piece.begin});
            return {0, err};
        }
    }

    exchange_result result{x.user.size(), 0};
    for_each_part(x.landing, x.user.size(), x.cuts, [&](range part) {
        addr_t target = part.begin - x.landing + x.user.begin;
        result.error = kernel.move(part.begin, target, part.size());
        if (result.error) {
            put_back(x, {target, x.user.end});
            result.moved = target - x.user.begin;
        }
        return result.error == 0;
    });
    return result;
}

} // namespace zc
