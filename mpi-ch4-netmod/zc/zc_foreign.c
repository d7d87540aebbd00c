/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/random.h>
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_landing_thread.h"
#include "zc_match.h"
#include "zc_processors.h"

/* How long finalize waits for the answers of those it was connected with: one may have
 * died, or compute on without a landing thread. */
#define GOODBYE_SECONDS 10

/* How long a connection waits for the end of an earlier one to the same process, where
 * CH4 may still use that. */
#define LINGER_SECONDS 1

/* Goes over all endpoints that the sender has: when it has come over each of them, so has
 * everything else. Who has heard it says so; before that its sender will not connect to
 * the same process again, so that what comes is of one connection or of the other. */
typedef struct {
    uint64_t from;              /* process */
    uint64_t number;            /* of the sender's messages: no more will come */
    uint64_t answered;          /* GOODBYE_HEARD: the number in what has been heard */
    uint8_t kind;               /* what follows */
    uint8_t has_near;           /* the same comes over shared memory, too */
} goodbye_t;

enum {
    GOODBYE,
    GOODBYE_LEAVING,            /* the sender is in MPI_Finalize, and waits for an answer */
    GOODBYE_HEARD,              /* the receiver's has been heard */
    GOODBYE_NEAR,               /* over shared memory */
    GOODBYE_KINDS,
};

/* What a process says first over a connection: by which number its messages will come. */
typedef struct {
    uint64_t id;                /* of the process */
    uint64_t number;
} numbered_t;

typedef struct MPIDI_ZC_foreign {
    struct MPIDI_ZC_foreign *next;
    ucp_ep_h far_ep;            /* over the network */
    ucp_ep_h near_ep;           /* over shared memory, where there is that; or NULL */
    bool offered;               /* we have told it our whole address */
    MPIDI_ZC_beside_t *beside;  /* its processors, on this machine; or NULL */
    uint64_t id;                /* of the process */
    uint64_t self;              /* the number of what we send */
    int avtid, lpid;            /* -1: CH4 has given it up */
    int node;
    bool failed;
    bool said_goodbye, heard_goodbye;
    bool heard_far, awaits_near;        /* of the ways that its goodbye comes by */
    bool is_heard;              /* our goodbye */
    uint64_t other;             /* the number of what it sends, known from its goodbye */
    numbered_t numbered;        /* UCP reads it until it is sent */
    MPIR_Request *awaiting;     /* of CH4's, that wait for an answer: MPIDI_ZC_foreign_await() */
    goodbye_t goodbye[GOODBYE_KINDS];   /* UCP reads them until they are sent */
    int nr_goodbyes;            /* said, and not known to have got through */
    int nr_closing;             /* endpoints */
    bool unclosed;              /* UCX has not closed one of them, and may report its failure */
    struct MPIDI_ZC_foreign *next_unclosed;
    size_t upid_length;
    MPIDI_ZC_upid_t *upid;
} foreign_t;

typedef struct sender {
    struct sender *next;
    uint64_t number;
    uint64_t id;                /* of the process; 0: it has not said that yet */
    bool has_window;            /* and has been told of it: zc_flow.h */
    bool said_goodbye_near;
    MPIDI_ZC_inbound_t inbound;
} sender_t;

/* What processes on one machine tell each other when they are connected: where they run, and,
 * if they can share memory, their whole address. Followed by the two. */
typedef struct {
    uint64_t id;                /* of the sender */
    uint32_t mask_words;
    uint32_t upid_length;       /* 0: no offer to come near */
} introduction_t;

/* One that has come before the neighbour itself. */
typedef struct neighbour {
    struct neighbour *next;
    introduction_t introduction;        /* with what follows it */
} neighbour_t;

/* A few hundred connections at most: a list. */
static foreign_t *connections;
static foreign_t *broken;       /* and over: their far endpoints are to be closed */
static foreign_t *unclosed;     /* kept until the worker is gone */
static sender_t *gone;          /* to be freed */
static neighbour_t *neighbours;
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

/* ---- hosts ---- */

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t sum, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ (unsigned char) bytes[i]) * 0x100000001b3ULL;
    }
    return sum;
}

