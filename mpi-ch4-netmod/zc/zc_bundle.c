/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <time.h>
#include "zc_impl.h"
#include "zc_eager.h"
#include "zc_flow.h"

struct MPIDI_ZC_packet {
    MPIDI_ZC_vci_t *vci;
    char bytes[MPIDI_ZC_BUNDLE_MAX];
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void free_packet(struct MPIDI_ZC_packet *packet)
{
    if (packet->vci->bundle.packet) {
        MPL_free(packet);
    } else {
        packet->vci->bundle.packet = packet;
    }
}

/* Is called when UCP has sent a packet that it had to keep. */
static void sent(void *request, ucs_status_t status, void *user_data)
{
    MPIR_Request *sreq = user_data;

    free_packet(MPIDI_ZC_AM_REQUEST(sreq).packet);
    MPIDI_ZC_eager_done(request, status, sreq);
}

/* Undoes a packet that UCP has refused. No message has been sent to its receiver since, so the
 * numbers of its messages go to those that follow. What was paid for them is paid back, and the
 * credit that the packet would have returned is owed again. */
static void undo(MPIDI_ZC_lane_t * lane, const char *packet, size_t length)
{
    MPIDI_ZC_bundle_header_t header;
    MPIDI_ZC_bundle_part_t part;

    memcpy(&header, packet, sizeof(header));
    for (size_t at = sizeof(header); at < length; at += MPIDI_ZC_bundle_part_length(part.bytes)) {
        memcpy(&part, packet + at, sizeof(part));
        MPIDI_ZC_flow_refund(lane, MPIDI_ZC_flow_cost(true, part.bytes));
    }
    MPIDI_ZC_eager_credit_unsent(lane, header.credit);
    lane->next_send = header.sequence;
}

/* Sends the packet: at once, or when UCP can. */
static void send_packet(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_bundle_t *bundle = &vci->bundle;
    MPIR_Request *sreq = bundle->request;
    struct MPIDI_ZC_packet *packet = bundle->packet;
    const ucp_request_param_t at_once = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    const ucp_request_param_t later = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = sent,
        .user_data = sreq,
    };

    vci->stats.bundles++;
    vci->stats.bundled += bundle->waiting;
    bundle->waiting = 0;
    bundle->request = NULL;
    if (likely(ucp_am_send_nbx(bundle->lane->ep, MPIDI_ZC_AM_BUNDLE, NULL, 0, packet->bytes,
                               bundle->length, &at_once) == NULL)) {
        MPID_Request_complete(sreq);
        return;
    }
    bundle->packet = NULL;
    MPIDI_ZC_AM_REQUEST(sreq).packet = packet;
    ucs_status_ptr_t request = ucp_am_send_nbx(bundle->lane->ep, MPIDI_ZC_AM_BUNDLE, NULL, 0,
                                               packet->bytes, bundle->length, &later);
    if (!UCS_PTR_IS_PTR(request)) {
        if (UCS_PTR_IS_ERR(request)) {
            undo(bundle->lane, packet->bytes, bundle->length);
        }
        free_packet(packet);
        MPIDI_ZC_note_send_status(sreq, UCS_PTR_STATUS(request));
        MPID_Request_complete(sreq);
    }
}

void MPIDI_ZC_bundle_close(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_bundle_t *bundle = &vci->bundle;
    uint64_t ns = now() - bundle->since;

    if (bundle->waiting > 0) {
        send_packet(vci);
    } else {
        ns = MPL_MAX(ns, (bundle->since - bundle->begun) / bundle->followers);
    }
    MPIDI_ZC_burst_over(&bundle->burst, bundle->followers, ns);
    bundle->followers = 0;
}

/* Makes an empty packet, and a request for its messages. False: there is no memory. */
static bool open_packet(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_addr_t * peer)
{
    MPIDI_ZC_bundle_t *bundle = &vci->bundle;

    if (unlikely(!bundle->packet)) {
        bundle->packet = MPL_malloc(sizeof(*bundle->packet), MPL_MEM_BUFFER);
        if (!bundle->packet) {
            return false;
        }
        bundle->packet->vci = vci;
    }
    MPIDI_CH4_REQUEST_CREATE(bundle->request, MPIR_REQUEST_KIND__SEND, vci->number, 1);
    if (unlikely(!bundle->request)) {
        return false;
    }
    const MPIDI_ZC_bundle_header_t header = {
        .sender = peer->self,
        .sequence = bundle->lane->next_send,
        .credit = MPIDI_ZC_flow_piggyback(bundle->lane),
    };
    memcpy(bundle->packet->bytes, &header, sizeof(header));
    bundle->length = sizeof(header);
    bundle->since = bundle->begun = now();
    return true;
}

static void append(MPIDI_ZC_bundle_t * bundle, const MPIDI_ZC_bundle_part_t * part,
                   const void *data)
{
    char *at = bundle->packet->bytes + bundle->length;

    memcpy(at, part, sizeof(*part));
    if (part->bytes > 0) {
        memcpy(at + sizeof(*part), data, part->bytes);
    }
    bundle->length += MPIDI_ZC_bundle_part_length(part->bytes);
    bundle->lane->next_send++;
    bundle->followers++;
    bundle->waiting++;
}

/* Notes a follower that is sent at once. */
static void watch(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_bundle_t *bundle = &vci->bundle;

    if (bundle->waiting > 0) {
        send_packet(vci);
    }
    bundle->since = now();
    if (bundle->followers++ == 0) {
        bundle->begun = bundle->since;
    }
}

bool MPIDI_ZC_bundle_follow(MPIDI_ZC_vci_t * vci, const MPIDI_ZC_addr_t * peer,
                            const MPIDI_ZC_bundle_part_t * part, const void *data,
                            MPIR_Request ** req_p)
{
    MPIDI_ZC_bundle_t *bundle = &vci->bundle;

    if (bundle->waiting > 0 &&
        bundle->length + MPIDI_ZC_bundle_part_length(part->bytes) > sizeof(bundle->packet->bytes)) {
        send_packet(vci);
    }
    if (!MPIDI_ZC_burst_may_wait(&bundle->burst) ||
        !__atomic_load_n(&MPIDI_ZC_global.watching, __ATOMIC_RELAXED) ||
        (bundle->waiting == 0 && !open_packet(vci, peer))) {
        watch(vci);
        return false;
    }
    append(bundle, part, data);
    MPIR_Request_add_ref(bundle->request);
    *req_p = bundle->request;
    return true;
}

void MPIDI_ZC_bundle_init(MPIDI_ZC_vci_t * vci)
{
    memset(&vci->bundle, 0, sizeof(vci->bundle));
    MPIDI_ZC_burst_init(&vci->bundle.burst, MPIDI_ZC_global.params.bundle_always);
}

void MPIDI_ZC_bundle_free(MPIDI_ZC_vci_t * vci)
{
    MPL_free(vci->bundle.packet);
    vci->bundle.packet = NULL;
}
