/* SPDX-License-Identifier: BSD-3-Clause */
/* Generator of a perturbed triangle mesh with a hole for the island, and the partitioner.
 * Every rank generates the same mesh; this is part of "shallow": "mpiexec -n 4 ./shallow". */
#include "mesh.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

struct edge {
    long long key; /* the two vertices, the lower one first */
    int slot;
};

/* The splitmix64 finalizer gives a value in [-1, 1) that depends on the arguments only. */
static double noise(int seed, int index, int component)
{
    uint64_t x = (uint64_t)seed * 0x9e3779b97f4a7c15ULL + (uint64_t)(2 * index + component);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

static void place_vertices(struct global_mesh *g, const struct domain_config *d)
{
    double dx = d->length / d->nx, dy = d->width / d->ny;
    for (int j = 0; j <= d->ny; j++) {
        for (int i = 0; i <= d->nx; i++) {
            int v = j * (d->nx + 1) + i;
            g->vx[v] = i == d->nx ? d->length : i * dx;
            g->vy[v] = j == d->ny ? d->width : j * dy;
            if (i > 0 && i < d->nx)
                g->vx[v] += d->jitter * dx * noise(d->seed, v, 0);
            if (j > 0 && j < d->ny)
                g->vy[v] += d->jitter * dy * noise(d->seed, v, 1);
        }
    }
}

static void add_triangle(struct global_mesh *g, const struct island_config *isle, int a, int b,
                         int c)
{
    double x = (g->vx[a] + g->vx[b] + g->vx[c]) / 3.0 - isle->x;
    double y = (g->vy[a] + g->vy[b] + g->vy[c]) / 3.0 - isle->y;
    int *v = &g->vertex[3 * g->n_cells];
    if (x * x + y * y < isle->radius * isle->radius)
        return;
    v[0] = a;
    v[1] = b;
    v[2] = c;
    g->n_cells++;
}

static int compare_edges(const void *pa, const void *pb)
{
    const struct edge *a = pa, *b = pb;
    return a->key != b->key ? (a->key < b->key ? -1 : 1) : a->slot - b->slot;
}

static enum side classify(const struct global_mesh *g, const struct config *cfg, int a, int b)
{
    double x = 0.5 * (g->vx[a] + g->vx[b]), y = 0.5 * (g->vy[a] + g->vy[b]);
    double eps = 1e-9 * cfg->domain.length;
    return x < eps                        ? SIDE_WEST
           : x > cfg->domain.length - eps ? SIDE_EAST
           : y < eps                      ? SIDE_SOUTH
           : y > cfg->domain.width - eps  ? SIDE_NORTH
                                          : SIDE_ISLAND;
}

static void connect(struct global_mesh *g, const struct config *cfg)
{
    int n = 3 * g->n_cells;
    struct edge *edges = SW_NEW(struct edge, n);
    for (int e = 0; e < n; e++) {
        int a = g->vertex[e], b = g->vertex[3 * (e / 3) + (e + 1) % 3];
        edges[e].key = ((long long)(a < b ? a : b) << 32) + (a < b ? b : a);
        edges[e].slot = e;
        g->neighbour[e] = -1;
        g->side[e] = classify(g, cfg, a, b);
    }
    qsort(edges, (size_t)n, sizeof *edges, compare_edges);
    for (int e = 0; e + 1 < n; e++) {
        int here = edges[e].slot, there = edges[e + 1].slot;
        if (edges[e].key == edges[e + 1].key) {
            g->neighbour[here] = there / 3;
            g->neighbour[there] = here / 3;
            g->side[here] = g->side[there] = SIDE_NONE;
        }
    }
    free(edges);
}

struct global_mesh *global_mesh_create(const struct config *cfg)
{
    struct global_mesh *g = SW_NEW(struct global_mesh, 1);
    int nx = cfg->domain.nx, ny = cfg->domain.ny;
    g->n_vertices = (nx + 1) * (ny + 1);
    g->vx = SW_NEW(double, g->n_vertices);
    g->vy = SW_NEW(double, g->n_vertices);
    g->vertex = SW_NEW(int, 6 * nx * ny);
    place_vertices(g, &cfg->domain);
    for (int j = 0; j < ny; j++) {
        for (int i = 0; i < nx; i++) {
            int sw = j * (nx + 1) + i, nw = sw + nx + 1;
            int flip = (i + j) % 2;
            add_triangle(g, &cfg->island, sw, sw + 1, flip ? nw : nw + 1);
            add_triangle(g, &cfg->island, flip ? sw + 1 : sw, nw + 1, nw);
        }
    }
    g->neighbour = SW_NEW(int, 3 * g->n_cells);
    g->side = SW_NEW(enum side, 3 * g->n_cells);
    connect(g, cfg);
    log_write(LOG_INFO, "mesh of %d cells on %d vertices", g->n_cells, g->n_vertices);
    return g;
}

void global_mesh_destroy(struct global_mesh *g)
{
    free(g->vx);
    free(g->vy);
    free(g->vertex);
    free(g->neighbour);
    free(g->side);
    free(g);
}

/* The comparison function of qsort has no context argument, hence this file-level key. */
static const double *sort_key;

static int compare_by_key(const void *pa, const void *pb)
{
    int a = *(const int *)pa, b = *(const int *)pb;
    return sort_key[a] != sort_key[b] ? (sort_key[a] < sort_key[b] ? -1 : 1) : a - b;
}

static void bisect(const double *xy[2], int *ids, int n, int first, int n_parts, int *owner)
{
    int n_lower = (int)((long long)n * (n_parts / 2) / n_parts);
    double extent[2];
    if (n_parts == 1) {
        for (int i = 0; i < n; i++)
            owner[ids[i]] = first;
        return;
    }
    for (int axis = 0; axis < 2; axis++) {
        double lo = HUGE_VAL, hi = -HUGE_VAL;
        for (int i = 0; i < n; i++) {
            lo = fmin(lo, xy[axis][ids[i]]);
            hi = fmax(hi, xy[axis][ids[i]]);
        }
        extent[axis] = hi - lo;
    }
    sort_key = xy[extent[0] >= extent[1] ? 0 : 1];
    qsort(ids, (size_t)n, sizeof *ids, compare_by_key);
    bisect(xy, ids, n_lower, first, n_parts / 2, owner);
    bisect(xy, ids + n_lower, n - n_lower, first + n_parts / 2, n_parts - n_parts / 2, owner);
}

int *partition_cells(const struct global_mesh *g, MPI_Comm comm)
{
    int rank, size;
    int *owner = SW_NEW(int, g->n_cells);
    SW_MPI(MPI_Comm_rank(comm, &rank));
    SW_MPI(MPI_Comm_size(comm, &size));
    if (rank == 0) {
        double *x = SW_NEW(double, g->n_cells), *y = SW_NEW(double, g->n_cells);
        int *ids = SW_NEW(int, g->n_cells);
        for (int c = 0; c < g->n_cells; c++) {
            const int *v = &g->vertex[3 * c];
            x[c] = (g->vx[v[0]] + g->vx[v[1]] + g->vx[v[2]]) / 3.0;
            y[c] = (g->vy[v[0]] + g->vy[v[1]] + g->vy[v[2]]) / 3.0;
            ids[c] = c;
        }
        bisect((const double *[]){x, y}, ids, g->n_cells, 0, size, owner);
        free(x);
        free(y);
        free(ids);
    }
    SW_MPI(MPI_Bcast(owner, g->n_cells, MPI_INT, 0, comm));
    return owner;
}