uint64_t MPIDI_ZC_own_host(void)
{
    uint64_t sum = 0xcbf29ce484222325ULL, machine;
    char text[256] = "";

    /* Names alone may repeat ("localhost"), and so may boots (containers). */
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        sum = hash(sum, text, fread(text, 1, sizeof(text), file));
        fclose(file);
    }
    machine = sum ^ sum << 32;
    if (gethostname(text, sizeof(text)) == 0) {
        sum = hash(sum, text, strnlen(text, sizeof(text)));
    }
    return machine >> 32 << 32 | (uint32_t) (sum ^ sum >> 32);
}

static int node_of(uint64_t host)
{
    int free = MPIR_Process.num_nodes;

    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (MPIDI_ZC_upid_of(rank)->host == host) {
            return MPIR_Process.node_map[rank];
        }
    }
    for (const foreign_t * f = connections; f; f = f->next) {
        if (f->upid->host == host) {
            return f->node;
        }
        free = MPL_MAX(free, f->node + 1);
    }
    return free;
}

int MPIDI_ZC_foreign_node(int avtid, int lpid)
{
    const foreign_t *f = MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid)).foreign;
    return f ? f->node : -1;
}

/* ---- receiving ---- */

/* Asked for every message. Numbers are random. */
enum { NR_BUCKETS = 512 };
static sender_t *senders[NR_BUCKETS];

/* Where the sender of @number is, or is to be. */
static sender_t **place_of(uint64_t number)
{
    sender_t **at = &senders[number % NR_BUCKETS];

    while (*at && (*at)->number != number) {
        at = &(*at)->next;
    }
    return at;
}

static sender_t *sender_of(uint64_t number)
{
    sender_t **at = place_of(number);

    if (unlikely(!*at)) {
        *at = MPL_calloc(1, sizeof(**at), MPL_MEM_ADDRESS);
        if (*at) {
            (*at)->number = number;
        }
    }
    return *at;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound(uint64_t number)
{
    sender_t *sender = sender_of(number);
    return sender ? &sender->inbound : NULL;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_foreign_inbound_if_any(uint64_t number)
{
    sender_t *sender = *place_of(number);
    return sender ? &sender->inbound : NULL;
}

/* The connection by which process @id can be told something: behind a goodbye nothing may
 * follow. Which of several is the same to it. */
static foreign_t *way_to(uint64_t id)
{
    for (foreign_t * f = connections; f; f = f->next) {
        if (f->id == id && f->avtid >= 0 && !f->failed && !f->said_goodbye) {
            return f;
        }
    }
    return NULL;
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_sender(uint64_t number)
{
    const sender_t *sender = *place_of(number);
    const foreign_t *f = sender && sender->id ? way_to(sender->id) : NULL;
    return f ? &MPIDI_ZC_AV(&MPIDIU_get_av(f->avtid, f->lpid)) : NULL;
}

/* One that CH4 has given up has nothing under way, but in finalize, where all are given up. */
static bool is_lost(uint64_t id)
{
    for (const foreign_t * f = connections; f; f = f->next) {
        if (f->id == id && !f->failed && (f->avtid >= 0 || MPIDI_ZC_global.closing)) {
            return false;
        }
    }
    return true;
}

bool MPIDI_ZC_foreign_is_lost(uint64_t number)
{
    const sender_t *sender = *place_of(number);
    return !sender || (sender->id && is_lost(sender->id));
}

/* A message of it may be in the caller's hands: it is freed later. */
static void forget_sender(uint64_t number)
{
    sender_t **at = place_of(number);
    sender_t *found = *at;

    if (found) {
        *at = found->next;
        MPIDI_ZC_inbound_drop(&MPIDI_ZC_VCI(0), &found->inbound);
        MPIDI_ZC_flow_close(&found->inbound);
        found->next = gone;
        gone = found;
    }
}

static void forget_senders_of(uint64_t id)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i], *next; sender; sender = next) {
            next = sender->next;
            if (sender->id == id) {
                forget_sender(sender->number);
            }
        }
    }
}

