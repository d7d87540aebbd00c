/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SENDER_H_INCLUDED
#define ZC_SENDER_H_INCLUDED

/* This file keeps the state of processes of other worlds as senders.
 *
 * A process draws a number for the messages that it sends over a connection (zc_foreign.h), and the
 * receiver keeps their order by that number. A message may arrive before the receiver knows the
 * process: the first message of a number makes an entry, and the HELLO, which is the first message
 * over the network, names the process. Then the receiver can return credit to it (zc_flow.h).
 *
 * All functions are called inside the lock of VCI 0. */

#include "zc_impl.h"

/* Returns the order of the messages from @number, and makes an entry if there is none. NULL: there
 * is no memory. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound(uint64_t number);

/* Returns the order of the messages from @number. NULL: there is no entry. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound_if_any(uint64_t number);

/* Returns the id of the process that sends as @number. 0: it is not known, or there is no entry. */
uint64_t MPIDI_ZC_sender_process(uint64_t number);

/* Is there an entry for @number? */
bool MPIDI_ZC_sender_exists(uint64_t number);

/* Notes that the FIN of @number has arrived over shared memory (zc_disconnect.h). It makes an
 * entry if there is none. */
void MPIDI_ZC_sender_note_shm_fin(uint64_t number);
bool MPIDI_ZC_sender_has_shm_fin(uint64_t number);

/* Sends process @id, to which there is a connection now, credit for the windows of all its
 * numbers. */
void MPIDI_ZC_sender_open_windows(uint64_t id);

/* Remove the entry of @number, or of all numbers of process @id, from which no message follows. A
 * caller may hold a message of it, so MPIDI_ZC_sender_free_gone() frees the memory. */
void MPIDI_ZC_sender_remove(uint64_t number);
void MPIDI_ZC_sender_remove_all_of(uint64_t id);

/* Frees entries that were removed. It is not called inside callbacks of UCP. */
void MPIDI_ZC_sender_free_gone(void);

/* Frees messages that overtook others, which never arrive. */
void MPIDI_ZC_sender_drop_messages(void);

/* Removes and frees all entries. */
void MPIDI_ZC_sender_free_all(void);

/* UCP's callback for HELLO. */
ucs_status_t MPIDI_ZC_hello_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_SENDER_H_INCLUDED */
