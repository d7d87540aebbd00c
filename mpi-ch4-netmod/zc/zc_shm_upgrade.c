/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_landing_thread.h"

/* UCX 1.13 keeps endpoints without error handling until their worker is destroyed, closed ones too,
 * 26 KiB each. So a process upgrades only so many of its connections, as many as a large host has
 * processors. That is 3.3 MiB at most, and a program that spawns on and on grows no more. */
#define MAX_UPGRADES 128
static int nr_offered;          /* without those that have ended without an upgrade */

/* A message that has arrived before the connection was made. */
typedef struct early {
    struct early *next;
    MPIDI_ZC_host_message_t message;    /* with what follows it */
} early_t;

static early_t *earlies;

static size_t length_of(const MPIDI_ZC_host_message_t * message)
{
    return sizeof(*message) + message->mask_words * sizeof(uint64_t) + message->upid_length;
}

/* ---- sending ---- */

static void message_sent(void *request, ucs_status_t status, void *user_data)
{
    MPL_free(user_data);
    ucp_request_free(request);
}

static bool may_offer(const MPIDI_ZC_foreign_t * f)
{
    return f->upid->host == MPIDI_ZC_upid_self()->host && nr_offered < MAX_UPGRADES &&
        MPIDI_ZC_global.transport.shared_memory;
}

/* Sends a HOST. If it is lost, or the peer makes no offer, the connection stays on the network. */
static void send_message(MPIDI_ZC_foreign_t * f)
{
    int words;
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    const size_t mask_length = words * sizeof(*mask);
    const MPIDI_ZC_upid_t *upid = MPIDI_ZC_upid_self();
    const size_t upid_length = may_offer(f) ? MPIDI_ZC_global.world_stride : 0;
    const size_t length = sizeof(MPIDI_ZC_host_message_t) + mask_length + upid_length;

    MPIDI_ZC_host_message_t *message = MPL_malloc(length, MPL_MEM_ADDRESS);
    if (!message) {
        return;
    }
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = message_sent,
        .user_data = message,
    };
    *message = (MPIDI_ZC_host_message_t) {
        .id = upid->id,
        .mask_words = words,
        .upid_length = upid_length,
    };
    memcpy(message + 1, mask, mask_length);
    memcpy((char *) (message + 1) + mask_length, upid, upid_length);
    if (upid_length > 0) {
        f->shm_offered = true;
        nr_offered++;
    }
    if (!UCS_PTR_IS_PTR(ucp_am_send_nbx(f->net_ep, MPIDI_ZC_AM_HOST, NULL, 0, message, length,
                                        &param))) {
        MPL_free(message);
    }
}

/* ---- receiving ---- */

/* Makes the endpoint over shared memory. @upid is the peer's offer, and is taken over. */
static void upgrade(MPIDI_ZC_foreign_t * f, MPIDI_ZC_upid_t * upid, size_t length)
{
    if (f->shm_offered && !f->shm_ep && !f->failed &&
        MPIDI_ZC_foreign_endpoint(f, upid, true, &f->shm_ep) == MPI_SUCCESS) {
        if (f->avtid >= 0 && f->disconnect.fin == MPIDI_ZC_FIN_NONE) {
            MPIDI_ZC_lane_t *lane = &MPIDI_ZC_foreign_address(f)->lane;
            lane->ep = f->shm_ep;
            lane->short_max = MPIDI_ZC_SHORT_MAX_LOCAL;
            lane->one_copy = MPIDI_ZC_global.transport.one_copy;
        }
        MPL_free(f->upid);
        f->upid = upid;
        f->upid_length = length;
    } else {
        MPL_free(upid);
    }
}

/* A thread that waits for a process of another world polls VCI 0. */
static void processors_changed(void)
{
    const MPIDI_ZC_share_t share = MPIDI_ZC_processors_of_machine();

    MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(0).idle, share.kind == MPIDI_ZC_SHARE_CROWDED);
    MPIDU_waiting_places(share.processors);
    MPIDI_ZC_landing_thread_share(MPIDI_ZC_processors_of_host().kind);
}

static void take_message(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_host_message_t * message)
{
    const uint64_t *mask = (const uint64_t *) (message + 1);

    MPIDI_ZC_processors_set(f->neighbour, mask, message->mask_words);
    processors_changed();
    if (message->upid_length > 0) {
        MPIDI_ZC_upid_t *upid = MPL_malloc(message->upid_length, MPL_MEM_ADDRESS);
        if (upid) {
            memcpy(upid, mask + message->mask_words, message->upid_length);
            upgrade(f, upid, message->upid_length);
        }
    }
}

/* Returns a message of process @id, which the caller owns. NULL: none has arrived. */
static early_t *take_early(uint64_t id)
{
    for (early_t ** at = &earlies; *at; at = &(*at)->next) {
        early_t *early = *at;
        if (early->message.id == id) {
            *at = early->next;
            return early;
        }
    }
    return NULL;
}

ucs_status_t MPIDI_ZC_host_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_host_message_t head;

    if (length < sizeof(head)) {
        return UCS_OK;
    }
    memcpy(&head, data, sizeof(head));
    if (head.mask_words < 1 || head.mask_words > MPIDI_ZC_PROCESSORS_WORDS ||
        length != length_of(&head)) {
        return UCS_OK;
    }
    early_t *early = MPL_malloc(sizeof(*early) - sizeof(head) + length, MPL_MEM_ADDRESS);
    if (!early) {
        return UCS_OK;
    }
    memcpy(&early->message, data, length);
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections; f; f = f->next) {
        /* After a FIN it is about the next connection. */
        if (f->id == head.id && !MPIDI_ZC_disconnect_peer_has_finished(f)) {
            take_message(f, &early->message);
            MPL_free(early);
            return UCS_OK;
        }
    }
    early->next = earlies;
    earlies = early;
    return UCS_OK;
}

/* ---- with the connection ---- */

void MPIDI_ZC_shm_upgrade_begin(MPIDI_ZC_foreign_t * f)
{
    const uint64_t host = MPIDI_ZC_upid_self()->host;

    if (MPIDI_ZC_same_machine(f->upid->host, host)) {
        /* Until its mask arrives, it is assumed to run where this process does. */
        f->neighbour = MPIDI_ZC_processors_add(NULL, 0, f->upid->host == host);
        processors_changed();
        send_message(f);
    }
    early_t *early = take_early(f->id);
    if (early) {
        take_message(f, &early->message);
        MPL_free(early);
    }
}

void MPIDI_ZC_shm_upgrade_end(MPIDI_ZC_foreign_t * f)
{
    if (f->neighbour) {
        MPIDI_ZC_processors_remove(f->neighbour);
        f->neighbour = NULL;
        processors_changed();
    }
    nr_offered -= f->shm_offered && !f->shm_ep;
}

void MPIDI_ZC_shm_upgrade_free(void)
{
    while (earlies) {
        MPL_free(take_early(earlies->message.id));
    }
    nr_offered = 0;
}
