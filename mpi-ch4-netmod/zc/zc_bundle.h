/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BUNDLE_H_INCLUDED
#define ZC_BUNDLE_H_INCLUDED

/* Short messages to one process can leave together, as one packet.
 *
 * Over TCP a message costs its sender a system call, however short it is. The first message of a
 * burst (zc_burst.h) leaves at once, in a packet of its own. Where earlier bursts show that it
 * pays, the others wait, and are not complete, until the application calls for progress or their
 * packet is full. They share one request.
 *
 *   payload: | bundle_header | bundle_part | data | padding | bundle_part | data | ...
 *
 * No message waits for ever, even if the application never enters MPI again: messages wait only
 * while the landing thread looks every few milliseconds (MPIDI_ZC_global.watching), and it sends
 * them. Processes that share memory do not bundle, since they gain nothing by it.
 *
 * Each VCI has one bundle (MPIDI_ZC_bundle_t). All functions are called inside the lock of the VCI,
 * or by the landing thread inside the gate. */

#include "zc_types.h"

/* Bytes of data of a message that may wait: those of every short message. */
#define MPIDI_ZC_BUNDLE_MESSAGE_MAX 2048
/* Bytes of a packet: what UCX's TCP takes in one piece, less its headers. */
#define MPIDI_ZC_BUNDLE_MAX 7936

void MPIDI_ZC_bundle_init(MPIDI_ZC_vci_t * vci);

/* Frees the packet. No message may wait. */
void MPIDI_ZC_bundle_free(MPIDI_ZC_vci_t * vci);

/* Lets a message wait that follows another one of its burst, to process @peer, and sets @req_p to
 * the request of the bundle. False: the message has to be sent at once, since waiting does not pay
 * or there is no memory for it. */
bool MPIDI_ZC_bundle_follow(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_addr_t * peer,
                            const MPIDI_ZC_bundle_part_t * part, const void *data,
                            MPIR_Request ** req_p);

/* Ends a burst of more than one message, and sends what waits. Callers use: */
void MPIDI_ZC_bundle_close(MPIDI_ZC_vci_t * vci);

/* Ends the burst, and sends what waits. This is called whenever there is progress, and before
 * everything that is not a short send to the same process. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_bundle_end(MPIDI_ZC_vci_t * vci)
{
    if (unlikely(vci->bundle.followers > 0)) {
        MPIDI_ZC_bundle_close(vci);
    }
    vci->bundle.lane = NULL;
}

/* Receives a bundle: UCP's callback. It is in zc_am.c, which receives each message. */
ucs_status_t MPIDI_ZC_am_bundle_handler(void *arg, const void *header, size_t header_length,
                                        void *data, size_t length,
                                        const ucp_am_recv_param_t * param);

#endif /* ZC_BUNDLE_H_INCLUDED */
