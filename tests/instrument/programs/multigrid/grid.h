/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRID_H
#define GRID_H
#include <mpi.h>

#define MAX_LEVELS 12

/* A level: rows of this process with a border of one, as an array of rows. */
typedef struct level_s {
    int rows, columns;
    double h;
    double **u, **f, **r;
    double *edge[2]; /* what is sent to the rows below and above */
    MPI_Request request[4];
} level_t;

typedef struct {
    int nlevels;
    level_t level[MAX_LEVELS];
    long relaxations;
} hierarchy_t;

extern int my_rank, n_ranks, below, above;

double **alloc_rows(int rows, int columns);
void free_rows(double **rows, int n);
void make_hierarchy(hierarchy_t *h, int rows, int columns);
void free_hierarchy(hierarchy_t *h);
void exchange_begin(level_t *l, double **field);
void exchange_end(level_t *l);
void v_cycle(hierarchy_t *h, int at, int before, int after);
double residual(level_t *l);
#endif