static void free_gone(void)
{
    while (gone) {
        sender_t *sender = gone;
        gone = sender->next;
        MPL_free(sender);
    }
}

/* There is nobody to return an error to. */
static void check_memory(const void *allocated)
{
    if (unlikely(!allocated)) {
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a connection to another world");
    }
}

/* As soon as it is known who @sender is, and there is a connection to tell it by. */
static void open_window(sender_t * sender)
{
    MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);

    if (sender->has_window) {
        MPIDI_ZC_flow_return(vci, &sender->inbound, sender->number);
    } else if (MPIDI_ZC_foreign_sender(sender->number)) {
        sender->has_window = MPIDI_ZC_flow_open(vci, &sender->inbound, sender->number);
    }
}

static void open_windows_of(uint64_t id)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i]; sender; sender = sender->next) {
            if (sender->id == id) {
                open_window(sender);
            }
        }
    }
}

ucs_status_t MPIDI_ZC_numbered_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param)
{
    numbered_t numbered;

    if (length == sizeof(numbered)) {
        memcpy(&numbered, data, sizeof(numbered));
        sender_t *sender = sender_of(numbered.number);
        check_memory(sender);
        sender->id = numbered.id;
        open_window(sender);
    }
    return UCS_OK;
}

/* ---- what waits for an answer ---- */

void MPIDI_ZC_foreign_await(foreign_t * f, MPIR_Request * req)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (!f) {
        am->awaiting.at = NULL;
        return;
    }
    am->awaiting.next = f->awaiting;
    am->awaiting.at = &f->awaiting;
    if (f->awaiting) {
        MPIDI_ZC_AM_REQUEST(f->awaiting).awaiting.at = &am->awaiting.next;
    }
    f->awaiting = req;
}

void MPIDI_ZC_foreign_awaited(MPIR_Request * req)
{
    MPIDI_ZC_am_request_t *am = &MPIDI_ZC_AM_REQUEST(req);

    if (!am->awaiting.at) {
        return;
    }
    *am->awaiting.at = am->awaiting.next;
    if (am->awaiting.next) {
        MPIDI_ZC_AM_REQUEST(am->awaiting.next).awaiting.at = am->awaiting.at;
    }
}

static void end_with_error(MPIR_Request * req)
{
    const bool is_send = req->kind == MPIR_REQUEST_KIND__SEND;

    req->status.MPI_ERROR = MPIDI_ZC_LOST;
    if (is_send) {
        MPIDI_ZC_VCI(0).nr_held--;
        /* of a synchronous send, whose acknowledgement does not come either */
        for (int more = MPIR_cc_get(*req->cc_ptr); more > 1; more--) {
            MPID_Request_complete(req);
        }
        MPIDIG_global.origin_cbs[MPIDIG_SEND_DATA] (req);
    } else {
        MPIR_STATUS_SET_COUNT(req->status, 0);
        /* Nobody is told that it has been received. */
        MPIDIG_REQUEST(req, req->status) &= ~MPIDIG_REQ_PEER_SSEND;
        MPIDIG_REQUEST(req, req->target_cmpl_cb) (req);
    }
}

/* They may still be answered, but do not end with @f. */
static void await_no_more(foreign_t * f)
{
    while (f->awaiting) {
        MPIR_Request *req = f->awaiting;
        MPIDI_ZC_foreign_awaited(req);
        MPIDI_ZC_AM_REQUEST(req).awaiting.at = NULL;
    }
}

void MPIDI_ZC_foreign_settle(foreign_t * f)
{
    if (!f || likely(!f->failed) || MPIDI_ZC_global.over) {
        return;
    }
    while (f->awaiting) {
        MPIR_Request *req = f->awaiting;
        MPIDI_ZC_foreign_awaited(req);
        end_with_error(req);
    }
    MPIDI_ZC_match_lost(&MPIDI_ZC_VCI(0));
}

