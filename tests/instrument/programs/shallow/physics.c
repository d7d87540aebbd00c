/* SPDX-License-Identifier: BSD-3-Clause */
/* Numerical flux, boundary conditions and initial state of the shallow-water equations.
 * A condition is chosen by name, e.g. "mpiexec -n 4 ./shallow boundary.east=wall". */
#include "solver.h"

#include <math.h>
#include <string.h>

/* The tangential momentum is carried by the mass flux from the upwind side. */
void flux_hllc(const double *l, const double *r, double nx, double ny, double *flux)
{
    double ul = l[1] * nx + l[2] * ny, ur = r[1] * nx + r[2] * ny;
    double vl = l[2] * nx - l[1] * ny, vr = r[2] * nx - r[1] * ny;
    double cl = sqrt(GRAVITY * l[0]), cr = sqrt(GRAVITY * r[0]);
    double u_star = 0.5 * (ul + ur) + cl - cr;
    double c_star = 0.5 * (cl + cr) + 0.25 * (ul - ur);
    double sl = fmin(0.0, fmin(ul - cl, u_star - c_star));
    double sr = fmax(0.0, fmax(ur + cr, u_star + c_star));
    double mass_l = l[0] * ul, mass_r = r[0] * ur;
    double mom_l = mass_l * ul + 0.5 * GRAVITY * l[0] * l[0];
    double mom_r = mass_r * ur + 0.5 * GRAVITY * r[0] * r[0];
    double span = sr - sl;
    double mass = (sr * mass_l - sl * mass_r + sl * sr * (r[0] - l[0])) / span;
    double normal = (sr * mom_l - sl * mom_r + sl * sr * (mass_r - mass_l)) / span;
    double tangential = mass * (mass >= 0.0 ? vl : vr);
    flux[0] = mass;
    flux[1] = normal * nx - tangential * ny;
    flux[2] = normal * ny + tangential * nx;
}

static void boundary_wall(const struct boundary_point *p, const double *inner, double *outer)
{
    double un = inner[1] * p->nx + inner[2] * p->ny;
    outer[0] = inner[0];
    outer[1] = inner[1] - 2.0 * un * p->nx;
    outer[2] = inner[2] - 2.0 * un * p->ny;
}

static void boundary_farfield(const struct boundary_point *p, const double *inner, double *outer)
{
    (void)inner;
    outer[0] = p->cfg->domain.depth;
    outer[1] = outer[2] = 0.0;
}

/* The depth is prescribed; the outgoing Riemann invariant gives the normal velocity. */
static void boundary_wave(const struct boundary_point *p, const double *inner, double *outer)
{
    double phase = 6.283185307179586 * p->t / p->cfg->boundary.wave.period;
    double change;
    outer[0] = p->cfg->domain.depth + p->cfg->boundary.wave.amplitude * sin(phase);
    change = 2.0 * (sqrt(GRAVITY * inner[0]) - sqrt(GRAVITY * outer[0]));
    outer[1] = inner[1] + change * p->nx;
    outer[2] = inner[2] + change * p->ny;
}

boundary_fn *boundary_by_name(const char *name)
{
    static const struct {
        const char *name;
        boundary_fn *apply;
    } table[] = {
        {"wall", boundary_wall},
        {"farfield", boundary_farfield},
        {"wave", boundary_wave},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].apply;
    }
    SW_FAIL("unknown boundary condition \"%s\"", name);
}

/* A smooth hump of water is released between the west boundary and the island. */
double initial_depth(const struct config *cfg, double x, double y)
{
    double dx = (x - 0.3 * cfg->domain.length) / (0.06 * cfg->domain.length);
    double dy = (y - 0.6 * cfg->domain.width) / (0.06 * cfg->domain.length);
    return cfg->domain.depth + 1.2 * exp(-dx * dx - dy * dy);
}
