/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ADDRESSES_H_INCLUDED
#define ZC_ADDRESSES_H_INCLUDED

/* The addresses of all ranks of the MPI_COMM_WORLD, in tables that the ranks of a host share.
 * Endpoints are made later, when they are used: zc_peer.h.
 *
 * Collective over the MPI_COMM_WORLD; no other thread is in MPI. */

/* Of VCI 0, by the process manager. Fills CH4's address vector; what ranks tell of themselves goes to
 * zc_processors.h and zc_flow.h. */
int MPIDI_ZC_addresses_exchange(void);

/* Of the other VCIs, of which there is at least one, by messages over VCI 0. */
int MPIDI_ZC_addresses_exchange_others(void);

#endif /* ZC_ADDRESSES_H_INCLUDED */
