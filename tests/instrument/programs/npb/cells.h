/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CELLS_H
#define CELLS_H
#include <stddef.h>

/*
 * A cube of points in q x q x q cells, of which each of q * q processes has q, in a diagonal
 * (multi-partition scheme, as in NPB's BT and SP): of the cells of any layer, across any axis,
 * each process has one. So all work on each layer of a sweep, and a cell's neighbours on one side
 * all belong to one process.
 */
#define COMPONENTS 5
#define MOST_CELLS 8

struct cell {
    int at[3];    /* of the cells, along x, y, z */
    double *u;    /* COMPONENTS for each point, with a border of `border` points */
    double *goal; /* what the right-hand side is to be; without a border */
};

struct cube {
    int n;                   /* points along an edge */
    int q, m, border;        /* cells along an edge, points along an edge of a cell */
    int before[3], after[3]; /* the processes that have the neighbours along x, y, z */
    struct cell cell[MOST_CELLS];
};

void make_cube(struct cube *c, int n, int border);
void free_cube(struct cube *c);

/* Of points with a border (of u) and without one (of all else): places, and steps along axes. */
size_t place_in_u(const struct cube *c, int i, int j, int k);
size_t step_in_u(const struct cube *c, int axis);
size_t place(const struct cube *c, int i, int j, int k);
size_t step_of(const struct cube *c, int axis);
size_t points_of_cell(const struct cube *c);
/* The first point of the line of number LINE, of m * m along AXIS. */
void start_of_line(const struct cube *c, int axis, int line, int *start);

/* The borders of all cells between each other. */
void exchange_borders(struct cube *c);
/* The number of the cell that is in LAYER along AXIS. */
int cell_in(const struct cube *c, int axis, int layer);
/* OUT to the process with the next (DIRECTION 1) or the last layer (-1); IN from the other side. */
void pass_on(const struct cube *c, int axis, int direction, double *out, double *in, int doubles);

/* A smooth function, which the programs are to find again. */
double wanted(const struct cube *c, int component, const struct cell *in, int i, int j, int k);
/* U is what is wanted on all points, borders included; then, inside, something else. */
void begin_with_wanted(struct cube *c);
void begin_with_guess(struct cube *c);
/* Collective: the greatest difference from what is wanted. */
double error_of(const struct cube *c);
unsigned long long digest_of_cube(const struct cube *c);

double *allocate(size_t doubles);

/* A program's own: what of U at a point the steps are to make equal to `goal`, a component each;
 * and (I + DT times what that depends on along AXIS) x = RHS: the solution is in RHS, which has all
 * cells' points. */
void evaluate(const struct cell *one, int i, int j, int k, double *result);
void sweep(int axis, double **rhs);

/* GOAL is what U has. */
void set_goal(struct cube *c);
/* U comes nearer to what has GOAL, by a step of DT. */
void make_step(struct cube *c, double dt);
#endif
