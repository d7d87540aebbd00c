/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROCESS_H_INCLUDED
#define ZC_PROCESS_H_INCLUDED

/* This file finds the processes of other worlds by their ids.
 *
 *   id ──▶ process ──▶ connections, newest first      zc_connection.h
 *                 └──▶ senders: its numbers           zc_sender.h
 *
 * A process has an entry as long as it has a connection or a sender. There is seldom more than one
 * of each: see zc_disconnect.h.
 *
 * Each VCI has entries of its own. All functions are called inside the lock of the VCI, of 0 if they
 * have none. */

#include "zc_impl.h"
#include "zc_table.h"

struct MPIDI_ZC_foreign;
struct MPIDI_ZC_sender;

typedef struct {
    MPIDI_ZC_link_t link;       /* by id */
    int vci;
    struct MPIDI_ZC_foreign *connections;       /* newest first */
    struct MPIDI_ZC_foreign *attached;  /* of those, the one that CH4 has in its address vector */
    struct MPIDI_ZC_sender *senders;
} MPIDI_ZC_process_t;

/* Returns the process with @id on @vci. NULL: there is no entry. */
MPIDI_ZC_process_t *MPIDI_ZC_process_find(int vci, uint64_t id);

/* As MPIDI_ZC_process_find(), but makes an entry if there is none. NULL: there is no memory. */
MPIDI_ZC_process_t *MPIDI_ZC_process_make(int vci, uint64_t id);

/* Frees @process if it has neither connections nor senders. */
void MPIDI_ZC_process_tidy(MPIDI_ZC_process_t * process);

/* Finds a process of this world by its id. Returns its rank, or -1. */
int MPIDI_ZC_process_rank(uint64_t id);

/* Frees the tables. All processes have been tidied. */
void MPIDI_ZC_process_free(void);

#endif /* ZC_PROCESS_H_INCLUDED */
