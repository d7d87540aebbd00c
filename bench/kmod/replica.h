/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_KMOD_REPLICA_H
#define ZC_BENCH_KMOD_REPLICA_H

/*
 * What the kernel does to page tables and descriptors of pages, done to memory of
 * ours that lies as the kernel's does: one line of 64 bytes for each page, tables of
 * 512 entries that are pages themselves, all of it in huge pages as the kernel maps
 * its own. The same loads, stores and locked operations in the same order; so the
 * same misses and the same waiting for the bus, without a kernel to run it in.
 *
 *   replica_exchange  a step of zc.ko: table.c, rmap.c
 *   replica_move      a step of UFFDIO_MOVE as Linux 6.18 does it, page table by page table
 *
 * What is not in it: entering the kernel, looking for mappings, flushing the TLB.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How the descriptors of consecutive pages lie, among those of all the machine's memory. */
enum frames {
    FRAMES_IN_ORDER,  /* side by side, as after a start */
    FRAMES_SCATTERED, /* anywhere, as after a while */
    FRAMES_AS_HERE,   /* as those that this process was given are */
    FRAMES_KINDS
};

struct replica;

/** Frames that there are descriptors for. */
size_t replica_frames(void);

/**
 * replica_open - two ranges of @pages pages
 * @both:  with pages in both; else the second has only tables, to be moved to
 * @a, @b: numbers of the frames of either, below replica_frames(), for FRAMES_AS_HERE
 */
struct replica *replica_open(size_t pages, enum frames frames, bool both, const uint64_t *a,
                             const uint64_t *b);
void replica_close(struct replica *replica);

/** Exchanges the first @pages pages of both ranges. Return: page tables it took. */
size_t replica_exchange(struct replica *replica, size_t pages);

/** Moves the first @pages pages of the one range to the other, the next time back. */
size_t replica_move(struct replica *replica, size_t pages);

/** That every entry and every descriptor is where it should be. */
bool replica_right(const struct replica *replica);

#endif
