/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_STREAM_H_INCLUDED
#define ZC_STREAM_H_INCLUDED

/* A stream carries the data of a large message that is not one piece of memory, or that its receive
 * has not enough room for.
 *
 *   user memory ── pack ──▶ | window | ──▶ packets of UCP          sending
 *   packets of UCP ──▶ | window | ── unpack ──▶ user memory        receiving
 *
 * The window is some hundred KiB long. It is made with the first packet, and freed with the last,
 * so a longer message needs no more memory beside the user's. Bytes that do not fit the receive
 * are dropped when they arrive.
 *
 * A message that is packed as a whole is sent and received like a contiguous one, with fewer
 * copies by UCX. So the window is as long as the message as long as few bytes of a VCI's messages
 * are packed in this way at a time.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_types.h"

typedef struct MPIDI_ZC_stream MPIDI_ZC_stream_t;

/* Make and free the datatype by which UCP knows all streams. A stream is its only element. */
int MPIDI_ZC_stream_init(void);
void MPIDI_ZC_stream_finalize(void);

/* Makes the stream of @count elements at @buf, @bytes in all, which keeps @datatype until it is
 * freed. */
int MPIDI_ZC_stream_send(MPIDI_ZC_vci_t * vci, const void *buf, MPI_Aint count,
                         MPI_Datatype datatype, size_t bytes, MPIDI_ZC_stream_t ** stream);

/* Makes the stream to the place of the data of @rreq, which has been matched. @bytes: of the
 * message. */
int MPIDI_ZC_stream_receive(MPIDI_ZC_vci_t * vci, MPIR_Request * rreq, size_t bytes,
                            MPIDI_ZC_stream_t ** stream);

/* Returns a packed message as a whole, which UCP reads or has to fill. NULL: UCP packs or
 * unpacks. */
void *MPIDI_ZC_stream_whole(MPIDI_ZC_stream_t * stream);

/* Ends a stream that has received all data, and sets the status of its request. (An error of the
 * transfer is set by the caller.) */
void MPIDI_ZC_stream_received(MPIDI_ZC_stream_t * stream);

void MPIDI_ZC_stream_free(MPIDI_ZC_stream_t * stream);

#endif /* ZC_STREAM_H_INCLUDED */
