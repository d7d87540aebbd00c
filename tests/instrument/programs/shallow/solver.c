/* SPDX-License-Identifier: BSD-3-Clause */
/* Second-order finite-volume solver with limited least-squares gradients and Heun's method.
 * This is part of the program "shallow"; run it with "mpiexec -n 4 ./shallow". */
#include "solver.h"

#include <math.h>
#include <stdlib.h>

enum { PRIM_TAG = 101, SLOPE_TAG = 102, N_SLOPE = 2 * N_VAR };

static void compute_primitive(struct solver *s, const double *q)
{
    for (int c = 0; c < s->mesh->n_owned; c++) {
        double h = q[N_VAR * c];
        SW_REQUIRE(h > 0.0, "cell %d is dry at t = %g", s->mesh->gid[c], s->t);
        s->prim[N_VAR * c] = h;
        s->prim[N_VAR * c + 1] = q[N_VAR * c + 1] / h;
        s->prim[N_VAR * c + 2] = q[N_VAR * c + 2] / h;
    }
}

/* Venkatakrishnan's function limits the step d to the room that the neighbours' extrema leave. */
static double limit(double d, double room_up, double room_down, double eps2)
{
    double room = d > 0.0 ? room_up : room_down;
    double num = (room * room + eps2) + 2.0 * d * room;
    double den = room * room + 2.0 * d * d + d * room + eps2;
    return den > 0.0 ? num / den : 1.0;
}

static void compute_slopes(struct solver *s)
{
    const struct mesh *m = s->mesh;
    double k3 = pow(s->cfg->numerics.limiter_k, 3.0);
    for (int c = 0; c < m->n_owned; c++) {
        double eps2 = k3 * pow(m->area[c] / (s->cfg->domain.width * s->cfg->domain.width), 1.5);
        for (int v = 0; v < N_VAR; v++) {
            double here = s->prim[N_VAR * c + v];
            double gx = 0.0, gy = 0.0, up = 0.0, down = 0.0, phi = 1.0;
            for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
                if (m->cell_nbr[k] >= 0) {
                    double d = s->prim[N_VAR * m->cell_nbr[k] + v] - here;
                    gx += m->lsq_x[k] * d;
                    gy += m->lsq_y[k] * d;
                    up = fmax(up, d);
                    down = fmin(down, d);
                }
            }
            for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
                int f = m->cell_face[k];
                double d = gx * (m->mx[f] - m->cx[c]) + gy * (m->my[f] - m->cy[c]);
                phi = fmin(phi, limit(d, up, down, eps2));
            }
            s->slope[N_SLOPE * c + 2 * v] = phi * gx;
            s->slope[N_SLOPE * c + 2 * v + 1] = phi * gy;
        }
    }
}

static void extrapolate(const struct solver *s, int c, int f, double *state)
{
    double dx = s->mesh->mx[f] - s->mesh->cx[c], dy = s->mesh->my[f] - s->mesh->cy[c];
    const double *slope = &s->slope[N_SLOPE * c];
    for (int v = 0; v < N_VAR; v++)
        state[v] = s->prim[N_VAR * c + v] + slope[2 * v] * dx + slope[2 * v + 1] * dy;
}

/* Returns the inflow of volume per unit time through the boundary faces of the range. */
static double compute_fluxes(struct solver *s, int first, int last, double t, double *flux)
{
    const struct mesh *m = s->mesh;
    double inflow = 0.0;
    for (int i = first; i < last; i++) {
        int f = m->face_list[i];
        double l[N_VAR], r[N_VAR];
        extrapolate(s, m->left[f], f, l);
        if (m->right[f] >= 0) {
            extrapolate(s, m->right[f], f, r);
        } else {
            struct boundary_point p = {s->cfg, t, m->nx[f], m->ny[f]};
            s->boundary[m->face_side[f]](&p, l, r);
        }
        flux_hllc(l, r, m->nx[f], m->ny[f], &flux[N_VAR * f]);
        if (m->right[f] < 0)
            inflow -= m->length[f] * flux[N_VAR * f];
    }
    return inflow;
}

/* The communication of the slopes overlaps with the fluxes that need no ghost cell. */
static double evaluate_rate(struct solver *s, const double *q, double t, double *rate)
{
    const struct mesh *m = s->mesh;
    double *flux = pool_borrow(s->pool, N_VAR * (size_t)m->n_faces);
    double inflow;
    compute_primitive(s, q);
    halo_start(s->prim_channel, s->prim);
    halo_finish(s->prim_channel, s->prim);
    compute_slopes(s);
    halo_start(s->slope_channel, s->slope);
    inflow = compute_fluxes(s, 0, m->n_inner_faces, t, flux);
    halo_finish(s->slope_channel, s->slope);
    inflow += compute_fluxes(s, m->n_inner_faces, m->n_faces, t, flux);
    for (int c = 0; c < m->n_owned; c++) {
        double sum[N_VAR] = {0.0};
        for (int k = m->ptr[c]; k < m->ptr[c + 1]; k++) {
            int f = m->cell_face[k];
            double outward = m->left[f] == c ? m->length[f] : -m->length[f];
            for (int v = 0; v < N_VAR; v++)
                sum[v] -= outward * flux[N_VAR * f + v];
        }
        for (int v = 0; v < N_VAR; v++)
            rate[N_VAR * c + v] = sum[v] / m->area[c];
    }
    pool_return(s->pool, flux);
    return inflow;
}

