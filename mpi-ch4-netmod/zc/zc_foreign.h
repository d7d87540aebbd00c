/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FOREIGN_H_INCLUDED
#define ZC_FOREIGN_H_INCLUDED

/* Processes of another MPI_COMM_WORLD: spawned, or connected through a port.
 *
 * Two of them share no ranks, and either may write before the other knows it. So each draws a number
 * for what it sends over a connection, and the receiver keeps the order of messages by that number:
 *
 *   CH4's address vector ──▶ foreign: endpoint, our number                            (sending)
 *   number of a sender ────▶ sender: order of messages, credit; zc_sender.h         (receiving)
 *
 * The first message over a connection, HELLO, tells which process the sender is, and its number: the
 * receiver then knows where to return credit to (zc_flow.h), and whom to ask for a message. Until the
 * sender has credit, it announces what it sends. There may be more than one connection between two
 * processes, since one side may give one up later than the other; for all this any will do.
 *
 * A connection begins over the network, and may go on over shared memory (zc_shm_upgrade.h). It ends
 * when the last communicator across it is freed on both sides (zc_disconnect.h). When a process has
 * died, requests that wait for an answer of it end with an error.
 *
 * All of it is on VCI 0, and used inside its lock: CH4 keeps communicators across worlds there, since
 * worlds need not have the same number of VCIs. */

#include "zc_upid.h"

/* Connects to the process of @upid, @length bytes, as @lpid of @avtid. */
int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid);

/* Where the process with @id is connected already. */
bool MPIDI_ZC_foreign_find(uint64_t id, int *avtid, int *lpid);

/* The upid it was connected by; owned by the connection. */
const MPIDI_ZC_upid_t *MPIDI_ZC_foreign_upid(const struct MPIDI_ZC_foreign *foreign,
                                             size_t * length);

/* NULL has not. */
bool MPIDI_ZC_foreign_has_failed(const struct MPIDI_ZC_foreign *foreign);

/* The node of a foreign process, in the numbers of MPIR_Process.node_map and, for
 * hosts that our world is not on, beyond them. Only this process knows them so. */
int MPIDI_ZC_foreign_node(int avtid, int lpid);

/* The process that sends as @sender, to send something to it: over any connection that there is.
 * NULL: there is none, or no HELLO has come. */
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_sender(uint64_t sender);

/* Nothing more can come from it: all connections to it have failed. */
bool MPIDI_ZC_foreign_is_lost(uint64_t sender);

/* The lane on which we send as @self; NULL: that connection has ended. */
MPIDI_ZC_lane_t *MPIDI_ZC_foreign_lane(uint64_t self);

/* The error of what waited for a process that has died. The class alone: of errors with a text
 * MPICH remembers the last few only, and a flood of messages may be lost. */
#define MPIDI_ZC_LOST MPIX_ERR_PROC_FAILED

/* A request of CH4's that waits for an answer over @foreign: a send that has been announced for
 * lack of credit and not been asked for, or a receive that has asked for its data (not what awaits
 * the acknowledgement of a synchronous send). It ends with an error if the connection fails before
 * MPIDI_ZC_foreign_awaited(). @foreign: NULL in MPI_Finalize, where nothing ends it. */
void MPIDI_ZC_foreign_await(struct MPIDI_ZC_foreign *foreign, MPIR_Request * req);
void MPIDI_ZC_foreign_awaited(MPIR_Request * req);

/* If @foreign has failed, ends what waits for it. The caller uses none of those requests any
 * more, or has a reference to them. */
void MPIDI_ZC_foreign_settle(struct MPIDI_ZC_foreign *foreign);

/* UCX has refused to send something to it. An endpoint does that some time before UCX tells of its
 * failure. */
void MPIDI_ZC_foreign_refused(struct MPIDI_ZC_foreign *foreign, ucs_status_t status);

/* CH4 gives up an address-vector table: the connections of all in it end. */
void MPIDI_ZC_foreign_detach(int avtid);

/* MPI_Finalize: ends all connections. */
void MPIDI_ZC_foreign_finalize(void);

/* Frees what is left then, of processes that have not answered. The workers are gone. */
void MPIDI_ZC_foreign_free(void);

/* Messages through ports that nothing has received (zc_spawn.c). */
void MPIDI_ZC_port_messages_free(void);

ucs_status_t MPIDI_ZC_dynamic_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);

#endif /* ZC_FOREIGN_H_INCLUDED */
