/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TRANSPORT_H_INCLUDED
#define ZC_TRANSPORT_H_INCLUDED

/* What UCX has found to reach other processes by, of this host unless it says otherwise. */

#include <stdbool.h>

typedef struct {
    bool shared_memory;         /* for packets; without: TCP */
    bool one_copy;              /* and the kernel copies (CMA, KNEM), or maps (XPMEM), what is
                                 * announced, straight from one process to the other */
    bool streams;               /* other hosts are reached over TCP alone */
    char device[16];            /* by which; "": none */
} MPIDI_ZC_transport_t;

/* Asks the context of MPIDI_ZC_global. Once, where no other thread is in MPI. */
void MPIDI_ZC_transport_find(MPIDI_ZC_transport_t * transport);

#endif /* ZC_TRANSPORT_H_INCLUDED */
