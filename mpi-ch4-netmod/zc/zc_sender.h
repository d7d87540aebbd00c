/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SENDER_H_INCLUDED
#define ZC_SENDER_H_INCLUDED

/* Processes of other worlds, as senders.
 *
 * A process draws a number for what it sends over a connection (zc_foreign.h), and the receiver
 * keeps the order of messages by that number. The sender may write before the receiver knows its
 * process: an entry is made with the first message of a number, and the HELLO that the sender sends
 * first over the network tells the process. Then the receiver can return credit to it (zc_flow.h).
 *
 * Used inside the lock of VCI 0. */

#include "zc_impl.h"

/* The order of what comes from @number. An entry is made if there is none; NULL: no memory. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound(uint64_t number);

/* The same, but NULL if there is no entry. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound_if_any(uint64_t number);

/* The id of the process that sends as @number; 0: it is not known, or there is no entry. */
uint64_t MPIDI_ZC_sender_process(uint64_t number);

/* Is there an entry for @number? */
bool MPIDI_ZC_sender_exists(uint64_t number);

/* @number's FIN has come over shared memory (zc_disconnect.h). An entry is made. */
void MPIDI_ZC_sender_note_shm_fin(uint64_t number);
bool MPIDI_ZC_sender_has_shm_fin(uint64_t number);

/* There is a connection to process @id now: it is told of the windows of all its numbers. */
void MPIDI_ZC_sender_open_windows(uint64_t id);

/* No more will come from @number, or from all numbers of process @id. A caller may hold a message
 * of it: MPIDI_ZC_sender_free_gone() frees the memory. */
void MPIDI_ZC_sender_remove(uint64_t number);
void MPIDI_ZC_sender_remove_all_of(uint64_t id);

/* Frees entries that were removed. Not inside callbacks of UCP. */
void MPIDI_ZC_sender_free_gone(void);

/* Frees messages that came before their turn. */
void MPIDI_ZC_sender_drop_messages(void);

/* Removes and frees all entries. */
void MPIDI_ZC_sender_free_all(void);

/* UCP's callback for a HELLO. */
ucs_status_t MPIDI_ZC_hello_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_SENDER_H_INCLUDED */
