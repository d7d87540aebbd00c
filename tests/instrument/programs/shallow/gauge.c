/* SPDX-License-Identifier: BSD-3-Clause */
/* Gauges: points at which depth and velocity are recorded at every time step.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#include "solver.h"

#include <stdlib.h>

enum { RECORD = 1 + N_VAR, GAUGE_TAG = 300 };

struct gauge {
    int id, owner, cell; /* the cell is -1 where the gauge belongs to another rank */
    int n_values, capacity;
    double *series;
    struct gauge *next;
};

struct gauge_list {
    struct gauge *head;
    MPI_Comm comm;
    int rank;
};

static int cell_contains(const struct mesh *m, int c, double x, double y)
{
    for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
        int f = m->cell_face[k];
        double d = (x - m->mx[f]) * m->nx[f] + (y - m->my[f]) * m->ny[f];
        if ((m->left[f] == c ? d : -d) > 0.0)
            return 0;
    }
    return 1;
}

/* The rank with the lowest number takes a gauge that lies on the edge between two parts. */
struct gauge_list *gauges_create(const struct config *cfg, const struct mesh *m, MPI_Comm comm)
{
    static const double place[][2] = {
        {0.12, 0.50}, {0.30, 0.60}, {0.45, 0.25}, {0.55, 0.62}, {0.70, 0.47}, {0.85, 0.80},
    };
    struct gauge_list *list = SW_NEW(struct gauge_list, 1);
    struct gauge **tail = &list->head;
    int size, bid;
    list->comm = comm;
    SW_MPI(MPI_Comm_rank(comm, &list->rank));
    SW_MPI(MPI_Comm_size(comm, &size));
    for (int i = 0; i < (int)(sizeof place / sizeof place[0]); i++, tail = &(*tail)->next) {
        double x = place[i][0] * cfg->domain.length, y = place[i][1] * cfg->domain.width;
        struct gauge *g = *tail = SW_NEW(struct gauge, 1);
        g->id = i;
        g->cell = m->n_owned - 1;
        while (g->cell >= 0 && !cell_contains(m, g->cell, x, y))
            g->cell--;
        bid = g->cell >= 0 ? list->rank : size;
        SW_MPI(MPI_Allreduce(&bid, &g->owner, 1, MPI_INT, MPI_MIN, comm));
        if (g->owner != list->rank)
            g->cell = -1;
        SW_REQUIRE(g->owner < size, "gauge %d is not in the water", i);
    }
    return list;
}

void gauges_sample(struct gauge_list *list, double t, const double *prim)
{
    for (struct gauge *g = list->head; g; g = g->next) {
        if (g->cell < 0)
            continue;
        if (g->n_values + RECORD > g->capacity) {
            g->capacity = g->capacity ? 2 * g->capacity : 16 * RECORD;
            g->series = sw_grow(g->series, (size_t)g->capacity, sizeof *g->series);
        }
        g->series[g->n_values++] = t;
        for (int k = 0; k < N_VAR; k++)
            g->series[g->n_values++] = prim[N_VAR * g->cell + k];
    }
}

/* Rank 0 receives the series of the others in the order of the list. */
uint64_t gauges_digest(const struct gauge_list *list, uint64_t hash)
{
    for (struct gauge *g = list->head; g; g = g->next) {
        int tag = GAUGE_TAG + g->id;
        if (g->owner == list->rank && list->rank != 0) {
            SW_MPI(MPI_Send(g->series, g->n_values, MPI_DOUBLE, 0, tag, list->comm));
        } else if (g->owner != list->rank && list->rank == 0) {
            MPI_Status status;
            SW_MPI(MPI_Probe(g->owner, tag, list->comm, &status));
            SW_MPI(MPI_Get_count(&status, MPI_DOUBLE, &g->n_values));
            g->series = SW_NEW(double, g->n_values);
            SW_MPI(
                MPI_Recv(g->series, g->n_values, MPI_DOUBLE, g->owner, tag, list->comm, &status));
        }
        hash = fnv1a(hash, g->series, (size_t)g->n_values * sizeof *g->series);
    }
    return hash;
}

void gauges_destroy(struct gauge_list *list)
{
    while (list->head) {
        struct gauge *g = list->head;
        list->head = g->next;
        free(g->series);
        free(g);
    }
    free(list);
}
