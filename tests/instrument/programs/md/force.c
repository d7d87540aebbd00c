/* SPDX-License-Identifier: BSD-3-Clause */
/* Lennard-Jones forces, by cells. */
#include "md.h"
#include <math.h>
#include <stdlib.h>

static const double epsilon[2][2] = {{1.0, 0.7}, {0.7, 0.4}};
static const double sigma = 1.0;

static int cell_of(const struct cells *c, const double *x)
{
    int at[3], d;
    for (d = 0; d < 3; d++) {
        const double from = d == 0 ? box.low - box.cutoff : 0;
        double offset = x[d] - from;
        if (d == 0)
            offset -= box.length[0] * floor(offset / box.length[0]);
        at[d] = (int)(offset / c->width[d]);
        if (at[d] < 0)
            at[d] = 0;
        if (at[d] >= c->n[d])
            at[d] = c->n[d] - 1;
    }
    return (at[0] * c->n[1] + at[1]) * c->n[2] + at[2];
}

void sort_cells(struct cells *c, const struct atoms *a)
{
    const int all = a->nown + a->nghosts;
    int i, d;
    if (!c->head) {
        for (d = 0; d < 3; d++) {
            const double length = d == 0 ? box.high - box.low + 2 * box.cutoff : box.length[d];
            c->n[d] = (int)(length / box.cutoff);
            if (c->n[d] < 1)
                c->n[d] = 1;
            c->width[d] = length / c->n[d];
        }
        c->head = malloc((size_t)(c->n[0] * c->n[1] * c->n[2]) * sizeof(int));
    }
    if (all > c->next_room) {
        c->next_room = all + all / 2;
        c->next = realloc(c->next, (size_t)c->next_room * sizeof(int));
    }
    if (!c->head || !c->next)
        die("no memory for cells");
    for (i = 0; i < c->n[0] * c->n[1] * c->n[2]; i++)
        c->head[i] = -1;
    for (i = all - 1; i >= 0; i--) {
        const double *x = i < a->nown ? a->own[i].x : a->ghosts + 4 * (i - a->nown);
        const int cell = cell_of(c, x);
        c->next[i] = c->head[cell];
        c->head[cell] = i;
    }
}

static double push(struct atom *one, const double *x, int type)
{
    double delta[3], square = 0, inverse, six, size;
    const double e = epsilon[one->type][type];
    int d;
    for (d = 0; d < 3; d++) {
        delta[d] = one->x[d] - x[d];
        delta[d] -= box.length[d] * nearbyint(delta[d] / box.length[d]);
        square += delta[d] * delta[d];
    }
    if (square >= box.cutoff * box.cutoff || square == 0)
        return 0;
    if (square < 0.49)
        square = 0.49;
    inverse = sigma * sigma / square;
    six = inverse * inverse * inverse;
    size = 24 * e * (2 * six * six - six) / square;
    for (d = 0; d < 3; d++)
        one->f[d] += size * delta[d];
    return 2 * e * (six * six - six);
}

static double forces_of(const struct cells *c, const struct atoms *a, struct atom *one)
{
    double energy = 0;
    const int at = cell_of(c, one->x);
    const int cx = at / (c->n[1] * c->n[2]), cy = at / c->n[2] % c->n[1], cz = at % c->n[2];
    int dx, dy, dz;
    for (dx = -1; dx <= 1; dx++)
        for (dy = -1; dy <= 1; dy++)
            for (dz = -1; dz <= 1; dz++) {
                int i, x = cx + dx, y = cy + dy, z = cz + dz;
                if (x < 0 || x >= c->n[0])
                    continue;
                if ((c->n[1] == 1 && dy != 0) || (c->n[1] == 2 && dy < 0) ||
                    (c->n[2] == 1 && dz != 0) || (c->n[2] == 2 && dz < 0))
                    continue;
                y = (y + c->n[1]) % c->n[1];
                z = (z + c->n[2]) % c->n[2];
                for (i = c->head[(x * c->n[1] + y) * c->n[2] + z]; i >= 0; i = c->next[i]) {
                    if (i < a->nown)
                        energy += push(one, a->own[i].x, a->own[i].type);
                    else
                        energy += push(one, a->ghosts + 4 * (i - a->nown),
                                       (int)a->ghosts[4 * (i - a->nown) + 3]);
                }
            }
    return energy;
}

double compute_forces(struct cells *c, struct atoms *a)
{
    double energy = 0;
    int i;
    sort_cells(c, a);
    for (i = 0; i < a->nown; i++) {
        a->own[i].f[0] = a->own[i].f[1] = a->own[i].f[2] = 0;
        energy += forces_of(c, a, &a->own[i]);
    }
    return energy;
}
