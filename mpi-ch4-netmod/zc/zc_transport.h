/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TRANSPORT_H_INCLUDED
#define ZC_TRANSPORT_H_INCLUDED

/* The transports by which UCX reaches other processes: those of this host, unless a comment says
 * otherwise. */

#include <stdbool.h>

typedef struct {
    bool shared_memory;         /* for packets; without: TCP */
    bool one_copy;              /* the kernel copies (CMA, KNEM), or maps (XPMEM), an announced
                                 * message straight from one process to the other */
    bool cma;                   /* by CMA */
    bool streams;               /* other hosts are reached over TCP alone */
    char device[16];            /* of TCP; "": none */
} MPIDI_ZC_transport_t;

/* Asks the context of MPIDI_ZC_global. It is called once, when no other thread is in MPI. */
void MPIDI_ZC_transport_find(MPIDI_ZC_transport_t * transport);

#endif /* ZC_TRANSPORT_H_INCLUDED */
