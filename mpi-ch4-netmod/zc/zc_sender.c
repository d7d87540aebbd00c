/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_sender.h"
#include "zc_table.h"

typedef struct MPIDI_ZC_sender {
    MPIDI_ZC_link_t link;       /* by number */
    MPIDI_ZC_process_t *process;        /* NULL: UNKNOWN */
    struct MPIDI_ZC_sender *next, **at; /* in the list of the process, or in that of the gone */
    struct MPIDI_ZC_foreign *connection;        /* that the HELLO came by; NULL: it is closed */
    MPIDI_ZC_sender_state_t state;
    bool has_window;            /* it has been sent the credit for its window */
    bool has_shm_fin;
    uint32_t begun;             /* how large the window was then */
    MPIDI_ZC_inbound_t inbound;
} sender_t;

/* By VCI. */
static struct {
    MPIDI_ZC_table_t senders;   /* searched for every message */
    sender_t *gone;             /* removed, and to be freed */
} __attribute__ ((aligned(64))) own[MPIDI_CH4_MAX_VCIS];

static size_t nr_windows;       /* atomic */

static MPIDI_ZC_table_t *table_of(uint64_t number)
{
    return &own[MPIDI_ZC_foreign_number_vci(number)].senders;
}

static MPIDI_ZC_vci_t *vci_of(const sender_t * sender)
{
    return &MPIDI_ZC_VCI(MPIDI_ZC_foreign_number_vci(sender->link.number));
}

static sender_t *find(uint64_t number)
{
    return MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(table_of(number), number), sender_t, link);
}

/* Makes the entry of @number, which has none. It is not inline in what is done for every message. */
static sender_t *make(uint64_t number) __attribute__ ((noinline, cold));

static sender_t *make(uint64_t number)
{
    sender_t *sender = MPL_calloc(1, sizeof(*sender), MPL_MEM_ADDRESS);

    if (sender) {
        sender->link.number = number;
        MPIDI_ZC_table_add(table_of(number), &sender->link);
    }
    return sender;
}

static sender_t *find_or_make(uint64_t number)
{
    sender_t *sender = find(number);
    return sender ? sender : make(number);
}

MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound(uint64_t number, bool *ready)
{
    sender_t *sender = find(number);

    if (unlikely(!sender)) {
        *ready = false;
        sender = make(number);
        return sender ? &sender->inbound : NULL;
    }
    *ready = sender->state == MPIDI_ZC_SENDER_READY;
    return &sender->inbound;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound_if_any(uint64_t number)
{
    sender_t *sender = find(number);
    return sender ? &sender->inbound : NULL;
}

MPIDI_ZC_process_t *MPIDI_ZC_sender_process(uint64_t number)
{
    const sender_t *sender = find(number);
    return sender ? sender->process : NULL;
}

struct MPIDI_ZC_foreign *MPIDI_ZC_sender_connection(uint64_t number)
{
    const sender_t *sender = find(number);
    return sender ? sender->connection : NULL;
}

bool MPIDI_ZC_sender_exists(uint64_t number)
{
    return find(number) != NULL;
}

void MPIDI_ZC_sender_note_shm_fin(uint64_t number)
{
    sender_t *sender = find_or_make(number);
    if (sender) {
        sender->has_shm_fin = true;
    }
}

bool MPIDI_ZC_sender_has_shm_fin(uint64_t number)
{
    const sender_t *sender = find(number);
    return sender && sender->has_shm_fin;
}

/* ---- windows ---- */

/* Does nothing until there is a connection to the process. */
static void open_window(sender_t * sender)
{
    MPIDI_ZC_vci_t *vci = vci_of(sender);
    const uint64_t number = sender->link.number;

    if (sender->has_window) {
        MPIDI_ZC_flow_return(vci, &sender->inbound, number);
    } else if (MPIDI_ZC_foreign_sender(number)) {
        __atomic_fetch_add(&nr_windows, 1, __ATOMIC_RELAXED);
        sender->has_window = MPIDI_ZC_flow_open(vci, &sender->inbound, number,
                                                &sender->begun);
        if (!sender->has_window) {
            __atomic_fetch_sub(&nr_windows, 1, __ATOMIC_RELAXED);
        }
    }
}

size_t MPIDI_ZC_sender_windows(void)
{
    return __atomic_load_n(&nr_windows, __ATOMIC_RELAXED);
}

bool MPIDI_ZC_sender_is_ready(uint64_t number)
{
    const sender_t *sender = find(number);
    return sender && sender->state == MPIDI_ZC_SENDER_READY;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_sender_ready(uint64_t number)
{
    sender_t *sender = find(number);

    if (!sender || sender->state == MPIDI_ZC_SENDER_UNKNOWN) {
        return NULL;
    }
    sender->state = MPIDI_ZC_SENDER_READY;
    open_window(sender);
    return &sender->inbound;
}

void MPIDI_ZC_sender_opened(const MPIDI_ZC_process_t * process)
{
    for (sender_t * sender = process->senders; sender; sender = sender->next) {
        if (sender->state == MPIDI_ZC_SENDER_READY) {
            open_window(sender);
        } else {
            MPIDI_ZC_am_await(vci_of(sender), sender->link.number);
        }
    }
}

/* ---- HELLO ---- */

/* Takes note that the messages of @sender come from the process of @upid. False: there is no
 * memory. */
static bool identify(sender_t * sender, const MPIDI_ZC_upid_t * upid, size_t length,
                     const MPIDI_ZC_hello_t * hello)
{
    MPIDI_ZC_process_t *process = MPIDI_ZC_process_make(vci_of(sender)->number, upid->id);

    if (!process) {
        return false;
    }
    sender->connection = MPIDI_ZC_foreign_greeted(upid, length, hello);
    if (!sender->connection) {
        MPIDI_ZC_process_tidy(process);
        return false;
    }
    sender->process = process;
    sender->next = process->senders;
    sender->at = &process->senders;
    if (sender->next) {
        sender->next->at = &sender->next;
    }
    process->senders = sender;
    sender->state = MPIDI_ZC_SENDER_KNOWN;
    return true;
}

ucs_status_t MPIDI_ZC_hello_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_hello_t hello;
    const size_t upid_length = length - sizeof(hello);

    if (length <= sizeof(hello) + sizeof(MPIDI_ZC_upid_t)) {
        return UCS_OK;
    }
    memcpy(&hello, data, sizeof(hello));
    const MPIDI_ZC_vci_t *vci = arg;
    if (unlikely(hello.version != MPIDI_ZC_WIRE_VERSION ||
                 MPIDI_ZC_foreign_number_vci(hello.number) != vci->number)) {
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "a process of another world has another build of MPICH");
    }
    /* at any alignment */
    MPIDI_ZC_upid_t *upid = MPL_malloc(upid_length, MPL_MEM_ADDRESS);
    sender_t *sender = find_or_make(hello.number);
    if (upid) {
        memcpy(upid, (const char *) data + sizeof(hello), upid_length);
    }
    if (unlikely(!upid || !sender ||
                 (!sender->process && !identify(sender, upid, upid_length, &hello)))) {
        /* A UCP callback has no caller to return an error to. */
        MPID_Abort(NULL, MPI_ERR_OTHER, 1,
                   "no connection to another world: out of memory, or getrandom(2) has failed");
    }
    MPL_free(upid);
    MPIDI_ZC_am_await(arg, hello.number);
    return UCS_OK;
}

