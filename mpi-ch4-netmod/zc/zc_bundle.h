/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BUNDLE_H_INCLUDED
#define ZC_BUNDLE_H_INCLUDED

/* Short messages to one process that leave together.
 *
 * Over TCP a message costs its sender a system call, however short it is. Of a burst
 * (zc_burst.h) the first leaves at once, in a packet of its own; where the past tells that
 * it pays, the others wait, and are not complete, until the application looks for progress
 * or their packet is full. They share one request.
 *
 *   UCP user header: none     payload: | bundle_header | part | data | pad | part | data | ...
 *
 * Nothing waits for ever, even if the application never comes back to MPI: messages wait only
 * while the landing thread looks every few milliseconds (MPIDI_ZC_global.watching), and it
 * sends them. Processes that share memory have no use for this, and those of other worlds
 * are left out: their lanes come and go. */

#include "zc_burst.h"
#include "zc_pre.h"

/* Bytes of data of a message that may wait: of all that are short. */
#define MPIDI_ZC_BUNDLE_MESSAGE_MAX 2048
/* Bytes of a packet: what UCX's TCP takes in one piece, less its headers. */
#define MPIDI_ZC_BUNDLE_MAX 7936

struct MPIDI_ZC_packet;

/* The one of a VCI. Used inside its lock, by the landing thread inside the gate. */
typedef struct {
    MPIDI_ZC_lane_t *lane;      /* where the last send went; NULL: there was progress since */
    unsigned followers;         /* messages of the burst after its first */
    unsigned waiting;           /* of those, in the packet */
    uint64_t since;             /* ns: when the first came that waits, or the last that did not */
    uint64_t begun;             /* ns: when the first came that did not */
    size_t length;              /* of what is in the packet */
    struct MPIDI_ZC_packet *packet;     /* NULL: none yet, or UCP still reads it */
    struct MPIR_Request *request;       /* of all messages that wait */
    MPIDI_ZC_burst_t burst;
} MPIDI_ZC_bundle_t;

#endif /* ZC_BUNDLE_H_INCLUDED */
