/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_DISCONNECT_H_INCLUDED
#define ZC_DISCONNECT_H_INCLUDED

/* The end of a connection to a process of another world.
 *
 * CH4 gives a connection up when the last communicator across it is freed, on each side at its own
 * time. A side then sends a FIN on each of its endpoints, behind which nothing follows, and closes
 * them when nothing more can come or is under way:
 *
 *   what this side sends: MPIDI_ZC_fin_t         what it receives: MPIDI_ZC_peer_fin_t
 *
 *   FIN_NONE                                     PEER_OPEN
 *     │ CH4 gives it up, or the peer finalizes     │ FIN over the network
 *     ▼   ──── FIN, on each endpoint ───────▶      ▼
 *   FIN_SENT                                     PEER_FIN_NET    if one over shared memory is to come
 *     │   ◀─── FIN_ACK ──────────────────────      │ FIN over shared memory, perhaps the first
 *     ▼                                            ▼
 *   FIN_ACKED                                    PEER_CLOSED ──── FIN_ACK ────▶
 *
 *   Both FIN_ACKED and PEER_CLOSED, or the connection has failed: its endpoints are closed, and
 *   then it is freed (MPIDI_ZC_close_t):
 *
 *   OPEN ──▶ FLUSHING ──▶ CLOSING ──▶ freed
 *              │  failed    ▲ │ UCX does not close an endpoint
 *              ▼            │ ▼
 *            BROKEN ────────┘ UNCLOSED       freed with the worker
 *
 * Until a FIN is acknowledged its sender does not connect to the same process again, so that what
 * comes belongs to one connection or to the other. A process in MPI_Finalize says so in its FIN; the
 * peer answers at once, though its CH4 may give the connection up much later.
 *
 * Used inside the lock of VCI 0. */

#include "zc_impl.h"

struct MPIDI_ZC_foreign;

typedef enum {
    MPIDI_ZC_FIN_NONE,
    MPIDI_ZC_FIN_SENT,
    MPIDI_ZC_FIN_ACKED,
} MPIDI_ZC_fin_t;

typedef enum {
    MPIDI_ZC_PEER_OPEN,
    MPIDI_ZC_PEER_FIN_NET,
    MPIDI_ZC_PEER_CLOSED,
} MPIDI_ZC_peer_fin_t;

typedef enum {
    MPIDI_ZC_CLOSE_OPEN,
    MPIDI_ZC_CLOSE_FLUSHING,
    MPIDI_ZC_CLOSE_BROKEN,
    MPIDI_ZC_CLOSE_CLOSING,
    MPIDI_ZC_CLOSE_UNCLOSED,
} MPIDI_ZC_close_t;

/* The part of a connection that is about its end. All zero at first. */
typedef struct {
    MPIDI_ZC_fin_t fin;
    MPIDI_ZC_peer_fin_t peer;
    MPIDI_ZC_close_t close;
    uint64_t other;             /* from PEER_FIN_NET: the number of what the peer has sent */
    MPIDI_ZC_fin_message_t messages[MPIDI_ZC_FIN_KINDS];        /* UCP reads them until sent */
    int nr_sending;             /* of the messages */
    int nr_endpoints;           /* from FLUSHING: that are not closed yet */
    struct MPIDI_ZC_foreign *next_unclosed;
} MPIDI_ZC_disconnect_t;

/* May messages follow on @f? */
bool MPIDI_ZC_disconnect_may_send(const struct MPIDI_ZC_foreign *f);

/* Has the peer's FIN come, at least over the network? */
bool MPIDI_ZC_disconnect_peer_has_finished(const struct MPIDI_ZC_foreign *f);

/* CH4 has given @f up, which has no place in its address vector any more. May free @f. */
void MPIDI_ZC_disconnect(struct MPIDI_ZC_foreign *f);

/* Closes @f if CH4 has given it up, and it has failed or both sides have acknowledged the FINs. May
 * free @f. */
void MPIDI_ZC_disconnect_close_if_over(struct MPIDI_ZC_foreign *f);

/* Frees @f, which CH4 does not know yet; later, if it has an endpoint. */
void MPIDI_ZC_disconnect_unused(struct MPIDI_ZC_foreign *f);

/* Closes endpoints that cannot be closed inside callbacks of UCP. Outside of these. */
void MPIDI_ZC_disconnect_progress(void);

/* MPI_Finalize: all connections end. Waits for their peers, but not for ever. */
void MPIDI_ZC_disconnect_all(void);

/* What is left then; the workers are gone. */
void MPIDI_ZC_disconnect_free(void);

/* UCP's callback. */
ucs_status_t MPIDI_ZC_fin_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_DISCONNECT_H_INCLUDED */
