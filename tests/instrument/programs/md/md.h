/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MD_H
#define MD_H
#include <mpi.h>

struct atom {
    double x[3], v[3], f[3];
    int id, type;
};

/* Atoms of a process, and copies of those near its borders. */
struct atoms {
    struct atom *own;
    int nown, room;
    double *ghosts; /* 4 numbers each: place and type */
    int nghosts, ghost_room;
};

/* Cells in which neighbours are looked for: heads of lists in `next`. */
struct cells {
    int n[3];
    double width[3];
    int *head;
    int *next;
    int next_room;
};

struct box {
    double length[3];
    double low, high; /* the slab of this process */
    double cutoff, dt;
    int left, right;
    MPI_Comm line;
};

extern struct box box;
extern int self, nprocs;

void die(const char *why);
void add_atom(struct atoms *a, const struct atom *one);
void migrate(struct atoms *a);
void exchange_ghosts(struct atoms *a);
void sort_cells(struct cells *c, const struct atoms *a);
double compute_forces(struct cells *c, struct atoms *a);
#endif
