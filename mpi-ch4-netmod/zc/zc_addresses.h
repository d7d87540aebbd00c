/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ADDRESSES_H_INCLUDED
#define ZC_ADDRESSES_H_INCLUDED

#include "zc_impl.h"

/* The addresses of all ranks of the MPI_COMM_WORLD lie in tables that the ranks of a host share.
 * Endpoints are made later, when they are first used: zc_peer.h.
 *
 * The functions are collective over the MPI_COMM_WORLD, and no other thread is in MPI, unless their
 * comment says otherwise. */

/* Exchanges the addresses of VCI 0 through the process manager, and fills CH4's address vector. The
 * masks of processors and the windows that come with them go to zc_processors.h and zc_flow.h. */
int MPIDI_ZC_addresses_exchange(void);

/* Asks UCX, once, for the upid of @vci that other worlds get: that of this process, with the address of
 * @vci over the network. It is not collective, and is called inside the lock of @vci. */
int MPIDI_ZC_addresses_own_net(MPIDI_ZC_vci_t * vci);

/* Takes note that this process has new addresses. It is not collective, and is called inside the locks
 * of all VCIs. */
int MPIDI_ZC_addresses_renew(void);

/* Exchanges the addresses of the other VCIs, of which there is at least one, by messages over VCI
 * 0. */
int MPIDI_ZC_addresses_exchange_others(void);

#endif /* ZC_ADDRESSES_H_INCLUDED */
