/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PARAMS_H_INCLUDED
#define ZC_PARAMS_H_INCLUDED

/* The settings of the netmod are the control variables MPIR_CVAR_CH4_ZC_*. MPI_Init reads them
 * once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "zcp/predictor.h"

typedef struct {
    size_t rndv_threshold;      /* bytes from which a message is announced first */
    size_t one_copy_threshold;  /* the same where the kernel copies from process to process */
    size_t min_threshold, max_threshold;        /* of the two */
    size_t landing_threshold;   /* bytes from which an unexpected message lands */
    size_t landing_budget;
    size_t network_rate;        /* bytes per second; 0: as measured */
    size_t unexpected_budget;
    uint32_t means;             /* of libzc, bits */
    zcp_kind_t predictor;
    int horizon;
    bool landing_thread;
    bool landing_thread_rests;  /* while there is no processor to spare */
    bool intra_node;            /* land what comes from this host, too */
    bool atomics;               /* UCX's, in windows within one host */
    bool far_atomics;           /* and in others */
    bool bundle;                /* send short messages together where that pays */
    bool bundle_always;         /* and where it does not */
    bool bulk_apart;            /* bulk has connections of its own: zc_peer.h */
    bool bulk_shares;           /* but the first of it to a process has not */
    bool channels;              /* bulk travels by libzclane: zc_channel.h */
    bool detach;                /* ranks may leave and come back: zc_detach.h */
    bool calibrate;             /* measure in this process what rebinding costs */
    char *stats_file;           /* owned; NULL: none */
} MPIDI_ZC_params_t;

/* Reads the control variables into @params, which is all zero. The error names the variable whose
 * value is bad. */
int MPIDI_ZC_params_parse(MPIDI_ZC_params_t * params);

/* Decides what "auto" means for connections that carry bulk alone, when UCX's transports are
 * known. */
void MPIDI_ZC_params_choose_connections(MPIDI_ZC_params_t * params);

/* Do the descriptors suffice for UCX's connections and a channel to each of @foreign processes of
 * other worlds, too? */
bool MPIDI_ZC_params_descriptors_suffice(int foreign);

#endif /* ZC_PARAMS_H_INCLUDED */
