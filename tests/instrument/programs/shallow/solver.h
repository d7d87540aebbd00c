/* SPDX-License-Identifier: BSD-3-Clause */
/* Halo exchange, numerical fluxes, gauges and time stepping of the shallow-water solver.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#ifndef SHALLOW_SOLVER_H
#define SHALLOW_SOLVER_H

#include "mesh.h"
#include "support.h"

#define GRAVITY 9.81
#define N_VAR 3

/* Cell indices per neighbour rank: send_index[i][0 .. n_send[i] - 1] goes to rank[i]. */
struct halo {
    MPI_Comm graph;
    int n_neighbours;
    int *rank, *n_send, *n_recv;
    int **send_index, **recv_index;
};

/* A channel exchanges a fixed number of values per cell by persistent requests. */
struct halo_channel {
    const struct halo *halo;
    int width;
    double **send_buffer, **recv_buffer;
    MPI_Request *requests;
    MPI_Status *statuses;
};

struct halo *halo_create(const struct mesh *m, MPI_Comm comm);
void halo_destroy(struct halo *h);
struct halo_channel *halo_open(const struct halo *h, int width, int tag);
void halo_start(struct halo_channel *ch, const double *field);
void halo_finish(struct halo_channel *ch, double *field);
void halo_close(struct halo_channel *ch);

/* The primitive variables are the depth and the two velocity components. */
struct boundary_point {
    const struct config *cfg;
    double t, nx, ny;
};

typedef void boundary_fn(const struct boundary_point *p, const double *inner, double *outer);
boundary_fn *boundary_by_name(const char *name);
void flux_hllc(const double *l, const double *r, double nx, double ny, double *flux);
double initial_depth(const struct config *cfg, double x, double y);

struct gauge_list;
struct gauge_list *gauges_create(const struct config *cfg, const struct mesh *m, MPI_Comm comm);
void gauges_sample(struct gauge_list *list, double t, const double *prim);
uint64_t gauges_digest(const struct gauge_list *list, uint64_t hash);
void gauges_destroy(struct gauge_list *list);

struct solver {
    const struct config *cfg;
    MPI_Comm comm;
    struct mesh *mesh;
    struct halo *halo;
    struct halo_channel *prim_channel, *slope_channel;
    struct gauge_list *gauges;
    struct pool *pool;
    boundary_fn *boundary[SIDE_COUNT];
    double *q;            /* depth and momentum of the owned cells */
    double *prim, *slope; /* owned and ghost cells */
    double t, initial_mass, inflow;
    int step;
};

struct solver *solver_create(const struct config *cfg, MPI_Comm comm);
void advance_until(struct solver *s, double t_end);
double check_mass(const struct solver *s);
void solver_destroy(struct solver *s);

#endif
