/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ABRIDGED_H_INCLUDED
#define ZC_ABRIDGED_H_INCLUDED

/* The address of UCP's worker has some 30 bytes for each interface of its host, and more for
 * InfiniBand. The name of a port has room for MPIDI_ZC_PORT_ROOM bytes of a upid, enough for two
 * interfaces. Where it does not suffice, names of ports and requests to connect have an *abridged*
 * upid: with the bit MPIDI_ZC_ABRIDGED in its id, and in place of UCP's address where the upid can
 * be fetched by TCP.
 *
 *   process with a port                              process that connects to it
 *     a thread listens
 *     abridged upid ──── in the port's name ────────▶  connects to all addresses in it at once
 *     WHOLE, upid   ────────────────────────────────▶  keeps the first upid that has that id
 *
 * The thread answers while the process computes, so fetching needs no progress on the other side. It
 * is there from the first use of an abridged upid until the netmod ends, or the process leaves
 * (zc_detach.h). */

#include "zc_upid.h"

/* CH4 writes a upid in hexadecimal into MPI_MAX_PORT_NAME characters, of which 27 are not its own. */
#define MPIDI_ZC_PORT_ROOM ((MPI_MAX_PORT_NAME - 27) / 2)

/* Returns the upid of this process for the name of a port, in @upid, which is @length bytes long and
 * the netmod's. It is called inside the lock of VCI 0. */
int MPIDI_ZC_upid_for_port(const void **upid, size_t * length);

/* Returns the id in @upid, of any alignment, abridged or not. */
uint64_t MPIDI_ZC_upid_id(const void *upid);

/* Copies the upid at @bytes to *@upid, and fetches it if it is abridged; the caller frees it. An error
 * of class MPI_ERR_PORT: it could not be fetched within 5 seconds. It is called inside the lock of
 * VCI 0, and makes no progress. */
int MPIDI_ZC_upid_whole(const void *bytes, size_t size, MPIDI_ZC_upid_t ** upid, size_t * length);

/* Ends the thread, if there is one. */
void MPIDI_ZC_upid_server_stop(void);

#endif /* ZC_ABRIDGED_H_INCLUDED */
