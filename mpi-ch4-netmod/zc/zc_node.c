/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_node.h"
#include "zc_table.h"
#include "zc_upid.h"

typedef struct {
    MPIDI_ZC_link_t link;       /* by host */
    int number;
    int connections;            /* 0: of this world only */
} node_t;

static MPIDI_ZC_table_t nodes;
static node_t **others;         /* by number, from num_nodes on; NULL: free */
static int nr_others;           /* places in `others` */
static bool filled;             /* this world's hosts are in the table */

static node_t *add(uint64_t host, int number)
{
    node_t *node = MPL_calloc(1, sizeof(*node), MPL_MEM_ADDRESS);

    if (node) {
        node->link.number = host;
        node->number = number;
        MPIDI_ZC_table_add(&nodes, &node->link);
    }
    return node;
}

static node_t *find(uint64_t host)
{
    return MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(&nodes, host), node_t, link);
}

static bool fill(void)
{
    for (int rank = 0; rank < MPIR_Process.size && !filled; rank++) {
        const uint64_t host = MPIDI_ZC_upid_of(rank)->host;
        if (!find(host) && !add(host, MPIR_Process.node_map[rank])) {
            return false;
        }
    }
    filled = true;
    return true;
}

/* Returns the lowest free place, and makes room if there is none. -1: there is no memory. */
static int free_place(void)
{
    for (int i = 0; i < nr_others; i++) {
        if (!others[i]) {
            return i;
        }
    }
    const int room = MPL_MAX(8, 2 * nr_others);
    node_t **more = MPL_realloc(others, room * sizeof(*more), MPL_MEM_ADDRESS);
    if (!more) {
        return -1;
    }
    memset(more + nr_others, 0, (room - nr_others) * sizeof(*more));
    others = more;
    const int place = nr_others;
    nr_others = room;
    return place;
}

int MPIDI_ZC_node_take(uint64_t host)
{
    node_t *node = fill() ? find(host) : NULL;

    if (!node && filled) {
        const int place = free_place();
        node = place < 0 ? NULL : add(host, MPIR_Process.num_nodes + place);
        if (node) {
            others[place] = node;
        }
    }
    if (!node) {
        return -1;
    }
    node->connections++;
    return node->number;
}

static void remove_node(node_t * node)
{
    MPIDI_ZC_table_remove(&nodes, &node->link);
    MPL_free(node);
}

void MPIDI_ZC_node_release(int number)
{
    const int place = number - MPIR_Process.num_nodes;

    if (place >= 0 && place < nr_others && others[place] && --others[place]->connections == 0) {
        remove_node(others[place]);
        others[place] = NULL;
    }
}

void MPIDI_ZC_node_free(void)
{
    MPIDI_ZC_link_t *link;

    while ((link = MPIDI_ZC_table_next(&nodes, NULL))) {
        remove_node(MPIDI_ZC_TABLE_ENTRY(link, node_t, link));
    }
    MPIDI_ZC_table_free(&nodes);
    MPL_free(others);
    others = NULL;
    nr_others = 0;
    filled = false;
}