void MPIDI_ZC_foreign_refused(foreign_t * f, ucs_status_t status)
{
    switch (status) {
        case UCS_ERR_CONNECTION_RESET:
        case UCS_ERR_ENDPOINT_TIMEOUT:
        case UCS_ERR_NOT_CONNECTED:
        case UCS_ERR_UNREACHABLE:
        case UCS_ERR_REJECTED:
        case UCS_ERR_CANCELED:
            f->failed = true;
            break;
        default:
            break;              /* no memory, perhaps */
    }
}

/* ---- the connection ---- */

static void close_if_over(foreign_t * f);
static void close_broken(void);
static void set_broken(foreign_t * f);

static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    foreign_t *f = arg;

    f->failed = true;
    MPIDI_ZC_foreign_settle(f);
    close_if_over(f);
}

/* With error handling: it may leave before us without being told, so its end is no
 * disaster. Or without, for shared memory, which has none in UCX 1.13. Both sides of a
 * connection must do the same. */
static int create_endpoint(foreign_t * f, const MPIDI_ZC_upid_t * upid, bool near, ucp_ep_h * ep)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) upid->address,
        .err_mode = near ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = peer_failed,.arg = f},
    };
    ucs_status_t status = ucp_ep_create(MPIDI_ZC_VCI(0).worker, &params, ep);
    /* Who has died is no error of ours (MPIDI_ZC_dynamic_send()). */
    MPIR_ERR_CHKANDJUMP2(status != UCS_OK, mpi_errno,
                         status == UCS_ERR_UNREACHABLE ? MPI_ERR_PORT : MPI_ERR_OTHER, "**zc_ucx",
                         "**zc_ucx %s %s", "ucp_ep_create", ucs_status_string(status));

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- from the network to shared memory ---- */

/* UCX pairs the endpoints of two processes in the order in which each made its own, so both
 * must make them in the same order: a connection ends on neither side before both have a
 * near endpoint, or none (close_if_over()), and the next one waits for its end. */

/* UCX 1.13 keeps endpoints without error handling until its worker is destroyed, closed
 * ones too, 26 KiB each: they cannot be counted back. So only so many of a process's
 * connections go that way, as many as a large host has processors. That is 3.3 MiB at
 * most, and a program that spawns on and on grows no more. */
#define MAX_NEAR 128
static int nr_near;             /* offered, and not in vain */

static void introduced(void *request, ucs_status_t status, void *user_data)
{
    MPL_free(user_data);
    ucp_request_free(request);
}

/* If the other side makes the same offer, both come near; if not, or if one gets lost,
 * the connection stays as it is. */
static bool may_offer(const foreign_t * f)
{
    return f->upid->host == MPIDI_ZC_upid_of(MPIR_Process.rank)->host && nr_near < MAX_NEAR &&
        MPIDI_ZC_global.transport.shared_memory;
}

static void introduce(foreign_t * f)
{
    int words;
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    const size_t mask_length = words * sizeof(*mask);
    const MPIDI_ZC_upid_t *upid = MPIDI_ZC_upid_of(MPIR_Process.rank);
    const size_t upid_length = may_offer(f) ? MPIDI_ZC_global.world_stride : 0;
    const size_t length = sizeof(introduction_t) + mask_length + upid_length;

    introduction_t *introduction = MPL_malloc(length, MPL_MEM_ADDRESS);
    if (!introduction) {
        return;
    }
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = introduced,
        .user_data = introduction,
    };
    *introduction = (introduction_t) {
        .id = upid->id,
        .mask_words = words,
        .upid_length = upid_length,
    };
    memcpy(introduction + 1, mask, mask_length);
    memcpy((char *) (introduction + 1) + mask_length, upid, upid_length);
    if (upid_length > 0) {
        f->offered = true;
        nr_near++;
    }
    if (!UCS_PTR_IS_PTR(ucp_am_send_nbx(f->far_ep, MPIDI_ZC_AM_NEAR, NULL, 0, introduction, length,
                                        &param))) {
        MPL_free(introduction);
    }
}

/* @upid is the other side's offer, taken over. Messages are numbered, so those still on
 * the old way lose nothing; it is closed with the connection. */
