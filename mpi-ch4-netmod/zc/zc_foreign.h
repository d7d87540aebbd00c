/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FOREIGN_H_INCLUDED
#define ZC_FOREIGN_H_INCLUDED

/* Processes of another MPI_COMM_WORLD: spawned, or connected through a port.
 *
 * Two of them share no ranks, and either may write before the other knows it. So
 * each draws a number for what it sends over a connection; the receiver keeps
 * the order of messages by that number and needs to know nothing else:
 *
 *   CH4's address vector ──▶ foreign: endpoint, our number           (sending)
 *   number of the sender ──▶ inbound: next sequence, early messages  (receiving)
 *
 * What each says first over a connection is which process it is, and its number: so the other
 * side knows who is to be told of credit (zc_flow.h), or asked for a message. Until it is told
 * of credit, it announces what it sends. Which of our connections belongs to which of the other
 * side's does not matter for that: one side may still use an earlier one, or have more than one.
 *
 * It begins over the network, whose transports notice a death, and which a port name
 * has room for. On one host each side then offers the other its whole address; if both
 * do, it goes on over shared memory.
 *
 * A connection ends when the last communicator across it is freed on both
 * sides: each says goodbye, and closes its endpoints when it has heard the other's and its
 * own has been heard. A process in MPI_Finalize says that it is leaving, and is answered at
 * once. When a process has died, what waits for an answer of it ends with an error. */

/* All of it is on VCI 0, and used inside its lock: CH4 keeps communicators across worlds
 * there, since worlds need not have the same number of VCIs. */

#include "zc_impl.h"

/* What CH4 calls a upid: identity and address of a process. */
typedef struct MPIDI_ZC_upid {
    uint64_t id;                /* random, without MPIDI_ZC_FOREIGN */
    uint64_t host;              /* the same for processes that can share memory; the
                                 * upper half, for those under one kernel */
    char address[];             /* UCP worker address, zeros after it */
} MPIDI_ZC_upid_t;

static inline const MPIDI_ZC_upid_t *MPIDI_ZC_upid_of(int world_rank)
{
    return (const MPIDI_ZC_upid_t *) ((const char *) MPIDI_ZC_global.world +
                                      (size_t) world_rank * MPIDI_ZC_global.world_stride);
}

int MPIDI_ZC_upid_draw(uint64_t * id);

/* Tells this host and container from others. */
uint64_t MPIDI_ZC_own_host(void);

/* Are these two hosts one machine, under one kernel? */
static inline bool MPIDI_ZC_same_machine(uint64_t host, uint64_t other)
{
    return host >> 32 == other >> 32;
}

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

/* The order of what comes from @sender, made when it is first heard of; NULL: no memory. */
MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound(uint64_t sender);

/* The same, of a sender that has been heard of and has not gone; or NULL. */
MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound_if_any(uint64_t sender);

/* The process that sends as @sender, to be told something: by any connection to it that there
 * is. NULL: none, or it has not said yet who it is. */
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

/* Ends those that no communicator's end has ended. */
void MPIDI_ZC_foreign_finalize(void);

/* Frees messages of theirs that have come before their turn. */
void MPIDI_ZC_foreign_drop(void);

/* What is left then, of processes that have not answered; the workers are gone. */
void MPIDI_ZC_foreign_free(void);

ucs_status_t MPIDI_ZC_bye_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_numbered_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_near_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param);
/* Letters through ports that nobody has taken. */
void MPIDI_ZC_letters_free(void);

ucs_status_t MPIDI_ZC_dynamic_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);

#endif /* ZC_FOREIGN_H_INCLUDED */
