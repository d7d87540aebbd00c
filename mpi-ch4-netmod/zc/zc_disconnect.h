/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_DISCONNECT_H_INCLUDED
#define ZC_DISCONNECT_H_INCLUDED

/* This file ends connections to processes of other worlds.
 *
 * CH4 gives a connection up when the last communicator across it is freed, on each side at its own
 * time. A side then sends a FIN on each of its endpoints, and nothing follows it, but that it does not
 * let the peer leave (zc_path.h). The side closes
 * the endpoints when nothing more can arrive and nothing is under way:
 *
 *   what this side sends: MPIDI_ZC_fin_t         what it receives: MPIDI_ZC_peer_fin_t
 *
 *   FIN_NONE                                     PEER_OPEN
 *     │ CH4 gives it up, or the peer finalizes     │ FIN over the network
 *     ▼   ──── FIN, on each endpoint ───────▶      ▼
 *   FIN_SENT                                     PEER_FIN_NET    if one by shared memory follows
 *     │   ◀─── FIN_ACK ──────────────────────      │ FIN over shared memory; it may be the first
 *     ▼                                            ▼
 *   FIN_ACKED                                    PEER_CLOSED ──── FIN_ACK ────▶
 *
 * A connection that neither side has opened needs no FIN, unless processes leave (zc_path.h): then the
 * other one has to know that this one does not tell it of a new address any more, and the side that gives
 * it up opens it. One that the peer has opened exists on
 * this side, too, whether CH4 knows it (any more) or not; if this side has not opened it when the
 * peer's FIN arrives, it does so then, outside UCP's callbacks, to answer. So a connection is open on
 * both sides before it ends on either, or on none. A FIN may overtake data that comes by a channel
 * (zc_channel.h), and is answered when that is there.
 *
 * When a side is in FIN_ACKED and PEER_CLOSED, or the connection has failed, it closes the
 * endpoints and then frees the connection (MPIDI_ZC_close_t):
 *
 *   OPEN ──▶ FLUSHING ──▶ CLOSING ──▶ freed
 *              │  failed    ▲ │ UCX does not close an endpoint
 *              ▼            │ ▼
 *            BROKEN ────────┘ UNCLOSED       freed with the worker
 *
 * The sender of a FIN waits for its acknowledgement, though not for long, before it connects to the
 * same process again (zc_shm_upgrade.h). A FIN_FINALIZE says that its sender is in MPI_Finalize: the
 * peer answers at once, though its CH4 may give the connection up much later.
 *
 * All functions are called inside the lock of the connection's VCI. */

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
    bool unanswered;            /* PEER_FIN_NET: what came before the FIN has not been handled yet,
                                 * or not all data that was asked for has come by the channel */
    bool finalizes;             /* that was a FIN_FINALIZE */
    bool has_shm;               /* a FIN by shared memory belongs to it */
    bool finalizing;            /* this side has ended it in MPI_Finalize */
    bool postponed;             /* CH4 has given it up, but the path is not open: zc_foreign_path.h */
    MPIDI_ZC_fin_message_t messages[MPIDI_ZC_FIN_KINDS];        /* UCP reads them until sent */
    int nr_sending;             /* of the messages */
    int nr_endpoints;           /* from FLUSHING: those that are not closed yet */
    struct MPIDI_ZC_foreign *next_unclosed;
} MPIDI_ZC_disconnect_t;

/* May messages still be sent on @f? */
bool MPIDI_ZC_disconnect_may_send(const struct MPIDI_ZC_foreign *f);

/* Has the peer's FIN arrived, at least over the network? */
bool MPIDI_ZC_disconnect_peer_has_finished(const struct MPIDI_ZC_foreign *f);

/* Ends @f, which CH4 has given up and which has no place in its address vector any more. May free
 * @f. */
void MPIDI_ZC_disconnect(struct MPIDI_ZC_foreign *f);

/* If the peer's FIN has waited until what came before it was handled, opens @f, if it is not open,
 * and answers. May free @f. It is called outside UCP's callbacks. */
void MPIDI_ZC_disconnect_answer(struct MPIDI_ZC_foreign *f);

/* Closes @f if CH4 has given it up, and it has failed or both sides have acknowledged the FINs. May
 * free @f. */
void MPIDI_ZC_disconnect_close_if_over(struct MPIDI_ZC_foreign *f);

/* Have both sides acknowledged the other's FIN? */
bool MPIDI_ZC_disconnect_is_done(const struct MPIDI_ZC_foreign *f);

/* Does UCX still close an endpoint of a connection of @vci that is over? */
bool MPIDI_ZC_disconnect_is_closing(int vci);

/* Closes endpoints of @vci that could not be closed inside callbacks of UCP. It is called outside
 * those. */
void MPIDI_ZC_disconnect_progress(int vci);

/* Ends all connections of all VCIs, in MPI_Finalize. It waits for the peers, but not for ever. */
void MPIDI_ZC_disconnect_all(void);

/* Frees the connections that are left then. The workers have been destroyed. */
void MPIDI_ZC_disconnect_free(void);

/* UCP's callback for FIN. */
ucs_status_t MPIDI_ZC_fin_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_DISCONNECT_H_INCLUDED */
