/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PATH_MESSAGE_H_INCLUDED
#define ZC_PATH_MESSAGE_H_INCLUDED

/* What the two ends of a path tell each other (zc_path.h). UCX's callback cannot answer a message, as
 * zc_am.c explains, so what has arrived is kept until it is handled. What cannot be sent for lack of
 * memory is noted by its kind, and made anew from the path when it is sent.
 *
 * All functions are called inside the locks of all VCIs (zc_vci_locks.h), or by the landing thread inside the
 * gate, unless their comment says otherwise. */

#include "zc_path.h"

typedef struct MPIDI_ZC_path_received {
    struct MPIDI_ZC_path_received *next;
    MPIDI_ZC_path_message_t message;
    size_t length;
    char data[];                /* of PAUSE and PARKS MPIDI_ZC_path_numbers_t of each VCI, and of PAUSE to
                                 * another world what zc_liveness.h offers; of REBIND and INTRODUCE a
                                 * list of addresses; the key of KEY */
} MPIDI_ZC_path_received_t;

void MPIDI_ZC_path_messages_init(void);
void MPIDI_ZC_path_messages_free(void);

/* Has a message arrived that is not taken, or could one not be sent? Any thread may call this, and one that has
 * the lock of a VCI is told of all that have arrived there. */
bool MPIDI_ZC_path_messages_wait(void);

/* Returns a message that has arrived, the first of those of its VCI, which the caller frees (MPL_free()), or
 * NULL. */
MPIDI_ZC_path_received_t *MPIDI_ZC_path_take_message(void);

/* REBIND carries it; that of a rank that has never left is 0. The lock of VCI 0 suffices. */
void MPIDI_ZC_path_set_own_incarnation(uint32_t incarnation);
uint32_t MPIDI_ZC_path_own_incarnation(void);

/* Returns the endpoint for messages to @rank, or NULL. The lock of the path's first VCI suffices. */
ucp_ep_h MPIDI_ZC_path_endpoint(int rank);

/* Sends @message to @rank over @ep, with @length bytes at @data. @ep may be NULL, which is an error. The same
 * lock suffices. */
ucs_status_t MPIDI_ZC_path_send(ucp_ep_h ep, int rank, MPIDI_ZC_path_message_t message,
                                const void *data, size_t length);

/* Sends @message over @ep to the process that has sent @received, which may be of another world and not
 * known here any more. */
ucs_status_t MPIDI_ZC_path_answer(ucp_ep_h ep, const MPIDI_ZC_path_received_t * received,
                                  MPIDI_ZC_path_message_t message);

/* Sends a message of @kind to @rank, made from the path. If there is no memory, it is sent later. */
void MPIDI_ZC_path_tell(int rank, MPIDI_ZC_tell_t kind);

/* Sends what could not be sent. */
void MPIDI_ZC_path_tell_again(void);

/* UCP's callback for PATH. It is called inside the lock of its VCI. */
ucs_status_t MPIDI_ZC_path_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_PATH_MESSAGE_H_INCLUDED */
