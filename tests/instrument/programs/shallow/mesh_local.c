/* SPDX-License-Identifier: BSD-3-Clause */
/* Extraction of one rank's cells, ghost cells and faces from the global triangulation.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#include "mesh.h"
#include "support.h"

#include <math.h>
#include <stdlib.h>

static int compare_ints(const void *pa, const void *pb)
{
    return *(const int *)pa - *(const int *)pb;
}

int mesh_find_owned(const struct mesh *m, int gid)
{
    const int *hit = bsearch(&gid, m->gid, (size_t)m->n_owned, sizeof *m->gid, compare_ints);
    return hit ? (int)(hit - m->gid) : -1;
}

/* The table maps global to local numbers and holds -1 for cells that this rank does not see. */
static int *number_cells(struct mesh *m, const struct global_mesh *g, const int *owner, int rank)
{
    int *local = SW_NEW(int, g->n_cells);
    int last_owner = 0, n = 0;
    for (int c = 0; c < g->n_cells; c++) {
        local[c] = owner[c] == rank ? m->n_owned++ : -1;
        last_owner = owner[c] > last_owner ? owner[c] : last_owner;
    }
    for (int e = 0; e < 3 * g->n_cells; e++) {
        int nbr = g->neighbour[e];
        if (owner[e / 3] == rank && nbr >= 0 && local[nbr] == -1) {
            local[nbr] = -2;
            m->n_ghost++;
        }
    }
    m->gid = SW_NEW(int, m->n_owned + m->n_ghost);
    m->ghost_owner = SW_NEW(int, m->n_ghost);
    for (int c = 0; c < g->n_cells; c++) {
        if (owner[c] == rank)
            m->gid[local[c]] = c;
    }
    for (int r = 0; r <= last_owner; r++) {
        for (int c = 0; c < g->n_cells; c++) {
            if (owner[c] == r && local[c] == -2) {
                m->ghost_owner[n] = r;
                local[c] = m->n_owned + n++;
                m->gid[local[c]] = c;
            }
        }
    }
    return local;
}

static void measure_cells(struct mesh *m, const struct global_mesh *g)
{
    for (int c = 0; c < m->n_owned + m->n_ghost; c++) {
        const int *v = &g->vertex[3 * m->gid[c]];
        double x0 = g->vx[v[0]], x1 = g->vx[v[1]], x2 = g->vx[v[2]];
        double y0 = g->vy[v[0]], y1 = g->vy[v[1]], y2 = g->vy[v[2]];
        m->cx[c] = (x0 + x1 + x2) / 3.0;
        m->cy[c] = (y0 + y1 + y2) / 3.0;
        m->area[c] = 0.5 * ((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0));
        SW_REQUIRE(m->area[c] > 0.0, "cell %d is inverted", m->gid[c]);
    }
}

static int add_face(struct mesh *m, const struct global_mesh *g, int cell, int nbr, int slot)
{
    const int *v = &g->vertex[3 * m->gid[cell]];
    int a = v[slot], b = v[(slot + 1) % 3];
    int f = m->n_faces++;
    double dx = g->vx[b] - g->vx[a], dy = g->vy[b] - g->vy[a];
    double sign = nbr >= 0 && m->gid[nbr] < m->gid[cell] ? -1.0 : 1.0;
    m->left[f] = sign > 0.0 ? cell : nbr;
    m->right[f] = sign > 0.0 ? nbr : cell;
    m->face_side[f] = g->side[3 * m->gid[cell] + slot];
    m->length[f] = sqrt(dx * dx + dy * dy);
    m->nx[f] = sign * dy / m->length[f];
    m->ny[f] = -sign * dx / m->length[f];
    m->mx[f] = 0.5 * (g->vx[a] + g->vx[b]);
    m->my[f] = 0.5 * (g->vy[a] + g->vy[b]);
    return f;
}

static void build_faces(struct mesh *m, const struct global_mesh *g, const int *local)
{
    for (int c = 0; c < m->n_owned; c++) {
        m->ptr[c + 1] = m->ptr[c] + 3;
        for (int slot = 0; slot < 3; slot++) {
            int k = m->ptr[c] + slot;
            int g_nbr = g->neighbour[3 * m->gid[c] + slot];
            int nbr = g_nbr >= 0 ? local[g_nbr] : -1;
            int f = nbr >= 0 && nbr < c ? -1 : add_face(m, g, c, nbr, slot);
            /* A face shared with an earlier owned cell exists already. */
            for (int j = 0; f < 0; j++) {
                if (m->cell_nbr[m->ptr[nbr] + j] == c)
                    f = m->cell_face[m->ptr[nbr] + j];
            }
            m->cell_face[k] = f;
            m->cell_nbr[k] = nbr;
        }
    }
}

