/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/random.h>
#include "zc_foreign.h"

/* How long finalize waits for goodbyes: MPI_Finalize is collective over connected
 * processes, but one of them may have died. */
#define GOODBYE_SECONDS 10

typedef struct MPIDI_ZC_foreign {
    struct MPIDI_ZC_foreign *next;
    ucp_ep_h ep;
    uint64_t id;                /* of the process */
    uint64_t self;              /* the number of what we send */
    int avtid, lpid;            /* -1: CH4 has given it up */
    bool failed;
    bool said_goodbye, heard_goodbye;
    size_t upid_length;
    MPIDI_ZC_upid_t *upid;
} foreign_t;

typedef struct sender {
    struct sender *next;
    uint64_t number;
    MPIDI_ZC_inbound_t inbound;
} sender_t;

typedef struct {
    uint64_t from, to;          /* processes */
    uint64_t number;            /* of the sender's messages: no more will come */
} goodbye_t;

/* A few hundred connections at most: lists. The last sender heard is first. */
static foreign_t *connections;
static sender_t *senders;
static int nr_closing;

int MPIDI_ZC_upid_draw(uint64_t * id)
{
    int mpi_errno = MPI_SUCCESS;

    MPIR_ERR_CHKANDJUMP2(getrandom(id, sizeof(*id), 0) != sizeof(*id), mpi_errno, MPI_ERR_OTHER,
                         "**zc_ucx", "**zc_ucx %s %s", "getrandom", strerror(errno));
    *id &= ~MPIDI_ZC_FOREIGN;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- receiving ---- */

MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound(uint64_t number)
{
    for (sender_t ** at = &senders; *at; at = &(*at)->next) {
        sender_t *found = *at;
        if (found->number == number) {
            *at = found->next;
            found->next = senders;
            senders = found;
            return &found->inbound;
        }
    }
    sender_t *new = MPL_calloc(1, sizeof(*new), MPL_MEM_ADDRESS);
    if (!new) {
        return NULL;
    }
    new->number = number;
    new->next = senders;
    senders = new;
    return &new->inbound;
}

static void forget_sender(uint64_t number)
{
    for (sender_t ** at = &senders; *at; at = &(*at)->next) {
        sender_t *found = *at;
        if (found->number == number) {
            *at = found->next;
            MPL_free(found);
            return;
        }
    }
}

/* ---- the connection ---- */

static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ((foreign_t *) arg)->failed = true;
}

int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid)
{
    int mpi_errno = MPI_SUCCESS;
    foreign_t *f = MPL_calloc(1, sizeof(*f), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f, mpi_errno, MPI_ERR_OTHER, "**nomem");
    f->upid = MPL_malloc(length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f->upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(f->upid, upid, length);
    f->upid_length = length;
    f->id = f->upid->id;
    f->avtid = avtid;
    f->lpid = lpid;
    mpi_errno = MPIDI_ZC_upid_draw(&f->self);
    MPIR_ERR_CHECK(mpi_errno);
    f->self |= MPIDI_ZC_FOREIGN;

    /* It may leave before us without being told, so its end is no disaster. */
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) f->upid->address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = peer_failed,.arg = f},
    };
    ucs_status_t status = ucp_ep_create(MPIDI_ZC_global.worker, &params, &f->ep);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");

    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid));
    memset(peer, 0, sizeof(*peer));
    peer->ep = f->ep;
    peer->self = f->self;
    peer->foreign = f;
    f->next = connections;
    connections = f;

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (f) {
        MPL_free(f->upid);
        MPL_free(f);
    }
    goto fn_exit;
}

bool MPIDI_ZC_foreign_find(uint64_t id, int *avtid, int *lpid)
{
    for (foreign_t * f = connections; f; f = f->next) {
        if (f->id == id && f->avtid >= 0) {
            *avtid = f->avtid;
            *lpid = f->lpid;
            return true;
        }
    }
    return false;
}

