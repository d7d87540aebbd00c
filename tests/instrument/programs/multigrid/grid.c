/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double **alloc_rows(int rows, int columns)
{
    int i;
    double **all = malloc((size_t)rows * sizeof(double *));
    if (all == NULL)
        goto out;
    for (i = 0; i < rows; i++) {
        all[i] = calloc((size_t)columns, sizeof(double));
        if (all[i] == NULL)
            goto out;
    }
    return all;
out:
    fprintf(stderr, "multigrid: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

void free_rows(double **rows, int n)
{
    int i;
    for (i = 0; i < n; i++)
        free(rows[i]);
    free(rows);
}

void make_hierarchy(hierarchy_t *h, int rows, int columns)
{
    h->nlevels = 0;
    h->relaxations = 0;
    while (h->nlevels < MAX_LEVELS) {
        level_t *l = &h->level[h->nlevels++];
        int i;
        l->rows = rows;
        l->columns = columns;
        l->h = 1.0 / (columns + 1);
        l->u = alloc_rows(rows + 2, columns + 2);
        l->f = alloc_rows(rows + 2, columns + 2);
        l->r = alloc_rows(rows + 2, columns + 2);
        l->edge[0] = calloc((size_t)columns + 2, sizeof(double));
        l->edge[1] = calloc((size_t)columns + 2, sizeof(double));
        for (i = 0; i < 4; i++)
            l->request[i] = MPI_REQUEST_NULL;
        if (rows % 2 || rows < 4 || columns < 5)
            break;
        rows /= 2;
        columns = (columns - 1) / 2;
    }
}

void free_hierarchy(hierarchy_t *h)
{
    int k;
    for (k = 0; k < h->nlevels; k++) {
        level_t *l = &h->level[k];
        free_rows(l->u, l->rows + 2);
        free_rows(l->f, l->rows + 2);
        free_rows(l->r, l->rows + 2);
        free(l->edge[0]);
        free(l->edge[1]);
    }
}

void exchange_begin(level_t *l, double **field)
{
    const int n = l->columns + 2;
    MPI_Irecv(field[0], n, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &l->request[0]);
    MPI_Irecv(field[l->rows + 1], n, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &l->request[1]);
    memcpy(l->edge[0], field[1], (size_t)n * sizeof(double));
    memcpy(l->edge[1], field[l->rows], (size_t)n * sizeof(double));
    MPI_Isend(l->edge[0], n, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &l->request[2]);
    MPI_Isend(l->edge[1], n, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &l->request[3]);
}

void exchange_end(level_t *l)
{
    MPI_Waitall(4, l->request, MPI_STATUSES_IGNORE);
}

static void relax_rows(level_t *l, int from, int to, int colour)
{
    int i, j;
    const double hh = l->h * l->h;
    for (i = from; i <= to; i++)
        for (j = 1 + (i + colour + my_rank * l->rows) % 2; j <= l->columns; j += 2)
            l->u[i][j] = 0.25 * (l->u[i - 1][j] + l->u[i + 1][j] + l->u[i][j - 1] + l->u[i][j + 1] +
                                 hh * l->f[i][j]);
}

static void relax(hierarchy_t *h, level_t *l, int times)
{
    int k, colour;
    for (k = 0; k < times; k++)
        for (colour = 0; colour < 2; colour++) {
            exchange_begin(l, l->u);
            /* The inner rows need nothing of the neighbours. */
            relax_rows(l, 2, l->rows - 1, colour);
            exchange_end(l);
            relax_rows(l, 1, 1, colour);
            if (l->rows > 1)
                relax_rows(l, l->rows, l->rows, colour);
            h->relaxations++;
        }
}

double residual(level_t *l)
{
    int i, j;
    double sum = 0;
    const double hh = l->h * l->h;
    exchange_begin(l, l->u);
    exchange_end(l);
    for (i = 1; i <= l->rows; i++)
        for (j = 1; j <= l->columns; j++) {
            l->r[i][j] = l->f[i][j] - (4 * l->u[i][j] - l->u[i - 1][j] - l->u[i + 1][j] -
                                       l->u[i][j - 1] - l->u[i][j + 1]) /
                                          hh;
            sum += l->r[i][j] * l->r[i][j];
        }
    return sum;
}

static void restrict_to(level_t *coarse, const level_t *fine)
{
    int i, j;
    for (i = 1; i <= coarse->rows; i++)
        for (j = 1; j <= coarse->columns; j++) {
            coarse->f[i][j] = 0.25 * (fine->r[2 * i - 1][2 * j] + fine->r[2 * i][2 * j]) * 2;
            coarse->u[i][j] = 0;
        }
    for (j = 0; j < coarse->columns + 2; j++)
        coarse->u[0][j] = coarse->u[coarse->rows + 1][j] = 0;
}

static void correct(level_t *fine, const level_t *coarse)
{
    int i, j;
    for (i = 1; i <= fine->rows; i++)
        for (j = 1; j <= fine->columns; j++) {
            const int ci = (i + 1) / 2, cj = j / 2;
            const double value =
                j % 2 ? 0.5 * (coarse->u[ci][cj] + coarse->u[ci][cj + 1]) : coarse->u[ci][cj];
            fine->u[i][j] += 0.5 * value;
        }
}

void v_cycle(hierarchy_t *h, int at, int before, int after)
{
    level_t *l = &h->level[at];
    relax(h, l, before);
    if (at + 1 < h->nlevels) {
        residual(l);
        restrict_to(&h->level[at + 1], l);
        v_cycle(h, at + 1, before, after);
        correct(l, &h->level[at + 1]);
    }
    relax(h, l, after);
}
