/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_sender.h"

typedef struct sender {
    struct sender *next;
    uint64_t number;
    uint64_t id;                /* of the process; 0: no HELLO yet */
    bool has_window;            /* it has been sent the credit for its window */
    bool has_shm_fin;
    MPIDI_ZC_inbound_t inbound;
} sender_t;

/* This table is searched for every message. Numbers are random. */
enum { NR_BUCKETS = 512 };
static sender_t *senders[NR_BUCKETS];
static sender_t *gone;          /* removed, and to be freed */

/* Returns the place of the entry of @number, which may be empty. */
static sender_t **place_of(uint64_t number)
{
    sender_t **at = &senders[number % NR_BUCKETS];

    while (*at && (*at)->number != number) {
        at = &(*at)->next;
    }
    return at;
}

static sender_t *find_or_make(uint64_t number)
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

MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound(uint64_t number)
{
    sender_t *sender = find_or_make(number);
    return sender ? &sender->inbound : NULL;
}

MPIDI_ZC_inbound_t *MPIDI_ZC_sender_inbound_if_any(uint64_t number)
{
    sender_t *sender = *place_of(number);
    return sender ? &sender->inbound : NULL;
}

uint64_t MPIDI_ZC_sender_process(uint64_t number)
{
    const sender_t *sender = *place_of(number);
    return sender ? sender->id : 0;
}

bool MPIDI_ZC_sender_exists(uint64_t number)
{
    return *place_of(number) != NULL;
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
    const sender_t *sender = *place_of(number);
    return sender && sender->has_shm_fin;
}

/* ---- windows ---- */

/* Does nothing until the process is known and there is a connection to it. */
static void open_window(sender_t * sender)
{
    MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(0);

    if (sender->has_window) {
        MPIDI_ZC_flow_return(vci, &sender->inbound, sender->number);
    } else if (MPIDI_ZC_foreign_sender(sender->number)) {
        sender->has_window = MPIDI_ZC_flow_open(vci, &sender->inbound, sender->number);
    }
}

void MPIDI_ZC_sender_open_windows(uint64_t id)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i]; sender; sender = sender->next) {
            if (sender->id == id) {
                open_window(sender);
            }
        }
    }
}

ucs_status_t MPIDI_ZC_hello_handler(void *arg, const void *header, size_t header_length,
                                    void *data, size_t length, const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_hello_t hello;

    if (length == sizeof(hello)) {
        memcpy(&hello, data, sizeof(hello));
        sender_t *sender = find_or_make(hello.number);
        if (unlikely(!sender)) {
            /* A UCP callback has no caller to return an error to. */
            MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a connection to another world");
        }
        sender->id = hello.id;
        open_window(sender);
    }
    return UCS_OK;
}

/* ---- removal ---- */

void MPIDI_ZC_sender_remove(uint64_t number)
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

void MPIDI_ZC_sender_remove_all_of(uint64_t id)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i], *next; sender; sender = next) {
            next = sender->next;
            if (sender->id == id) {
                MPIDI_ZC_sender_remove(sender->number);
            }
        }
    }
}

void MPIDI_ZC_sender_free_gone(void)
{
    while (gone) {
        sender_t *sender = gone;
        gone = sender->next;
        MPL_free(sender);
    }
}

void MPIDI_ZC_sender_drop_messages(void)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        for (sender_t * sender = senders[i]; sender; sender = sender->next) {
            MPIDI_ZC_inbound_drop(&MPIDI_ZC_VCI(0), &sender->inbound);
        }
    }
}

void MPIDI_ZC_sender_free_all(void)
{
    for (int i = 0; i < NR_BUCKETS; i++) {
        while (senders[i]) {
            MPIDI_ZC_sender_remove(senders[i]->number);
        }
    }
    MPIDI_ZC_sender_free_gone();
}
