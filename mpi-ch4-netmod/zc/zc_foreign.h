/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FOREIGN_H_INCLUDED
#define ZC_FOREIGN_H_INCLUDED

/* Processes of another MPI_COMM_WORLD have been spawned, or connected through a port.
 *
 * Two processes of different worlds have no ranks in common, and either may send before the other
 * knows it. So each draws a number for the messages that it sends over a connection, and the
 * receiver keeps their order by that number:
 *
 *   CH4's address vector ──▶ foreign: endpoint, our number                            (sending)
 *   our number           ──▶ foreign: credit and answers that come back
 *   number of a sender   ──▶ sender: order of messages, credit; zc_sender.h         (receiving)
 *   id of a process      ──▶ process: its connections and senders; zc_process.h
 *
 * Each is a search in a hash table, so it takes the same time however many there are.
 *
 * A connection is made when CH4 learns of the process, and opened by the first message of either
 * side:
 *
 *   one process                               the other
 *     (CH4 knows the other)                     (CH4 may know this one, or learn of it later)
 *      first message: endpoint
 *      HELLO   number, upid ─────────────────▶  ready for messages of that number
 *      message ──────────────────────────────▶
 *      ◀────────────────── HELLO  number, upid  endpoint, as soon as CH4 knows the process
 *      ◀──────────────── CREDIT for the number
 *
 * The first message over a connection, HELLO, names the process that sends, and its number. From
 * then on the receiver can return credit to that process (zc_flow.h), and ask it for a message.
 * Until the sender has credit, it only announces its messages. There may be more than one
 * connection between two processes, since one side may give one up later than the other; any of
 * them can carry credit and questions.
 *
 * A connection begins over the network, and may continue over shared memory (zc_shm_upgrade.h). Its
 * bulk may have a channel (zc_channel.h). It ends when the last communicator across it is freed on
 * both sides (zc_disconnect.h). When a process has died, requests that wait for an answer of it end
 * with an error.
 *
 * All that is for one VCI: a process has a connection, a number and an order of messages for each
 * VCI that has communicators with the other (zc_foreign_vcis.h), and nothing of one is used for
 * another. A number has its VCI in it. All functions are called inside the lock of the VCI, those
 * that have none inside that of VCI 0. */

#include "zc_upid.h"

/* Makes a connection of VCI 0 to the process of @upid, which is @length bytes long, as @lpid of
 * @avtid. It is opened when it is first used (MPIDI_ZC_lane_connect()). It is called outside UCP's
 * callbacks. */
int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid);

/* Finds the process with @id in CH4's address vector. False: it is not connected. */
bool MPIDI_ZC_foreign_find(uint64_t id, int *avtid, int *lpid);

/* Returns the upid of the process. The connection owns it. */
const MPIDI_ZC_upid_t *MPIDI_ZC_foreign_upid(const struct MPIDI_ZC_foreign *foreign,
                                             size_t * length);

/* Has the connection failed? NULL has not. */
bool MPIDI_ZC_foreign_has_failed(const struct MPIDI_ZC_foreign *foreign);

/* Has it failed since the process has died, or the network to it, and nothing comes any more? */
bool MPIDI_ZC_foreign_is_dead(const struct MPIDI_ZC_foreign *foreign);

/* Returns the number of processes of other worlds that CH4 knows. Any thread may call this. */
int MPIDI_ZC_foreign_known(void);

/* Makes progress on VCI 0, though not for long after @since, until an earlier connection of it to
 * process @id, given up here, has ended. It is called before new ones are made, outside UCP's
 * callbacks, for all that are made together with the same @since. */
void MPIDI_ZC_foreign_await_end_of_earlier(uint64_t id, const MPL_time_t * since);

/* Returns the node of a process of another world: a number of MPIR_Process.node_map or, for a host
 * that this world is not on, a higher one. Those are this process's own. */
int MPIDI_ZC_foreign_node(int avtid, int lpid);

/* Returns an address by which something can be sent to the process that sends as @sender. NULL:
 * there is no connection to it, or its HELLO has not arrived. */
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_sender(uint64_t sender);

/* Have all connections to that process failed, so that nothing more can arrive from it? */
bool MPIDI_ZC_foreign_is_lost(uint64_t sender);

/* Has CH4's connection to that process failed since it has died, and nothing comes any more? */
bool MPIDI_ZC_foreign_sender_is_dead(uint64_t sender);

/* Is it lost, or has it ended though UCX has not noticed that yet? It shares memory with this one. The
 * caller has an error of a transfer from it. */
bool MPIDI_ZC_foreign_has_ended(uint64_t sender);

/* Does that process share memory with this one, and use it? */
bool MPIDI_ZC_foreign_is_near(uint64_t sender);

/* @hello names the process of @upid, @length bytes long, as the sender of a number: returns the
 * connection that it belongs to, which may be a new one that CH4 does not know yet. NULL: there is
 * no memory. */
struct MPIDI_ZC_foreign *MPIDI_ZC_foreign_greeted(const MPIDI_ZC_upid_t * upid, size_t length,
                                                  const MPIDI_ZC_hello_t * hello);

/* Opens the connection to the process that sends as @number, if CH4 knows it. Returns the order of
 * its messages, which may be handled now, or NULL. It is called outside UCP's callbacks. */
MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_connect_back(uint64_t number);

/* When those messages have been handled, answers a FIN that has come behind them. */
void MPIDI_ZC_foreign_answer(uint64_t number);

