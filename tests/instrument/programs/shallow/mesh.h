/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration, global triangulation, partitioning and local mesh of the shallow-water solver.
 * Settings are given as key=value, e.g. "mpiexec -n 4 ./shallow domain.nx=64 run.t_end=90". */
#ifndef SHALLOW_MESH_H
#define SHALLOW_MESH_H

#include <mpi.h>

#define NAME_LENGTH 24

enum side { SIDE_WEST, SIDE_EAST, SIDE_SOUTH, SIDE_NORTH, SIDE_ISLAND, SIDE_COUNT, SIDE_NONE };

struct config {
    struct domain_config {
        double length, width, depth, jitter;
        int nx, ny, seed;
    } domain;
    struct island_config {
        double x, y, radius;
    } island;
    struct boundary_config {
        char kind[SIDE_COUNT][NAME_LENGTH];
        struct {
            double amplitude, period;
        } wave;
    } boundary;
    struct numerics_config {
        double cfl, dt_growth, limiter_k;
    } numerics;
    struct run_config {
        double t_end;
        int n_outputs, max_steps;
        char title[NAME_LENGTH], log_level[NAME_LENGTH];
    } run;
};

/* Edge k of cell c joins vertices k and k + 1 (modulo 3) of the cell. */
struct global_mesh {
    int n_vertices, n_cells;
    double *vx, *vy;
    int *vertex;     /* three per cell, counter-clockwise */
    int *neighbour;  /* three per cell, -1 on a boundary */
    enum side *side; /* three per cell */
};

/* Owned cells come first, in the order of their global numbers, then the ghost cells grouped
 * by owner.  A face points from the cell with the lower global number to the other, so that
 * all ranks compute the same flux for a shared face. */
struct mesh {
    int n_global, n_owned, n_ghost, n_faces, n_inner_faces;
    int *gid, *ghost_owner;
    double *cx, *cy, *area, *perimeter;
    int *ptr; /* CSR over the owned cells */
    int *cell_face;
    int *cell_nbr;         /* -1 on a boundary */
    double *lsq_x, *lsq_y; /* least-squares weights of the neighbours */
    int *left, *right;
    enum side *face_side;
    double *nx, *ny, *length, *mx, *my;
    int *face_list; /* faces that need no ghost cell come first */
};

/* Rank 0 reads the arguments and broadcasts the result. */
void config_load(struct config *cfg, int argc, char **argv, MPI_Comm comm);
struct global_mesh *global_mesh_create(const struct config *cfg);
void global_mesh_destroy(struct global_mesh *g);

/* Rank 0 bisects recursively by cell centroid; all ranks receive the owner of each cell. */
int *partition_cells(const struct global_mesh *g, MPI_Comm comm);

struct mesh *mesh_create(const struct global_mesh *g, const int *owner, int rank);
void mesh_destroy(struct mesh *m);
int mesh_find_owned(const struct mesh *m, int gid);

#endif