static void come_near(foreign_t * f, MPIDI_ZC_upid_t * upid, size_t length)
{
    if (f->offered && !f->near_ep && !f->failed &&
        create_endpoint(f, upid, true, &f->near_ep) == MPI_SUCCESS) {
        if (f->avtid >= 0 && !f->said_goodbye) {
            MPIDI_ZC_lane_t *lane = &MPIDI_ZC_AV(&MPIDIU_get_av(f->avtid, f->lpid)).lane;
            lane->ep = f->near_ep;
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

/* Who waits for a process of another world waits on VCI 0. */
static void neighbours_changed(void)
{
    const MPIDI_ZC_share_t share = MPIDI_ZC_processors_of_machine();

    MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(0).idle, share.kind == MPIDI_ZC_SHARE_CROWDED);
    MPIDU_waiting_places(share.processors);
    MPIDI_ZC_landing_thread_share(MPIDI_ZC_processors_of_host().kind);
}

static size_t length_of(const introduction_t * introduction)
{
    return sizeof(*introduction) + introduction->mask_words * sizeof(uint64_t) +
        introduction->upid_length;
}

static void be_introduced(foreign_t * f, const introduction_t * introduction)
{
    const uint64_t *mask = (const uint64_t *) (introduction + 1);

    MPIDI_ZC_processors_set(f->beside, mask, introduction->mask_words);
    neighbours_changed();
    if (introduction->upid_length > 0) {
        MPIDI_ZC_upid_t *upid = MPL_malloc(introduction->upid_length, MPL_MEM_ADDRESS);
        if (upid) {
            memcpy(upid, mask + introduction->mask_words, introduction->upid_length);
            come_near(f, upid, introduction->upid_length);
        }
    }
}

/* Owned by the caller; NULL: it has not come. */
static neighbour_t *take_neighbour(uint64_t id)
{
    for (neighbour_t ** at = &neighbours; *at; at = &(*at)->next) {
        neighbour_t *n = *at;
        if (n->introduction.id == id) {
            *at = n->next;
            return n;
        }
    }
    return NULL;
}

ucs_status_t MPIDI_ZC_near_handler(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t * param)
{
    introduction_t head;

    if (length < sizeof(head)) {
        return UCS_OK;
    }
    memcpy(&head, data, sizeof(head));
    if (head.mask_words < 1 || head.mask_words > MPIDI_ZC_PROCESSORS_WORDS ||
        length != length_of(&head)) {
        return UCS_OK;
    }
    neighbour_t *n = MPL_malloc(sizeof(*n) - sizeof(head) + length, MPL_MEM_ADDRESS);
    if (!n) {
        return UCS_OK;
    }
    memcpy(&n->introduction, data, length);
    for (foreign_t * f = connections; f; f = f->next) {
        /* After a goodbye it is the next connection's. */
        if (f->id == head.id && !f->heard_far) {
            be_introduced(f, &n->introduction);
            MPL_free(n);
            return UCS_OK;
        }
    }
    n->next = neighbours;
    neighbours = n;
    return UCS_OK;
}

/* ---- connecting ---- */

static void numbered_sent(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
}

static int tell_number(foreign_t * f)
{
    int mpi_errno = MPI_SUCCESS;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = numbered_sent,
    };

    f->numbered = (numbered_t) {
        .id = MPIDI_ZC_upid_of(MPIR_Process.rank)->id,
        .number = f->self,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(f->far_ep, MPIDI_ZC_AM_NUMBERED, NULL, 0,
                                               &f->numbered, sizeof(f->numbered), &param);
    MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Until it says where it runs, it does where we do. */
static void note_beside(foreign_t * f)
{
    const uint64_t host = MPIDI_ZC_upid_of(MPIR_Process.rank)->host;

    if (MPIDI_ZC_same_machine(f->upid->host, host)) {
        f->beside = MPIDI_ZC_processors_add(NULL, 0, f->upid->host == host);
        neighbours_changed();
        introduce(f);
    }
}

static void forget_beside(foreign_t * f)
{
    if (f->beside) {
        MPIDI_ZC_processors_remove(f->beside);
        f->beside = NULL;
        neighbours_changed();
    }
}

/* CH4 has not heard of it. */
static void undo_connect(foreign_t * f)
{
    if (f->far_ep) {
        f->nr_closing = 1;
        nr_closing++;
        set_broken(f);
    } else {
        MPL_free(f->upid);
        MPL_free(f);
    }
}

/* An earlier connection to process @id, given up here, is waiting for the other side. */
static bool lingers(uint64_t id)
{
    for (const foreign_t * f = connections; f; f = f->next) {
        if (f->id == id && f->avtid < 0 && !f->failed) {
            return true;
        }
    }
    return false;
}

static void await_end_of_earlier(uint64_t id)
{
    MPL_time_t start, now;
    double waited = 0;

    MPL_wtime(&start);
    while (lingers(id) && waited < LINGER_SECONDS) {
        MPIDI_ZC_progress_vci(&MPIDI_ZC_VCI(0));
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

int MPIDI_ZC_foreign_connect(const MPIDI_ZC_upid_t * upid, size_t length, int avtid, int lpid)
{
    int mpi_errno = MPI_SUCCESS;
    close_broken();
    await_end_of_earlier(upid->id);
    foreign_t *f = MPL_calloc(1, sizeof(*f), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f, mpi_errno, MPI_ERR_OTHER, "**nomem");
    f->upid = MPL_malloc(length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!f->upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(f->upid, upid, length);
    f->upid_length = length;
    f->id = f->upid->id;
    f->node = node_of(f->upid->host);
    f->avtid = avtid;
    f->lpid = lpid;
    mpi_errno = MPIDI_ZC_upid_draw(&f->self);
    MPIR_ERR_CHECK(mpi_errno);
    f->self |= MPIDI_ZC_FOREIGN;
    mpi_errno = create_endpoint(f, f->upid, false, &f->far_ep);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = tell_number(f);
    MPIR_ERR_CHECK(mpi_errno);

    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid));
    memset(peer, 0, sizeof(*peer));
    peer->lane.ep = f->far_ep;
    peer->lane.short_max = MPIDI_ZC_SHORT_MAX;
    peer->self = f->self;
    peer->foreign = f;
    f->next = connections;
    connections = f;

    note_beside(f);
    neighbour_t *neighbour = take_neighbour(f->id);
    if (neighbour) {
        be_introduced(f, &neighbour->introduction);
        MPL_free(neighbour);
    }
    open_windows_of(f->id);

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (f) {
        undo_connect(f);
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

MPIDI_ZC_lane_t *MPIDI_ZC_foreign_lane(uint64_t self)
{
    for (foreign_t * f = connections; f; f = f->next) {
        if (f->self == self && f->avtid >= 0) {
            return &MPIDI_ZC_AV(&MPIDIU_get_av(f->avtid, f->lpid)).lane;
        }
    }
    return NULL;
}

const MPIDI_ZC_upid_t *MPIDI_ZC_foreign_upid(const foreign_t * f, size_t * length)
{
    *length = f->upid_length;
    return f->upid;
}

bool MPIDI_ZC_foreign_has_failed(const foreign_t * f)
{
    return f && f->failed;
}

/* ---- its end ---- */

static void free_connection(foreign_t * f)
{
    MPL_free(f->upid);
    MPL_free(f);
}

/* An endpoint may report its failure until it is closed. */
static void endpoint_closed(foreign_t * f)
{
    if (--f->nr_closing == 0) {
        free_connection(f);
        nr_closing--;
    }
}

static void closed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    endpoint_closed(user_data);
}

/* UCX refuses to: nothing waits for it. */
static void endpoint_stays(foreign_t * f)
{
    if (!f->unclosed) {
        f->unclosed = true;
        f->next_unclosed = unclosed;
        unclosed = f;
        nr_closing--;
    }
}

static void close_endpoint(foreign_t * f, ucp_ep_h ep, uint32_t flags)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
            UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = flags,
        .cb.send = closed,
        .user_data = f,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
    if (!request) {
        endpoint_closed(f);
    } else if (UCS_PTR_IS_ERR(request)) {
        endpoint_stays(f);
    }
}

/* UCX 1.13 completes what waits on an endpoint in the middle of dealing with its failure, and then
 * goes on with it. Closed in such a callback it would be gone by then: it is closed later. */
static void set_broken(foreign_t * f)
{
    f->next = broken;
    broken = f;
}

/* Not in callbacks of UCX. */
static void close_broken(void)
{
    free_gone();
    while (broken) {
        foreign_t *f = broken;
        broken = f->next;
        close_endpoint(f, f->far_ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
}

static void flushed(void *request, ucs_status_t status, void *user_data)
{
    foreign_t *f = user_data;

    ucp_request_free(request);
    if (status == UCS_OK) {
        close_endpoint(f, f->far_ep, UCP_EP_CLOSE_FLAG_FORCE);
    } else {
        set_broken(f);
    }
}

/* Closed gently, an endpoint would stay with UCX for ever, in case the other side still
 * uses it: it is flushed, and then closed by force. */
static void close_far_endpoint(foreign_t * f)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = flushed,
        .user_data = f,
    };
    if (f->failed) {
        set_broken(f);
        return;
    }
    ucs_status_ptr_t request = ucp_ep_flush_nbx(f->far_ep, &param);
    if (!request) {
        close_endpoint(f, f->far_ep, UCP_EP_CLOSE_FLAG_FORCE);
    } else if (UCS_PTR_IS_ERR(request)) {
        set_broken(f);
    }
}

/* Both have said goodbye, or one is dead: nothing more comes or goes. */
static void close_if_over(foreign_t * f)
{
    if (MPIDI_ZC_global.over || f->nr_closing > 0 || f->avtid >= 0 || !f->said_goodbye ||
        f->nr_goodbyes > 0 || !((f->heard_goodbye && f->is_heard) || f->failed)) {
        return;
    }
    for (foreign_t ** at = &connections; *at; at = &(*at)->next) {
        if (*at == f) {
            *at = f->next;
            break;
        }
    }
    if (f->failed && is_lost(f->id)) {
        forget_senders_of(f->id);
    }
    forget_beside(f);
    nr_near -= f->offered && !f->near_ep;
    f->nr_closing = f->near_ep ? 2 : 1;
    nr_closing++;
    if (f->near_ep) {
        close_endpoint(f, f->near_ep, 0);
    }
    close_far_endpoint(f);
}

static void goodbye_sent(void *request, ucs_status_t status, void *user_data)
{
    foreign_t *f = user_data;

    ucp_request_free(request);
    f->nr_goodbyes--;
    f->failed = f->failed || status != UCS_OK;
    MPIDI_ZC_foreign_settle(f);
    close_if_over(f);
}

static void send_goodbye(foreign_t * f, ucp_ep_h ep, int kind, bool has_near)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = goodbye_sent,
        .user_data = f,
    };
    goodbye_t *goodbye = &f->goodbye[kind];

    *goodbye = (goodbye_t) {
        .from = MPIDI_ZC_upid_of(MPIR_Process.rank)->id,
        .number = f->self,
        .answered = f->other,
        .kind = kind,
        .has_near = has_near,
    };
    if (!f->failed) {
        f->nr_goodbyes++;       /* before the endpoint fails in sending it */
        ucs_status_ptr_t request = ucp_am_send_nbx(ep, MPIDI_ZC_AM_BYE, NULL, 0, goodbye,
                                                   sizeof(*goodbye), &param);
        if (!UCS_PTR_IS_PTR(request)) {
            f->nr_goodbyes--;
            f->failed = f->failed || UCS_PTR_IS_ERR(request);
        }
    }
}

static void say_goodbye(foreign_t * f, bool leaving)
{
    const bool near = f->near_ep && !f->said_goodbye;

    f->said_goodbye = true;
    send_goodbye(f, f->far_ep, leaving ? GOODBYE_LEAVING : GOODBYE, near);
    if (near) {
        send_goodbye(f, f->near_ep, GOODBYE_NEAR, true);
    }
}

/* CH4 uses it no more. */
static void give_up(foreign_t * f)
{
    f->avtid = f->lpid = -1;
    if (!f->said_goodbye) {
        say_goodbye(f, false);
    }
    close_if_over(f);
}

/* The other side's goodbye is complete if it has come by all its ways. */
static void hear(foreign_t * f)
{
    const sender_t *sender = *place_of(f->other);

    if (!f->awaits_near || (sender && sender->said_goodbye_near)) {
        forget_sender(f->other);
        f->heard_goodbye = true;
        send_goodbye(f, f->far_ep, GOODBYE_HEARD, false);
        close_if_over(f);
    }
}

/* The connection that @goodbye tells of. There may be more than one to a process, where CH4 gave
 * up the earlier one late on one side (await_end_of_earlier()). */
static foreign_t *connection_of(const goodbye_t * goodbye)
{
    foreign_t *oldest = NULL;

    for (foreign_t * f = connections; f; f = f->next) {
        if (f->id != goodbye->from) {
            continue;
        }
        if (goodbye->kind == GOODBYE_HEARD ? f->self == goodbye->answered :
            f->heard_far && f->other == goodbye->number) {
            return f;
        }
        if (!f->heard_far) {
            oldest = f;         /* the newest is first */
        }
    }
    return goodbye->kind == GOODBYE || goodbye->kind == GOODBYE_LEAVING ? oldest : NULL;
}

ucs_status_t MPIDI_ZC_bye_handler(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t * param)
{
    goodbye_t goodbye;

    if (length != sizeof(goodbye)) {
        return UCS_OK;
    }
    memcpy(&goodbye, data, sizeof(goodbye));
    foreign_t *f = connection_of(&goodbye);
    switch (goodbye.kind) {
        case GOODBYE:
        case GOODBYE_LEAVING:
            if (!f) {
                /* It has given up before we connected to it. */
                forget_sender(goodbye.number);
                break;
            }
            /* Who is leaving can be answered before CH4 gives the connection up, which may
             * be much later: nobody will connect to that process again. */
            if (goodbye.kind == GOODBYE_LEAVING && !f->said_goodbye) {
                say_goodbye(f, false);
            }
            if (!f->heard_far) {
                f->heard_far = true;
                f->other = goodbye.number;
                f->awaits_near = goodbye.has_near;
                hear(f);
            }
            break;
        case GOODBYE_NEAR:{
                sender_t *sender = sender_of(goodbye.number);
                if (sender) {
                    sender->said_goodbye_near = true;
                }
                if (f && !f->heard_goodbye) {
                    hear(f);
                }
            }
            break;
        case GOODBYE_HEARD:
            if (f) {
                f->is_heard = true;
                close_if_over(f);
            }
            break;
        default:
            break;
    }
    return UCS_OK;
}

void MPIDI_ZC_foreign_detach(int avtid)
{
    for (foreign_t * f = connections, *next; f; f = next) {
        next = f->next;
        if (f->avtid == avtid) {
            give_up(f);
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
            await_no_more(f);
        }
        if (!f->heard_goodbye) {
            say_goodbye(f, true);
        }
        give_up(f);
    }
    MPL_wtime(&start);
    while ((connections || nr_closing > 0) && waited < GOODBYE_SECONDS) {
        close_broken();
        MPIDI_ZC_progress_all();
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

void MPIDI_ZC_foreign_drop(void)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i]; sender; sender = sender->next) {
            MPIDI_ZC_inbound_drop(&MPIDI_ZC_VCI(0), &sender->inbound);
        }
    }
}

static void free_connections(foreign_t ** list)
{
    while (*list) {
        foreign_t *f = *list;
        *list = f->next;
        if (!f->unclosed) {
            free_connection(f);
        }
    }
}

/* A later session starts afresh. */
void MPIDI_ZC_foreign_free(void)
{
    free_connections(&connections);
    free_connections(&broken);
    while (unclosed) {
        foreign_t *f = unclosed;
        unclosed = f->next_unclosed;
        free_connection(f);
    }
    nr_near = nr_closing = 0;
    for (int i = 0; i < NR_BUCKETS; i++) {
        while (senders[i]) {
            forget_sender(senders[i]->number);
        }
    }
    free_gone();
    MPIDI_ZC_letters_free();
    while (neighbours) {
        MPL_free(take_neighbour(neighbours->introduction.id));
    }
}