const MPIDI_ZC_upid_t *MPIDI_ZC_foreign_upid(const foreign_t * f, size_t * length)
{
    *length = f->upid_length;
    return f->upid;
}

bool MPIDI_ZC_foreign_failed(const foreign_t * f)
{
    return f->failed;
}

/* ---- its end ---- */

static void forget(foreign_t * f)
{
    MPL_free(f->upid);
    MPL_free(f);
    nr_closing--;
}

static void closed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    forget(user_data);
}

/* Both have said goodbye, or one is dead: nothing more comes or goes. */
static void close_if_over(foreign_t * f)
{
    if (f->avtid >= 0 || !f->said_goodbye || !(f->heard_goodbye || f->failed)) {
        return;
    }
    for (foreign_t ** at = &connections; *at; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            break;
        }
    }
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = f->failed ? UCP_EP_CLOSE_FLAG_FORCE : 0,
        .cb.send = closed,
        .user_data = f,
    };
    nr_closing++;
    ucs_status_ptr_t request = ucp_ep_close_nbx(f->ep, &param);
    if (!request || UCS_PTR_IS_ERR(request)) {
        forget(f);
    }
}

static void goodbye_sent(void *request, ucs_status_t status, void *user_data)
{
    foreign_t *f = user_data;

    ucp_request_free(request);
    f->said_goodbye = true;
    f->failed = f->failed || status != UCS_OK;
    close_if_over(f);
}

static void say_goodbye(foreign_t * f)
{
    const goodbye_t goodbye = {
        .from = MPIDI_ZC_upid_of(MPIR_Process.rank)->id,
        .to = f->id,
        .number = f->self,
    };
    /* The connection's own answer tells that the goodbye has got through. */
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .user_data = f,
    };

    f->avtid = f->lpid = -1;
    if (!f->failed) {
        param.cb.send = goodbye_sent;
        ucs_status_ptr_t request = ucp_am_send_nbx(f->ep, MPIDI_ZC_AM_BYE, NULL, 0, &goodbye,
                                                   sizeof(goodbye), &param);
        if (request && !UCS_PTR_IS_ERR(request)) {
            return;
        }
        f->failed = UCS_PTR_IS_ERR(request);
    }
    f->said_goodbye = true;
    close_if_over(f);
}

ucs_status_t MPIDI_ZC_bye_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param)
{
    goodbye_t goodbye;

    if (length != sizeof(goodbye)) {
        return UCS_OK;
    }
    memcpy(&goodbye, data, sizeof(goodbye));
    forget_sender(goodbye.number);
    for (foreign_t * f = connections; f; f = f->next) {
        if (f->id == goodbye.from && !f->heard_goodbye) {
            f->heard_goodbye = true;
            close_if_over(f);
            break;
        }
    }
    return UCS_OK;
}

void MPIDI_ZC_foreign_detach(int avtid)
{
    for (foreign_t * f = connections, *next; f; f = next) {
        next = f->next;
        if (f->avtid == avtid) {
            say_goodbye(f);
        }
    }
}

void MPIDI_ZC_foreign_finalize(void)
{
    MPL_time_t start, now;
    double waited = 0;

    for (foreign_t * f = connections, *next; f; f = next) {
        next = f->next;
        if (f->avtid >= 0) {
            MPIDI_ZC_AV(&MPIDIU_get_av(f->avtid, f->lpid)).foreign = NULL;
            say_goodbye(f);
        }
    }
    MPL_wtime(&start);
    while ((connections || nr_closing > 0) && waited < GOODBYE_SECONDS) {
        ucp_worker_progress(MPIDI_ZC_global.worker);
        /* Some may have failed meanwhile. */
        for (foreign_t * f = connections, *next; f; f = next) {
            next = f->next;
            close_if_over(f);
        }
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
    while (connections) {
        foreign_t *f = connections;
        connections = f->next;
        MPL_free(f->upid);
        MPL_free(f);
    }
    while (senders) {
        forget_sender(senders->number);
    }
}
