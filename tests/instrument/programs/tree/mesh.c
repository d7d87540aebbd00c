/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hot spot that moves over a plate: diffusion on an adaptive mesh, a forest of quadtrees. Each
 * process has a strip of trees; cells are split where the value changes much, and joined where it
 * does not.
 *
 *     mpiexec -n 4 mesh [TREES [STEPS]]
 */
#include "tree.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 32

static int rank, size;
static struct forest forest;
static double border[2][SAMPLES]; /* values along the borders of the strip: below, above */
static double spot_x = 0.2, spot_y = 0.5, spot_angle = 0.0;
static long splits, joins;

struct options {
    int trees, steps, adapt_every;
    double split_above, join_below;
};

static void default_options(struct options *o)
{
    o->trees = 4;
    o->steps = 120;
    o->adapt_every = 5;
    o->split_above = 0.02;
    o->join_below = 0.004;
}

static void plant(int trees)
{
    int i;
    const double width = 1.0 / trees;
    forest.nroots = trees;
    forest.root = malloc((size_t)trees * sizeof *forest.root);
    if (!forest.root)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (i = 0; i < trees; i++) {
        forest.root[i] = new_cell(NULL, i * width, rank * width, width);
        split(forest.root[i]);
    }
    link_leaves(&forest);
}

static void sample_row(double y, double *row)
{
    int i;
    for (i = 0; i < SAMPLES; i++) {
        const struct cell *one = find_leaf(&forest, (i + 0.5) / SAMPLES, y);
        row[i] = one ? one->value : 0;
    }
}

static void exchange_borders(void)
{
    double mine[2][SAMPLES];
    MPI_Request request[4];
    int n = 0;
    const double low = forest.root[0]->y, high = low + forest.root[0]->size;
    sample_row(low + 1e-9, mine[0]);
    sample_row(high - 1e-9, mine[1]);
    memset(border, 0, sizeof border);
    if (rank > 0) {
        MPI_Irecv(border[0], SAMPLES, MPI_DOUBLE, rank - 1, 7, MPI_COMM_WORLD, &request[n++]);
        MPI_Isend(mine[0], SAMPLES, MPI_DOUBLE, rank - 1, 8, MPI_COMM_WORLD, &request[n++]);
    }
    if (rank < size - 1) {
        MPI_Irecv(border[1], SAMPLES, MPI_DOUBLE, rank + 1, 8, MPI_COMM_WORLD, &request[n++]);
        MPI_Isend(mine[1], SAMPLES, MPI_DOUBLE, rank + 1, 7, MPI_COMM_WORLD, &request[n++]);
    }
    MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
}

static double value_at(double x, double y)
{
    const double low = forest.root[0]->y, high = low + forest.root[0]->size;
    const struct cell *one;
    if (x <= 0 || x >= 1)
        return 0;
    if (y < low || y >= high) {
        int i = (int)(x * SAMPLES);
        return border[y >= high][i < SAMPLES ? i : SAMPLES - 1];
    }
    one = find_leaf(&forest, x, y);
    return one ? one->value : 0;
}

static double source(double x, double y)
{
    const double dx = x - spot_x, dy = y - spot_y;
    return exp(-(dx * dx + dy * dy) / 0.003);
}

static double step_leaves(double dt)
{
    struct cell *one;
    double largest = 0;
    for (one = forest.first_leaf; one; one = one->next_leaf) {
        const double h = one->size, x = one->x + h / 2, y = one->y + h / 2;
        const double around =
            value_at(x - h, y) + value_at(x + h, y) + value_at(x, y - h) + value_at(x, y + h);
        one->change = 0.2 * (around - 4 * one->value) + dt * source(x, y) - 0.02 * one->value;
    }
    for (one = forest.first_leaf; one; one = one->next_leaf) {
        one->value += one->change;
        if (fabs(one->value) > largest)
            largest = fabs(one->value);
    }
    return largest;
}

static void adapt_cell(struct cell *one, const struct options *o, double scale)
{
    int i, leaves = 0;
    if (!one->child[0]) {
        const double h = one->size, x = one->x + h / 2, y = one->y + h / 2;
        const double slope = fabs(value_at(x + h, y) - value_at(x - h, y)) +
                             fabs(value_at(x, y + h) - value_at(x, y - h));
        if (slope > o->split_above * scale && one->level < max_level) {
            split(one);
            splits++;
        }
        return;
    }
    for (i = 0; i < 4; i++) {
        adapt_cell(one->child[i], o, scale);
        leaves += one->child[i]->child[0] == NULL;
    }
    if (leaves == 4 && one->level > 0) {
        double low = one->child[0]->value, high = low;
        for (i = 1; i < 4; i++) {
            low = fmin(low, one->child[i]->value);
            high = fmax(high, one->child[i]->value);
        }
        if (high - low < o->join_below * scale) {
            join(one);
            joins++;
        }
    }
}

static void adapt(const struct options *o, double largest)
{
    int i;
    for (i = 0; i < forest.nroots; i++)
        adapt_cell(forest.root[i], o, largest);
    link_leaves(&forest);
}

static void move_spot(void)
{
    spot_angle += 0.05;
    spot_x = 0.5 + 0.3 * cos(spot_angle);
    spot_y = 0.5 + 0.3 * sin(spot_angle);
}

static unsigned long long digest(void)
{
    const struct cell *one;
    unsigned long long sum = (unsigned long long)forest.nleaves, bits;
    for (one = forest.first_leaf; one; one = one->next_leaf) {
        memcpy(&bits, &one->value, sizeof bits);
        sum = (sum ^ bits) * 0x9e3779b97f4a7c15ULL + (unsigned)one->level;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct options o;
    double mine, largest = 0;
    long counts[3], all[3];
    unsigned long long sum, total;
    int step, i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    default_options(&o);
    if (argc > 1)
        o.trees = atoi(argv[1]);
    if (argc > 2)
        o.steps = atoi(argv[2]);
    if (o.trees < size) {
        if (rank == 0)
            fprintf(stderr, "mesh: one row of trees for each process: %d at least\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    plant(o.trees);

    for (step = 0; step < o.steps; step++) {
        exchange_borders();
        mine = step_leaves(0.1);
        MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (step % o.adapt_every == o.adapt_every - 1) {
            exchange_borders();
            adapt(&o, largest);
        }
        move_spot();
    }

    counts[0] = forest.nleaves;
    counts[1] = splits;
    counts[2] = joins;
    MPI_Reduce(counts, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    sum = digest();
    MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mesh: %ld leaves, %ld split, %ld joined, largest %.17g, checksum %016llx\n", all[0],
               all[1], all[2], largest, total);
    for (i = 0; i < forest.nroots; i++)
        free_tree(forest.root[i]);
    free(forest.root);
    MPI_Finalize();
    return 0;
}
