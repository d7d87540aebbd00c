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
 * It begins over the network, whose transports notice a death, and which a port name
 * has room for. On one host each side then offers the other its whole address; if both
 * do, it goes on over shared memory.
 *
 * A connection ends when the last communicator across it is freed on both
 * sides: each says goodbye, and closes its endpoints when it has heard the other's and its
 * own has been heard. A process in MPI_Finalize says that it is leaving, and is answered at
 * once. */

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

/* The node of a foreign process, in the numbers of MPIR_Process.node_map and, for
 * hosts that our world is not on, beyond them. Only this process knows them so. */
int MPIDI_ZC_foreign_node(int avtid, int lpid);

/* The order of what comes from @sender, made when it is first heard of; NULL: no memory. */
MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound(uint64_t sender);

/* CH4 gives up an address-vector table: the connections of all in it end. */
void MPIDI_ZC_foreign_detach(int avtid);

/* Ends those that no communicator's end has ended. */
void MPIDI_ZC_foreign_finalize(void);

/* What is left then, of processes that have not answered; the workers are gone. */
void MPIDI_ZC_foreign_free(void);

ucs_status_t MPIDI_ZC_bye_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_near_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param);
ucs_status_t MPIDI_ZC_dynamic_handler(void *arg, const void *header, size_t header_length,
                                      void *data, size_t length,
                                      const ucp_am_recv_param_t * param);

#endif /* ZC_FOREIGN_H_INCLUDED */
