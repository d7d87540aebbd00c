/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STREAM_H_INCLUDED
#define ZC_STREAM_H_INCLUDED

/* The data of a large message that is not one piece of memory, or that its receive has no
 * room for all of.
 *
 *   user memory ── pack ──▶ | window | ──▶ packets of UCP          sending
 *   packets of UCP ──▶ | window | ── unpack ──▶ user memory        receiving
 *
 * The window is some hundred KiB, made with the first packet, and gone with the last: what
 * a message needs beside the user's memory does not grow with it. Bytes that do not fit the
 * receive are dropped as they come.
 *
 * Packed as a whole, a message leaves and arrives like a contiguous one, with fewer copies
 * by UCX. So the window is as wide as the message as long as few bytes of a VCI's messages
 * are kept so at a time.
 *
 * Inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_types.h"

typedef struct MPIDI_ZC_stream MPIDI_ZC_stream_t;

/* The datatype by which UCP knows all streams; a stream is its only element. */
int MPIDI_ZC_stream_init(void);
void MPIDI_ZC_stream_finalize(void);

/* Of @count elements at @buf, @bytes in all; keeps @datatype until it is freed. */
int MPIDI_ZC_stream_send(MPIDI_ZC_vci_t * vci, const void *buf, MPI_Aint count,
                         MPI_Datatype datatype, size_t bytes, MPIDI_ZC_stream_t ** stream);

/* To where the matched @rreq wants its data, which is @bytes long. */
int MPIDI_ZC_stream_receive(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, size_t bytes,
                            MPIDI_ZC_stream_t ** stream);

/* A packed message as a whole, which UCP reads or has to fill; NULL: UCP packs or unpacks. */
void *MPIDI_ZC_stream_whole(MPIDI_ZC_stream_t * stream);

/* All has come: sets the status of the stream's request but for errors of the transfer. */
void MPIDI_ZC_stream_received(MPIDI_ZC_stream_t * stream);

void MPIDI_ZC_stream_free(MPIDI_ZC_stream_t * stream);

#endif /* ZC_STREAM_H_INCLUDED */
