/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_UPID_H_INCLUDED
#define ZC_UPID_H_INCLUDED

/* A upid (MPIDI_ZC_upid_t) is the identity and the address of a process. Any thread may call these
 * functions. */

#include "zc_impl.h"

MPL_STATIC_INLINE_PREFIX const MPIDI_ZC_upid_t *MPIDI_ZC_upid_of(int world_rank)
{
    return (const MPIDI_ZC_upid_t *) ((const char *) MPIDI_ZC_global.world +
                                      (size_t) world_rank * MPIDI_ZC_global.world_stride);
}

/* Returns the upid of rank @rank that other worlds get, MPIDI_ZC_global.net_stride bytes. */
MPL_STATIC_INLINE_PREFIX const MPIDI_ZC_upid_t *MPIDI_ZC_net_upid_of(int rank)
{
    return (const MPIDI_ZC_upid_t *) ((const char *) MPIDI_ZC_global.nets +
                                      (size_t) rank * MPIDI_ZC_global.net_stride);
}

MPL_STATIC_INLINE_PREFIX const MPIDI_ZC_upid_t *MPIDI_ZC_upid_self(void)
{
    return MPIDI_ZC_upid_of(MPIR_Process.rank);
}

/* Returns the bytes that @length bytes take in a table of upids. */
MPL_STATIC_INLINE_PREFIX size_t MPIDI_ZC_whole_words(size_t length)
{
    return (length + 7) & ~(size_t) 7;
}

/* Draws a random id, without the bit MPIDI_ZC_FOREIGN. */
int MPIDI_ZC_upid_draw(uint64_t * id);

/* Identifies the host, and the container, of this process. */
uint64_t MPIDI_ZC_own_host(void);

/* Do two hosts (containers, for example) run under one kernel? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_same_machine(uint64_t host, uint64_t other)
{
    return host >> 32 == other >> 32;
}

#endif /* ZC_UPID_H_INCLUDED */