/* The step may grow only by a bounded factor over the one before. */
static double choose_time_step(const struct solver *s, double t_end)
{
    static double previous = HUGE_VAL;
    const struct mesh *m = s->mesh;
    double local = HUGE_VAL, dt;
    for (int c = 0; c < m->n_owned; c++) {
        const double *q = &s->q[N_VAR * c];
        double speed = sqrt(q[1] * q[1] + q[2] * q[2]) / q[0] + sqrt(GRAVITY * q[0]);
        local = fmin(local, 2.0 * m->area[c] / (m->perimeter[c] * speed));
    }
    local *= s->cfg->numerics.cfl;
    SW_MPI(MPI_Allreduce(&local, &dt, 1, MPI_DOUBLE, MPI_MIN, s->comm));
    dt = fmin(dt, s->cfg->numerics.dt_growth * previous);
    SW_REQUIRE(dt > 1e-9, "the time step collapsed at t = %g", s->t);
    previous = dt;
    return s->t + dt < t_end ? dt : t_end - s->t;
}

static void take_step(struct solver *s, double dt)
{
    size_t n = N_VAR * (size_t)s->mesh->n_owned;
    double *rate = pool_borrow(s->pool, n), *stage = pool_borrow(s->pool, n);
    s->inflow += 0.5 * dt * evaluate_rate(s, s->q, s->t, rate);
    for (size_t i = 0; i < n; i++)
        stage[i] = s->q[i] + dt * rate[i];
    s->inflow += 0.5 * dt * evaluate_rate(s, stage, s->t + dt, rate);
    for (size_t i = 0; i < n; i++)
        s->q[i] = 0.5 * (s->q[i] + stage[i] + dt * rate[i]);
    pool_return(s->pool, rate);
    pool_return(s->pool, stage);
}

void advance_until(struct solver *s, double t_end)
{
    while (s->t < t_end) {
        double dt = choose_time_step(s, t_end);
        take_step(s, dt);
        s->t = s->t + dt < t_end ? s->t + dt : t_end;
        s->step++;
        compute_primitive(s, s->q);
        gauges_sample(s->gauges, s->t, s->prim);
        SW_REQUIRE(s->step <= s->cfg->run.max_steps, "more than %d steps", s->step - 1);
        log_write(LOG_DEBUG, "step %d, t = %.4f, dt = %.5f", s->step, s->t, dt);
    }
}

/* Aborts unless the volume of water equals the initial one plus what came in. */
double check_mass(const struct solver *s)
{
    double local[2] = {0.0, s->inflow}, total[2], error;
    for (int c = 0; c < s->mesh->n_owned; c++)
        local[0] += s->mesh->area[c] * s->q[N_VAR * c];
    SW_MPI(MPI_Allreduce(local, total, 2, MPI_DOUBLE, MPI_SUM, s->comm));
    if (s->initial_mass > 0.0) {
        error = fabs(total[0] - total[1] - s->initial_mass) / s->initial_mass;
        log_write(LOG_INFO, "t = %.2f, step %d, mass %.12g, inflow %.6g, relative error %.2e", s->t,
                  s->step, total[0], total[1], error);
        SW_REQUIRE(error < 1e-12, "mass is not conserved: relative error %.3e", error);
    }
    return total[0];
}

struct solver *solver_create(const struct config *cfg, MPI_Comm comm)
{
    struct solver *s = SW_NEW(struct solver, 1);
    struct global_mesh *g = global_mesh_create(cfg);
    int *owner = partition_cells(g, comm);
    int rank, n_cells;
    s->cfg = cfg;
    s->comm = comm;
    SW_MPI(MPI_Comm_rank(comm, &rank));
    s->mesh = mesh_create(g, owner, rank);
    global_mesh_destroy(g);
    free(owner);
    s->halo = halo_create(s->mesh, comm);
    n_cells = s->mesh->n_owned + s->mesh->n_ghost;
    s->q = SW_NEW(double, N_VAR * s->mesh->n_owned);
    s->prim = SW_NEW(double, N_VAR *n_cells);
    s->slope = SW_NEW(double, N_SLOPE *n_cells);
    s->prim_channel = halo_open(s->halo, N_VAR, PRIM_TAG);
    s->slope_channel = halo_open(s->halo, N_SLOPE, SLOPE_TAG);
    s->pool = pool_create();
    for (int side = 0; side < SIDE_COUNT; side++)
        s->boundary[side] = boundary_by_name(cfg->boundary.kind[side]);
    for (int c = 0; c < s->mesh->n_owned; c++)
        s->q[N_VAR * c] = initial_depth(cfg, s->mesh->cx[c], s->mesh->cy[c]);
    s->gauges = gauges_create(cfg, s->mesh, comm);
    s->initial_mass = check_mass(s);
    return s;
}

void solver_destroy(struct solver *s)
{
    gauges_destroy(s->gauges);
    pool_destroy(s->pool);
    halo_close(s->prim_channel);
    halo_close(s->slope_channel);
    halo_destroy(s->halo);
    mesh_destroy(s->mesh);
    free(s->q);
    free(s->prim);
    free(s->slope);
    free(s);
}