/* ---- removal ---- */

void MPIDI_ZC_sender_unbind(uint64_t number)
{
    sender_t *sender = number ? find(number) : NULL;

    if (sender) {
        sender->connection = NULL;
    }
}

static void remove_sender(sender_t * sender)
{
    MPIDI_ZC_vci_t *vci = vci_of(sender);

    MPIDI_ZC_table_remove(&own[vci->number].senders, &sender->link);
    if (sender->process) {
        *sender->at = sender->next;
        if (sender->next) {
            sender->next->at = sender->at;
        }
    }
    if (sender->has_window) {
        __atomic_fetch_sub(&nr_windows, 1, __ATOMIC_RELAXED);
    }
    MPIDI_ZC_inbound_drop(vci, &sender->inbound);
    MPIDI_ZC_flow_close(&sender->inbound, sender->begun);
    sender->next = own[vci->number].gone;
    own[vci->number].gone = sender;
}

void MPIDI_ZC_sender_remove(uint64_t number)
{
    sender_t *sender = find(number);

    if (sender) {
        remove_sender(sender);
    }
}

void MPIDI_ZC_sender_remove_all_of(MPIDI_ZC_process_t * process)
{
    while (process->senders) {
        remove_sender(process->senders);
    }
}

void MPIDI_ZC_sender_free_gone(int vci)
{
    while (own[vci].gone) {
        sender_t *sender = own[vci].gone;
        own[vci].gone = sender->next;
        MPL_free(sender);
    }
}

void MPIDI_ZC_sender_drop_messages(MPIDI_ZC_vci_t * vci)
{
    const MPIDI_ZC_table_t *senders = &own[vci->number].senders;

    for (MPIDI_ZC_link_t * link = MPIDI_ZC_table_next(senders, NULL); link;
         link = MPIDI_ZC_table_next(senders, link)) {
        MPIDI_ZC_inbound_drop(vci, &MPIDI_ZC_TABLE_ENTRY(link, sender_t, link)->inbound);
    }
}

static void free_all_of(int vci)
{
    MPIDI_ZC_link_t *link;

    while ((link = MPIDI_ZC_table_next(&own[vci].senders, NULL))) {
        sender_t *sender = MPIDI_ZC_TABLE_ENTRY(link, sender_t, link);
        MPIDI_ZC_process_t *process = sender->process;
        remove_sender(sender);
        if (process) {
            MPIDI_ZC_process_tidy(process);
        }
    }
    MPIDI_ZC_sender_free_gone(vci);
    MPIDI_ZC_table_free(&own[vci].senders);
}

void MPIDI_ZC_sender_free_all(void)
{
    for (int v = 0; v < MPIDI_CH4_MAX_VCIS; v++) {
        free_all_of(v);
    }
}