/* Returns the lane on which this process sends as @self. NULL: that connection has ended. */
MPIDI_ZC_lane_t *MPIDI_ZC_foreign_lane(uint64_t self);

/* Returns the connection over which this process sends as @self, or NULL. */
struct MPIDI_ZC_foreign *MPIDI_ZC_foreign_of_self(uint64_t self);

/* Opens @foreign, which is not open yet. */
int MPIDI_ZC_foreign_open(struct MPIDI_ZC_foreign *foreign);

/* The error of a request that waited for a process that has died. It is a class alone, of which
 * MPI's functions make an error of their own (patches/0046): MPICH remembers only the last 128
 * errors that have a text, and a flood of messages may be lost. */
#define MPIDI_ZC_LOST MPIX_ERR_PROC_FAILED

/* Notes that a request of CH4 waits for an answer over @foreign: a send that has been announced
 * for lack of credit and not been asked for, or a receive that has asked for its data. The request
 * ends with an error if the connection fails before MPIDI_ZC_foreign_answered(). @foreign: NULL in
 * MPI_Finalize, where nothing ends it. */
void MPIDI_ZC_foreign_await_answer(struct MPIDI_ZC_foreign *foreign, MPIR_Request * req);
void MPIDI_ZC_foreign_answered(MPIR_Request * req);

/* The same of a synchronous send whose message has been given to UCX, and that waits for the
 * acknowledgement of its receive, and of a one-sided operation (zc_outstanding.h). */
void MPIDI_ZC_foreign_await_ack(struct MPIDI_ZC_foreign *foreign, MPIR_Request * req);
void MPIDI_ZC_foreign_acked(MPIR_Request * req);

/* The same of a request by which this process is the target of a one-sided operation, and that waits for
 * data until nothing comes any more. MPIDI_ZC_foreign_acked() ends that. */
void MPIDI_ZC_foreign_await_data(struct MPIDI_ZC_foreign *foreign, MPIR_Request * req);

/* The same of a partitioned request that has been started: a send that has not been asked for its
 * data, or a receive that waits for it, which ends when all has been read that the process had
 * sent. */
void MPIDI_ZC_foreign_await_part(struct MPIDI_ZC_foreign *foreign, MPIR_Request * req);
void MPIDI_ZC_foreign_part_answered(MPIR_Request * req);

/* May data that the process that sends as @number has for @req be received? Not if @req has ended,
 * since the connection has failed; it may have been freed then. */
bool MPIDI_ZC_foreign_awaits_part(uint64_t number, const MPIR_Request * req);

/* If @foreign has failed, ends the requests that wait for it. The caller uses none of those any
 * more, or has a reference to them. */
void MPIDI_ZC_foreign_settle(struct MPIDI_ZC_foreign *foreign);

/* Does so with the connection that CH4 has to the process that sends as @number, if there is one. */
void MPIDI_ZC_foreign_settle_sender(uint64_t number);

/* Notes that UCX has refused to send something on @foreign. An endpoint refuses some time before
 * UCX reports its failure. */
void MPIDI_ZC_foreign_refused(struct MPIDI_ZC_foreign *foreign, ucs_status_t status);

/* ---- for channels (zc_channel.h) ---- */

/* Returns the open connection by which the process sends as @sender, and which CH4 knows, or
 * NULL. */
struct MPIDI_ZC_foreign *MPIDI_ZC_foreign_of_sender(uint64_t sender);

/* Is @foreign a connection to the process that sends as @sender? It may be another one than that
 * by which it sends. */
bool MPIDI_ZC_foreign_is_to_sender(const struct MPIDI_ZC_foreign *foreign, uint64_t sender);

/* Returns an address by which something can be sent to the process, over this connection or a later
 * one. NULL: CH4 does not know it (any more), or it is lost. */
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_peer(const struct MPIDI_ZC_foreign *foreign);

/* Returns the place of its channel. */
struct MPIDI_ZC_channel **MPIDI_ZC_foreign_channel(struct MPIDI_ZC_foreign *foreign);

/* All data that was asked for on its channel is there: a FIN that has come beside it may be
 * answered. */
void MPIDI_ZC_foreign_pulled(struct MPIDI_ZC_foreign *foreign);

/* Notes that the connection to the process is lost. It is called outside UCP's callbacks. */
void MPIDI_ZC_foreign_lost(struct MPIDI_ZC_foreign *foreign);

/* Connections of @vci have been lost, and all that their processes had sent has been read: they are
 * dead, and receives that name them end. It is called inside the lock of the VCI, outside UCP's
 * callbacks. */
void MPIDI_ZC_foreign_end_losses(MPIDI_ZC_vci_t * vci);

/* Ends the connections of all VCIs to the processes in a table of the address vector that CH4 gives
 * up. */
void MPIDI_ZC_foreign_detach(int avtid);

/* Ends all connections of all VCIs, in MPI_Finalize. */
void MPIDI_ZC_foreign_finalize(void);

/* Frees the connections that are left then, to processes that have not answered. The workers have
 * been destroyed. */
void MPIDI_ZC_foreign_free(void);

/* Frees messages through ports that have not been received (zc_spawn.c). */
void MPIDI_ZC_port_messages_free(void);

/* UCP's callback for DYNAMIC (zc_spawn.c). */
ucs_status_t MPIDI_ZC_dynamic_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);

#endif /* ZC_FOREIGN_H_INCLUDED */
