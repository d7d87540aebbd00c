/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Molecular dynamics of two kinds of atoms in a periodic box that is cut into slabs, one per
 * process.
 *
 *     mpiexec -n 4 md [ATOMS_PER_SIDE [STEPS]]
 */
#include "md.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box box;
int self, nprocs;

static struct {
    int side, steps, rescale_every;
    double temperature, density;
} input = {12, 120, 10, 0.7, 0.4};

void die(const char *why)
{
    fprintf(stderr, "md: process %d: %s\n", self, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double drawn(unsigned long *seed)
{
    *seed = *seed * 6364136223846793005UL + 1442695040888963407UL;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void set_up_box(void)
{
    int dims[1], periodic[1] = {1}, d;
    dims[0] = nprocs;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periodic, 0, &box.line);
    MPI_Cart_shift(box.line, 0, 1, &box.left, &box.right);
    for (d = 0; d < 3; d++)
        box.length[d] = input.side / cbrt(input.density);
    box.low = box.length[0] * self / nprocs;
    box.high = box.length[0] * (self + 1) / nprocs;
    box.cutoff = 2.5;
    box.dt = 0.004;
}

static void fill(struct atoms *a)
{
    unsigned long seed = 20250101;
    int i, j, k, id = 0;
    const double spacing = box.length[0] / input.side;
    for (i = 0; i < input.side; i++)
        for (j = 0; j < input.side / 2; j++)
            for (k = 0; k < input.side / 2; k++) {
                struct atom one;
                int d;
                memset(&one, 0, sizeof one);
                one.x[0] = (i + 0.5) * spacing;
                one.x[1] = (j + 0.5) * spacing;
                one.x[2] = (k + 0.5) * spacing;
                for (d = 0; d < 3; d++)
                    one.v[d] = drawn(&seed) - 0.5;
                one.id = id;
                one.type = id++ % 5 == 0;
                if (one.x[0] >= box.low && one.x[0] < box.high)
                    add_atom(a, &one);
            }
}

static void kick(struct atoms *a, double dt)
{
    int i, d;
    for (i = 0; i < a->nown; i++)
        for (d = 0; d < 3; d++)
            a->own[i].v[d] += dt * a->own[i].f[d];
}

static void drift(struct atoms *a, double dt)
{
    int i, d;
    for (i = 0; i < a->nown; i++)
        for (d = 0; d < 3; d++)
            a->own[i].x[d] += dt * a->own[i].v[d];
}

/* Sums of whole numbers, so that they are the same in any order. */
static void measure(const struct atoms *a, double potential, double out[3])
{
    long long mine[3] = {0, 0, 0}, all[3];
    int i, d;
    for (i = 0; i < a->nown; i++)
        for (d = 0; d < 3; d++)
            mine[0] += llrint(a->own[i].v[d] * a->own[i].v[d] * 1e9);
    mine[1] = llrint(potential * 1e6);
    mine[2] = a->nown;
    MPI_Allreduce(mine, all, 3, MPI_LONG_LONG, MPI_SUM, box.line);
    out[0] = (double)all[0] / 1e9;
    out[1] = (double)all[1] / 1e6;
    out[2] = (double)all[2];
}

static unsigned long long digest(const struct atoms *a)
{
    unsigned long long sum = 0;
    int i, d;
    for (i = 0; i < a->nown; i++) {
        unsigned long long own = (unsigned long long)a->own[i].id, bits;
        for (d = 0; d < 3; d++) {
            memcpy(&bits, &a->own[i].x[d], sizeof bits);
            own = (own ^ bits) * 0x9e3779b97f4a7c15ULL;
            memcpy(&bits, &a->own[i].v[d], sizeof bits);
            own = (own ^ bits) * 0x9e3779b97f4a7c15ULL;
        }
        sum += own;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct atoms atoms;
    struct cells cells;
    double values[3] = {0, 0, 0}, potential, begun;
    unsigned long long mine, all;
    int step, rescaled = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &nprocs);
    if (self == 0) {
        if (argc > 1)
            input.side = atoi(argv[1]);
        if (argc > 2)
            input.steps = atoi(argv[2]);
    }
    MPI_Bcast(&input.side, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&input.steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    set_up_box();
    memset(&atoms, 0, sizeof atoms);
    memset(&cells, 0, sizeof cells);
    fill(&atoms);
    exchange_ghosts(&atoms);
    potential = compute_forces(&cells, &atoms);
    begun = MPI_Wtime();

    for (step = 1; step <= input.steps; step++) {
        kick(&atoms, box.dt / 2);
        drift(&atoms, box.dt);
        migrate(&atoms);
        exchange_ghosts(&atoms);
        potential = compute_forces(&cells, &atoms);
        kick(&atoms, box.dt / 2);
        measure(&atoms, potential, values);
        if (step % input.rescale_every == 0) {
            const double target = 3 * input.temperature * values[2];
            const double factor = values[0] > target ? sqrt(target / values[0]) : 1.0;
            int i, d;
            for (i = 0; i < atoms.nown; i++)
                for (d = 0; d < 3; d++)
                    atoms.own[i].v[d] *= factor;
            rescaled += factor < 1.0;
        }
    }

    if (self == 0)
        fprintf(stderr, "md: %.3f s\n", MPI_Wtime() - begun);
    mine = digest(&atoms);
    MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, box.line);
    if (self == 0)
        printf(
            "md: %.0f atoms, kinetic %.9g, potential %.6f, rescaled %d times, checksum %016llx\n",
            values[2], values[0], values[1], rescaled, all);
    free(atoms.own);
    free(atoms.ghosts);
    free(cells.head);
    free(cells.next);
    MPI_Comm_free(&box.line);
    MPI_Finalize();
    return 0;
}
