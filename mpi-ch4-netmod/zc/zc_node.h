/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_NODE_H_INCLUDED
#define ZC_NODE_H_INCLUDED

/* This file numbers the hosts of processes of other worlds, as CH4 numbers nodes: a host that ranks
 * of this world are on has its number in MPIR_Process.node_map, any other one the lowest number from
 * MPIR_Process.num_nodes on that is free. These numbers are this process's own.
 *
 * All functions are called inside the lock of VCI 0. */

#include "zc_impl.h"

/* Returns the node of @host (MPIDI_ZC_upid_t) for one more connection. -1: there is no memory. */
int MPIDI_ZC_node_take(uint64_t host);

/* A connection to a process of that node, which may be -1, has ended. */
void MPIDI_ZC_node_release(int node);

void MPIDI_ZC_node_free(void);

#endif /* ZC_NODE_H_INCLUDED */