/* Faces that need no ghost cell are listed first. */
static void split_faces(struct mesh *m)
{
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int f = 0; f < m->n_faces; f++) {
            int needs_ghost = m->left[f] >= m->n_owned || m->right[f] >= m->n_owned;
            if (needs_ghost == pass)
                m->face_list[n++] = f;
        }
        m->n_inner_faces = pass == 0 ? n : m->n_inner_faces;
    }
}

/* A cell with fewer than two independent neighbours keeps a zero gradient. */
static void weigh_neighbours(struct mesh *m)
{
    for (int c = 0; c < m->n_owned; c++) {
        double sxx = 0.0, sxy = 0.0, syy = 0.0, det;
        for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
            int nbr = m->cell_nbr[k];
            double dx = nbr >= 0 ? m->cx[nbr] - m->cx[c] : 0.0;
            double dy = nbr >= 0 ? m->cy[nbr] - m->cy[c] : 0.0;
            double w = nbr >= 0 ? 1.0 / sqrt(dx * dx + dy * dy) : 0.0;
            m->perimeter[c] += m->length[m->cell_face[k]];
            m->lsq_x[k] = w * w * dx;
            m->lsq_y[k] = w * w * dy;
            sxx += m->lsq_x[k] * dx;
            sxy += m->lsq_x[k] * dy;
            syy += m->lsq_y[k] * dy;
        }
        det = sxx * syy - sxy * sxy;
        for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
            double wx = m->lsq_x[k], wy = m->lsq_y[k];
            int singular = det < 1e-6 * (sxx + syy) * (sxx + syy);
            m->lsq_x[k] = singular ? 0.0 : (syy * wx - sxy * wy) / det;
            m->lsq_y[k] = singular ? 0.0 : (sxx * wy - sxy * wx) / det;
        }
    }
}

struct mesh *mesh_create(const struct global_mesh *g, const int *owner, int rank)
{
    struct mesh *m = SW_NEW(struct mesh, 1);
    int *local = number_cells(m, g, owner, rank);
    int n_cells = m->n_owned + m->n_ghost, n_slots = 3 * m->n_owned;
    double **cell_arrays[] = {&m->cx, &m->cy, &m->area, &m->perimeter};
    double **slot_arrays[] = {&m->lsq_x, &m->lsq_y, &m->nx, &m->ny, &m->length, &m->mx, &m->my};
    int **int_arrays[] = {&m->ptr, &m->cell_face, &m->cell_nbr, &m->left, &m->right, &m->face_list};
    m->n_global = g->n_cells;
    for (size_t i = 0; i < sizeof cell_arrays / sizeof cell_arrays[0]; i++)
        *cell_arrays[i] = SW_NEW(double, n_cells);
    for (size_t i = 0; i < sizeof slot_arrays / sizeof slot_arrays[0]; i++)
        *slot_arrays[i] = SW_NEW(double, n_slots);
    for (size_t i = 0; i < sizeof int_arrays / sizeof int_arrays[0]; i++)
        *int_arrays[i] = SW_NEW(int, n_slots + 1);
    m->face_side = SW_NEW(enum side, n_slots);
    measure_cells(m, g);
    build_faces(m, g, local);
    free(local);
    split_faces(m);
    weigh_neighbours(m);
    log_write(LOG_DEBUG, "%d owned cells, %d ghost cells", m->n_owned, m->n_ghost);
    return m;
}

void mesh_destroy(struct mesh *m)
{
    void *arrays[] = {
        m->gid,       m->ghost_owner, m->cx,     m->cy,    m->area, m->perimeter, m->ptr,
        m->cell_face, m->cell_nbr,    m->lsq_x,  m->lsq_y, m->left, m->right,     m->face_side,
        m->nx,        m->ny,          m->length, m->mx,    m->my,   m->face_list,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        free(arrays[i]);
    free(m);
}
