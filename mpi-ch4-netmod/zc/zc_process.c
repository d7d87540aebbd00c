/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_process.h"
#include "zc_upid.h"

static MPIDI_ZC_table_t processes[MPIDI_CH4_MAX_VCIS];

MPIDI_ZC_process_t *MPIDI_ZC_process_find(int vci, uint64_t id)
{
    return MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(&processes[vci], id), MPIDI_ZC_process_t,
                                link);
}

MPIDI_ZC_process_t *MPIDI_ZC_process_make(int vci, uint64_t id)
{
    MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(vci, id);

    if (!process) {
        process = MPL_calloc(1, sizeof(*process), MPL_MEM_ADDRESS);
        if (process) {
            process->link.number = id;
            process->vci = vci;
            MPIDI_ZC_table_add(&processes[vci], &process->link);
        }
    }
    return process;
}

void MPIDI_ZC_process_tidy(MPIDI_ZC_process_t * process)
{
    if (!process->connections && !process->senders) {
        MPIDI_ZC_table_remove(&processes[process->vci], &process->link);
        MPL_free(process);
    }
}

/* ---- this world ---- */

/* The ranks by their ids. It is made when another world asks for the first of them. */
static MPIDI_ZC_table_t ranks;
static MPIDI_ZC_link_t *links;  /* by rank; NULL: not made, or there is no memory */

static void fill_ranks(void)
{
    links = MPL_calloc(MPIR_Process.size, sizeof(*links), MPL_MEM_ADDRESS);
    for (int rank = 0; links && rank < MPIR_Process.size; rank++) {
        links[rank].number = MPIDI_ZC_upid_of(rank)->id;
        MPIDI_ZC_table_add(&ranks, &links[rank]);
    }
}

int MPIDI_ZC_process_rank(uint64_t id)
{
    if (!links) {
        fill_ranks();
    }
    if (links) {
        const MPIDI_ZC_link_t *link = MPIDI_ZC_table_find(&ranks, id);
        return link ? (int) (link - links) : -1;
    }
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        if (MPIDI_ZC_upid_of(rank)->id == id) {
            return rank;
        }
    }
    return -1;
}

void MPIDI_ZC_process_free(void)
{
    for (int v = 0; v < MPIDI_CH4_MAX_VCIS; v++) {
        MPIDI_ZC_table_free(&processes[v]);
    }
    MPIDI_ZC_table_free(&ranks);
    MPL_free(links);
    links = NULL;
}
