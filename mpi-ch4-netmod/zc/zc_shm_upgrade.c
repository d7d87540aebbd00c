/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_landing_thread.h"

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
    return f->upid->host == MPIDI_ZC_upid_self()->host && MPIDI_ZC_global.errors_near &&
        MPIDI_ZC_global.transport.shared_memory;
}

/* Sends a HOST. The masks are exchanged on VCI 0. If it is lost, or the peer makes no offer, the
 * connection stays on the network. */
static void send_message(MPIDI_ZC_foreign_t * f)
{
    int words;
    const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(f->vci);
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    words = f->vci == 0 ? words : 0;
    const size_t mask_length = words * sizeof(*mask);
    const size_t upid_length = may_offer(f) ? sizeof(MPIDI_ZC_upid_t) + vci->address_length : 0;
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
        .number = f->link.number,
        .mask_words = words,
        .upid_length = upid_length,
        .pid = getpid(),
    };
    memcpy(message + 1, mask, mask_length);
    if (upid_length > 0) {
        MPIDI_ZC_upid_t *upid = (void *) ((char *) (message + 1) + mask_length);
        *upid = *MPIDI_ZC_upid_self();
        memcpy(upid->address, vci->address, vci->address_length);
    }
    f->shm_offered = upid_length > 0;
    if (!UCS_PTR_IS_PTR(ucp_am_send_nbx(f->net_ep, MPIDI_ZC_AM_HOST, NULL, 0, message, length,
                                        &param))) {
        MPL_free(message);
    }
}

/* ---- receiving ---- */

/* Can this process see the other one by its @pid? Not from another PID namespace, nor below hidepid. */
static bool is_visible(int pid)
{
    char name[32];

    snprintf(name, sizeof(name), "/proc/%d/statm", pid);
    return access(name, R_OK) == 0;
}

/* Makes the endpoint over shared memory. @upid, @pid: the peer's offer. */
static void upgrade(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_upid_t * upid, int pid)
{
    if (!f->shm_offered || f->shm_ep || f->failed ||
        MPIDI_ZC_foreign_endpoint(f, upid, &f->shm_ep) != MPI_SUCCESS) {
        return;
    }
    f->pid = is_visible(pid) ? pid : 0;
    MPIDI_ZC_VCI(f->vci).stats.foreign_shared++;
    if (f->avtid >= 0 && f->disconnect.fin == MPIDI_ZC_FIN_NONE) {
        MPIDI_ZC_lane_t *lane = &MPIDI_ZC_foreign_address(f)->lane;
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(f->vci));
        lane->ep = f->shm_ep;
        lane->short_max = MPIDI_ZC_SHORT_MAX_LOCAL;
        lane->one_copy = MPIDI_ZC_global.transport.one_copy;
        lane->bundles = lane->channels = false;
    }
}

/* The other VCIs follow when they get a connection: zc_foreign_vcis.c. */
static void processors_changed(void)
{
    const MPIDI_ZC_share_t share = MPIDI_ZC_processors_of_machine();

    MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(0).idle, share.kind == MPIDI_ZC_SHARE_CROWDED);
    MPIDU_waiting_places(share.processors);
    MPIDI_ZC_landing_thread_share(MPIDI_ZC_processors_of_host());
}

static void take_message(MPIDI_ZC_foreign_t * f, const MPIDI_ZC_host_message_t * message)
{
    const uint64_t *mask = (const uint64_t *) (message + 1);

    if (f->neighbour) {
        MPIDI_ZC_processors_set(f->neighbour, mask, message->mask_words);
        processors_changed();
    }
    if (message->upid_length > 0) {
        upgrade(f, (const MPIDI_ZC_upid_t *) (mask + message->mask_words), (int) message->pid);
    }
}

ucs_status_t MPIDI_ZC_host_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_host_message_t head;

    if (length < sizeof(head)) {
        return UCS_OK;
    }
    memcpy(&head, data, sizeof(head));
    MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(head.number);
    MPIDI_ZC_host_message_t *message = NULL;
    if (f && !f->host && length == length_of(&head)) {
        /* at any alignment */
        message = MPL_malloc(length, MPL_MEM_ADDRESS);
    }
    if (!message) {
        return UCS_OK;          /* the connection stays on the network */
    }
    memcpy(message, data, length);
    f->host = message;
    /* Also where CH4 has given the connection up meanwhile: if this side has made an offer the peer
     * makes its endpoint, and UCX counts the endpoints of both sides in pairs. */
    if (f->net_ep && (f->avtid >= 0 || f->shm_offered)) {
        take_message(f, message);
    }
    return UCS_OK;
}

/* ---- with the connection ---- */

void MPIDI_ZC_shm_upgrade_attach(MPIDI_ZC_foreign_t * f)
{
    const uint64_t host = MPIDI_ZC_upid_self()->host;

    if (MPIDI_ZC_same_machine(f->upid->host, host) && !f->neighbour) {
        /* Until its mask arrives, it is assumed to run where this process does. */
        f->neighbour = MPIDI_ZC_processors_add(NULL, 0, f->upid->host == host);
        processors_changed();
    }
}

void MPIDI_ZC_shm_upgrade_begin(MPIDI_ZC_foreign_t * f)
{
    if (MPIDI_ZC_same_machine(f->upid->host, MPIDI_ZC_upid_self()->host)) {
        send_message(f);
    }
    if (f->host) {
        take_message(f, f->host);
    }
}

void MPIDI_ZC_shm_upgrade_end(MPIDI_ZC_foreign_t * f)
{
    if (f->neighbour) {
        MPIDI_ZC_processors_remove(f->neighbour);
        f->neighbour = NULL;
        processors_changed();
    }
}
