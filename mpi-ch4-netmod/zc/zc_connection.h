/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_CONNECTION_H_INCLUDED
#define ZC_CONNECTION_H_INCLUDED

/* The structure of a connection to a process of another world is private to zc_foreign.c, which
 * makes and finds connections, zc_foreign_vcis.c, zc_shm_upgrade.c and zc_disconnect.c.
 *
 * It is used inside the lock of its VCI. */

#include "zc_disconnect.h"
#include "zc_process.h"
#include "zc_processors.h"
#include "zc_sender.h"
#include "zc_shm_upgrade.h"
#include "zc_table.h"
#include "zc_upid.h"

typedef struct MPIDI_ZC_foreign {
    struct MPIDI_ZC_foreign *next, *previous;   /* of all connections of the VCI, newest first */
    int vci;
    struct MPIDI_ZC_foreign *next_of_process;   /* older */
    MPIDI_ZC_process_t *process;        /* NULL: UCX is closing the endpoints */
    MPIDI_ZC_link_t link;       /* by the number of the messages that this process sends */

    MPIDI_ZC_upid_t *upid;      /* owned */
    size_t upid_length;
    int node;
    uint64_t other;             /* the number of the peer's messages; 0: no HELLO has arrived */
    bool knows_not;             /* HELLO: of processes that leave, without DETACH */
    MPIDI_ZC_hello_t *hello;    /* owned; UCP reads it until it is sent */
    ucp_ep_h net_ep;            /* over the network; NULL: not open */
    ucp_ep_h shm_ep;            /* over shared memory, or NULL */
    int pid;                    /* of the process then; 0: it cannot be seen by that */
    bool failed;                /* nothing can be sent */
    bool lost;                  /* since the process or the network has failed */
    bool dead;                  /* what it had sent has been read: nothing comes any more */

    int avtid, lpid;            /* in CH4's address vector; -1: CH4 does not know it (any more) */
    MPIDI_ZC_addr_t *address;   /* other VCIs than 0: the peer there; owned */
    struct MPIDI_ZC_foreign **others;   /* VCI 0: the connections of the others from 1 on, NULL while
                                         * there are none: zc_foreign_vcis.h; owned */
    struct MPIDI_ZC_foreign *next_given_up, *next_lost;
    int path;                   /* its number, or -1: zc_foreign_path.h */
    bool told_lost;             /* other VCIs than 0; inside the lock of VCI 0 */
    bool first_lost;            /* likewise: VCI 0's connection to the process is lost, and so will this one be */
    /* requests of CH4's: zc_foreign.h */
    MPIR_Request *await_answer, *await_ack, *await_data, *await_part;

    MPIDI_ZC_neighbour_t *neighbour;    /* its processors if it is on this machine, or NULL */
    struct MPIDI_ZC_channel *channel;   /* for its bulk, or NULL */
    bool shm_offered;           /* zc_shm_upgrade.h */
    MPIDI_ZC_host_message_t *host;      /* a HOST that has come before CH4 knows it; owned */
    MPIDI_ZC_disconnect_t disconnect;   /* zc_disconnect.h */
} MPIDI_ZC_foreign_t;

/* All connections that are not being closed, by VCI. */
extern MPIDI_ZC_foreign_t *MPIDI_ZC_connections[MPIDI_CH4_MAX_VCIS];

/* Makes a connection of @vci to the process of @upid, @length bytes long, which is not open. NULL:
 * there is no memory. */
MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_new(int vci, const MPIDI_ZC_upid_t * upid, size_t length);

/* Returns the connection of @vci that CH4 shall have to the process of @upid: one that the process
 * has opened before CH4 knew it here, or a new one. NULL: there is no memory. */
MPIDI_ZC_foreign_t *MPIDI_ZC_foreign_for_ch4(int vci, const MPIDI_ZC_upid_t * upid, size_t length);

/* Does a new connection of @vci to process @id wait for the end of an earlier one, given up here?
 * CH4 may still use that on the other side, so it does not wait for long after @since. */
bool MPIDI_ZC_foreign_lingers(int vci, uint64_t id, const MPL_time_t * since);

/* CH4 has @f from here on, which has its place in the address vector. Opens it if the process has
 * sent something. */
int MPIDI_ZC_foreign_attach(MPIDI_ZC_foreign_t * f, MPIDI_ZC_addr_t * peer);

/* Ends @f, which CH4 has given up. */
void MPIDI_ZC_foreign_end(MPIDI_ZC_foreign_t * f);

/* Takes @f out of all tables. */
void MPIDI_ZC_foreign_remove(MPIDI_ZC_foreign_t * f);

/* @f has the endpoint @net_ep over the network from here on, or none (NULL). */
void MPIDI_ZC_foreign_opened(MPIDI_ZC_foreign_t * f, ucp_ep_h net_ep);

/* Makes an endpoint to @upid, over the network or over shared memory. */
int MPIDI_ZC_foreign_endpoint(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_upid_t * upid, ucp_ep_h * ep);

/* @f cannot be used any more, because of @status. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_foreign_set_failed(MPIDI_ZC_foreign_t * f,
                                                          ucs_status_t status)
{
    f->failed = true;
    if (MPIDI_ZC_is_loss(status)) {
        f->lost = MPIDI_ZC_VCI(f->vci).has_losses = true;
    }
}

/* Have all connections to @process failed, or been given up by CH4? */
bool MPIDI_ZC_foreign_process_is_lost(const MPIDI_ZC_process_t * process);

MPL_STATIC_INLINE_PREFIX MPIDI_ZC_addr_t *MPIDI_ZC_foreign_address(const MPIDI_ZC_foreign_t * f)
{
    return f->address ? f->address : &MPIDI_ZC_AV(&MPIDIU_get_av(f->avtid, f->lpid));
}

#endif /* ZC_CONNECTION_H_INCLUDED */
