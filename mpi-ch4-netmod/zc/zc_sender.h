/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_SENDER_H_INCLUDED
#define ZC_SENDER_H_INCLUDED

/* This file keeps the state of processes of other worlds as senders.
 *
 * A process draws a number for the messages that it sends over a connection (zc_foreign.h), and the
 * receiver keeps their order by that number. A message may arrive before the receiver knows the
 * process: the first message of a number makes an entry, and the HELLO, which is the first message
 * over the network, names the process. Messages wait until then. If CH4 knows the process they also
 * wait until this process has opened its side of the connection, which follows at once, outside
 * UCP's callbacks (zc_am.c says why):
 *
 *   first message ──▶ UNKNOWN ── HELLO ──▶ KNOWN ── opened, or CH4 does not know it ──▶ READY
 *
 * Then messages are handled, and this process can return credit to the sender (zc_flow.h).
 *
 * A number has its VCI in it, and each VCI has entries of its own. All functions are called inside the
 * lock of that VCI. */

#include "zc_impl.h"
#include "zc_process.h"

struct MPIDI_ZC_foreign;

typedef enum {
    MPIDI_ZC_SENDER_UNKNOWN,
    MPIDI_ZC_SENDER_KNOWN,
    MPIDI_ZC_SENDER_READY,
} MPIDI_ZC_sender_state_t;

/* Returns the order of the messages from @number, and makes an entry if there is none. NULL: there
 * is no memory. *@ready: may messages be handled? */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound(uint64_t number, bool *ready);

/* Returns the order of the messages from @number. NULL: there is no entry. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound_if_any(uint64_t number);

/* Returns the process that sends as @number. NULL: it is not known, or there is no entry. */
MPIDI_ZC_process_t *MPIDI_ZC_sender_process(uint64_t number);

/* Returns the connection over which @number is sent. NULL: it is not known, or has been closed. */
struct MPIDI_ZC_foreign *MPIDI_ZC_sender_connection(uint64_t number);

/* Is there an entry for @number? */
bool MPIDI_ZC_sender_exists(uint64_t number);

/* Notes that the FIN of @number has arrived over shared memory (zc_disconnect.h). It makes an
 * entry if there is none. */
void MPIDI_ZC_sender_note_shm_fin(uint64_t number);
bool MPIDI_ZC_sender_has_shm_fin(uint64_t number);

/* May messages of @number be handled? */
bool MPIDI_ZC_sender_is_ready(uint64_t number);

/* Lets the messages of @number be handled, if its process is known. Returns their order, or
 * NULL. */
MPIDI_ZC_inbound_t *MPIDI_ZC_sender_ready(uint64_t number);

/* A connection to @process has been opened: sends it credit for the windows of all its numbers, and
 * lets their messages be handled at the next progress. */
void MPIDI_ZC_sender_opened(const MPIDI_ZC_process_t * process);

/* The connection of @number, which may be 0, is being closed. */
void MPIDI_ZC_sender_unbind(uint64_t number);

/* Remove the entry of @number, or of all numbers of @process, from which no message follows. A
 * caller may hold a message of it, so MPIDI_ZC_sender_free_gone() frees the memory. The process
 * stays; the caller tidies it. */
void MPIDI_ZC_sender_remove(uint64_t number);
void MPIDI_ZC_sender_remove_all_of(MPIDI_ZC_process_t * process);

/* Frees entries of @vci that were removed. It is not called inside callbacks of UCP. */
void MPIDI_ZC_sender_free_gone(int vci);

/* Frees messages of @vci that overtook others, which never arrive. */
void MPIDI_ZC_sender_drop_messages(MPIDI_ZC_vci_t * vci);

/* Removes and frees all entries of all VCIs, in MPI_Finalize. */
void MPIDI_ZC_sender_free_all(void);

/* Returns how many windows processes of other worlds have, one for each VCI. Any thread may call
 * this. */
size_t MPIDI_ZC_sender_windows(void);

/* UCP's callback for HELLO. */
ucs_status_t MPIDI_ZC_hello_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param);

#endif /* ZC_SENDER_H_INCLUDED */
