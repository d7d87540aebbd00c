/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_MATCH_H_INCLUDED
#define ZC_MATCH_H_INCLUDED

/* Matches messages with receives: those that CH4 has posted, and those that are posted when their
 * message waits already (zc_unexpected.h).
 *
 *                        a receive waits?
 *                   yes /               \ no: queued, as
 *          data at hand?                 EAGER      with its data; a send without options
 *        yes /       \ no                FULL       with its data; a synchronous send, or fetched
 *     copied out     announced by        ARRIVAL    announced by UCP: zc_arrival.h
 *                    UCP: zc_arrival.h   ANNOUNCED  for lack of credit (zc_flow.h): asked for
 *                    by CH4: asked for              when matched
 *                                        FETCHING   announced, and asked for: the budget
 *                                                   allows it; FULL when it is here
 *
 * A queued message leaves the queue when it is matched by a receive or by MPI_Mprobe. In FETCHING
 * it exists until its data arrives.
 *
 * Functions are called inside the lock of the VCI, or by the landing thread inside the gate, unless
 * their comment says otherwise. */

#include "zc_impl.h"

enum {
    MPIDI_ZC_EAGER,
    MPIDI_ZC_FULL,
    MPIDI_ZC_ARRIVAL,
    MPIDI_ZC_ANNOUNCED,
    MPIDI_ZC_FETCHING,
};

/* What a queued message has in front of its data unless it is EAGER. */
typedef struct {
    MPIR_Request *sreq;         /* the sender's request; an address there */
    MPIR_Request *rreq;         /* FETCHING: the receive that has been posted meanwhile, or NULL */
    union {
        struct MPIDI_ZC_arrival *arrival;       /* ARRIVAL */
        MPIDI_ZC_message_t *next_fetching;      /* FETCHING, of another world */
    };
    uint64_t bytes;             /* of the message */
    uint32_t flags;             /* of CH4's header */
    bool paid;                  /* of the sender's window */
} MPIDI_ZC_details_t;

/* Matches a send that has arrived, in order, or queues it. @descriptor: UCP's if the data is still
 * at the sender. Otherwise it is NULL, and @data holds the data unless CH4 has only announced
 * it. */
int MPIDI_ZC_match_send(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        MPIDIG_hdr_t * header, const void *data, void *descriptor);

/* Receives the data of a message that was FETCHING. @cookie: from the question for it. */
int MPIDI_ZC_match_fetched(MPIDI_ZC_vci_t * vci, uint64_t cookie, const void *data, size_t bytes);

/* Is @cookie of a question of the netmod? CH4's own are pointers, which are even. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_match_asked(uint64_t cookie)
{
    return cookie & 1;
}

/* Receives @message, which MPIDI_ZC_match_find() has found, and may free it. *@req_p: NULL, or a
 * request of CH4 to use. */
int MPIDI_ZC_match_receive(MPIDI_ZC_vci_t * vci, MPIDI_ZC_message_t * message, void *buf,
                           MPI_Aint count, MPI_Datatype datatype, MPIR_Comm * comm,
                           MPIR_Request ** req_p);

/* These functions take the lock of the VCI. A message of a process of another world that has died, if
 * none has come, is an error. */
int MPIDI_ZC_match_probe(MPIDI_ZC_vci_t * vci, int source, int tag, MPIR_Context_id_t context,
                         MPIR_Comm * comm, int *flag, MPI_Status * status);
int MPIDI_ZC_match_mprobe(MPIDI_ZC_vci_t * vci, int source, int tag, MPIR_Context_id_t context,
                          MPIR_Comm * comm, int *flag, MPIR_Request ** message,
                          MPI_Status * status);
int MPIDI_ZC_match_mrecv(void *buf, MPI_Aint count, MPI_Datatype datatype, MPIR_Request * message);

/* Ends what waits for data of processes of other worlds that have died. */
void MPIDI_ZC_match_lost(MPIDI_ZC_vci_t * vci);

/* Ends the posted receives that name a process of another world that has died. One of any source goes
 * on waiting: others may send. */
void MPIDI_ZC_match_end_receives(MPIDI_ZC_vci_t * vci);

/* Does the same for @rreq, which has just been posted, if any process has died. */
void MPIDI_ZC_match_end_if_lost(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq);

/* Frees every message that has not been matched. */
void MPIDI_ZC_match_drop(MPIDI_ZC_vci_t * vci);

/* Returns the first unexpected message that a receive of this envelope may take, or NULL. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_message_t *MPIDI_ZC_match_find(MPIDI_ZC_vci_t * vci, int source,
                                                                 int tag,
                                                                 MPIR_Context_id_t context)
{
    MPIDI_ZC_message_t *found = NULL;

    if (unlikely(vci->unexpected.first)) {
        MPIDIG_PVAR_QUEUE_TIMER_START(MPIDIG_PT2PT_UNEXP);
        MPIDIG_PVAR_QUEUE_COUNTER_INC(MPIDIG_PT2PT_UNEXP);
        found = MPIDI_ZC_unexpected_find(&vci->unexpected, source, tag, context);
        MPIDIG_PVAR_QUEUE_TIMER_END(MPIDIG_PT2PT_UNEXP, found);
    }
    return found;
}

#endif /* ZC_MATCH_H_INCLUDED */
