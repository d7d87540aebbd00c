/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Five coupled equations of diffusion and reaction in a cube, by symmetric successive
 * over-relaxation: each plane waits for two neighbours' edges of the same plane, and hands on its
 * own. In the manner of NPB's LU: its partition, its many short messages.
 *
 *     mpiexec -n 4 lu [N [STEPS]]
 */
#include "npb.h"
#include <math.h>

#define COMPONENTS 5
#define REACTION 0.5
#define RELAXATION 1.2
#define TAG_OF_BORDERS 10
#define TAG_FORWARD 20
#define TAG_BACK 30

static int n, across, along;         /* points; of this process along x, along y */
static int first_x, first_y;         /* of them */
static int west, east, north, south; /* neighbours */
static double hh;
static double *u, *change, *goal; /* with a border of one point in all directions */
static double *packed, *unpacked;

static size_t place(int i, int j, int k)
{
    return (((size_t)k * (size_t)(along + 2) + (size_t)j) * (size_t)(across + 2) + (size_t)i) *
           COMPONENTS;
}

static double *allocate(size_t doubles)
{
    double *memory = calloc(doubles, sizeof *memory);
    demand(memory != NULL, "lu: out of memory");
    return memory;
}

static void divide(int rank, int size)
{
    int columns = 1, rows = 1, column, row;
    while (columns * rows < size)
        if (columns <= rows)
            columns *= 2;
        else
            rows *= 2;
    demand(columns * rows == size, "lu: the number of processes is a power of two");
    demand(n % columns == 0 && n % rows == 0, "lu: N must be a multiple of its root");
    column = rank % columns;
    row = rank / columns;
    across = n / columns;
    along = n / rows;
    first_x = column * across;
    first_y = row * along;
    west = column > 0 ? rank - 1 : MPI_PROC_NULL;
    east = column + 1 < columns ? rank + 1 : MPI_PROC_NULL;
    north = row > 0 ? rank - columns : MPI_PROC_NULL;
    south = row + 1 < rows ? rank + columns : MPI_PROC_NULL;
}

static double wanted(int l, int i, int j, int k)
{
    const double h = 1.0 / (n + 1), x = (first_x + i) * h, y = (first_y + j) * h, z = k * h;
    return 1 + 0.1 * l + x * (0.3 + 0.2 * y * y) + (1 + l) * 0.05 * z * z * (1 + y);
}

static void begin_with(int guess)
{
    int i, j, k, l;
    for (k = guess; k <= n + 1 - guess; k++)
        for (j = guess; j <= along + 1 - guess; j++)
            for (i = guess; i <= across + 1 - guess; i++)
                for (l = 0; l < COMPONENTS; l++)
                    u[place(i, j, k) + (size_t)l] = guess ? 1 + 0.1 * l : wanted(l, i, j, k);
}

/* Minus the differences of second order, and a reaction. */
static double evaluate(int l, int i, int j, int k)
{
    const double *at = u + place(i, j, k);
    return 6 * at[l] - u[place(i - 1, j, k) + (size_t)l] - u[place(i + 1, j, k) + (size_t)l] -
           u[place(i, j - 1, k) + (size_t)l] - u[place(i, j + 1, k) + (size_t)l] -
           u[place(i, j, k - 1) + (size_t)l] - u[place(i, j, k + 1) + (size_t)l] +
           hh * REACTION * at[l] * at[(l + 1) % COMPONENTS];
}

/* What is missing: TO = GOAL - what U has; without GOAL, what U has. */
static void residual(double *to, const double *from)
{
    int i, j, k, l;
    for (k = 1; k <= n; k++)
        for (j = 1; j <= along; j++)
            for (i = 1; i <= across; i++)
                for (l = 0; l < COMPONENTS; l++) {
                    const size_t at = place(i, j, k) + (size_t)l;
                    to[at] = from ? from[at] - evaluate(l, i, j, k) : evaluate(l, i, j, k);
                }
}

/* An edge of the planes FROM to TO of A: I fixed (J 0), or J fixed (I 0). To or from BUFFER. */
static int copy_edge(double *a, int i, int j, int from, int to, double *buffer, int into)
{
    int k, p, l, used = 0;
    const int points = i ? along : across;
    for (k = from; k <= to; k++)
        for (p = 1; p <= points; p++)
            for (l = 0; l < COMPONENTS; l++, used++) {
                double *one = a + place(j ? p : i - 1, i ? p : j - 1, k) + l;
                if (into)
                    buffer[used] = *one;
                else
                    *one = buffer[used];
            }
    return used;
}

/* The edge I or J of U, counted from 1, to one neighbour; what comes from the other one is put at
 * BORDER. */
static void exchange_border(int i, int j, int border, int to, int from)
{
    MPI_Request request;
    const int count = (i ? along : across) * n * COMPONENTS;
    MPI_Irecv(unpacked, count, MPI_DOUBLE, from, TAG_OF_BORDERS, MPI_COMM_WORLD, &request);
    copy_edge(u, i, j, 1, n, packed, 1);
    MPI_Send(packed, count, MPI_DOUBLE, to, TAG_OF_BORDERS, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (from != MPI_PROC_NULL)
        copy_edge(u, i ? border : 0, j ? border : 0, 1, n, unpacked, 0);
}

static void exchange_borders(void)
{
    exchange_border(2, 0, across + 2, west, east);
    exchange_border(across + 1, 0, 1, east, west);
    exchange_border(0, 2, along + 2, north, south);
    exchange_border(0, along + 1, 1, south, north);
}

/* X = D^-1 X at a point, where D is what the point's equations depend on at the point itself. */
static void solve_point(const double *at, double *x)
{
    double d[COMPONENTS][COMPONENTS];
    int p, row, l;
    memset(d, 0, sizeof d);
    for (l = 0; l < COMPONENTS; l++) {
        d[l][l] = 6 / RELAXATION + hh * REACTION * at[(l + 1) % COMPONENTS];
        d[l][(l + 1) % COMPONENTS] = hh * REACTION * at[l];
    }
    for (p = 0; p < COMPONENTS; p++)
        for (row = p + 1; row < COMPONENTS; row++) {
            const double factor = d[row][p] / d[p][p];
            for (l = p; l < COMPONENTS; l++)
                d[row][l] -= factor * d[p][l];
            x[row] -= factor * x[p];
        }
    for (row = COMPONENTS - 1; row >= 0; row--) {
        for (l = row + 1; l < COMPONENTS; l++)
            x[row] -= d[row][l] * x[l];
        x[row] /= d[row][row];
    }
}

/* (D + L) v = change, from the first plane to the last. */
static void sweep_forward(void)
{
    int i, j, k, l;
    const int of_side = along * COMPONENTS, of_end = across * COMPONENTS;
    for (k = 1; k <= n; k++) {
        MPI_Recv(unpacked, of_side, MPI_DOUBLE, west, TAG_FORWARD, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (west != MPI_PROC_NULL)
            copy_edge(change, 1, 0, k, k, unpacked, 0);
        MPI_Recv(unpacked, of_end, MPI_DOUBLE, north, TAG_FORWARD, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (north != MPI_PROC_NULL)
            copy_edge(change, 0, 1, k, k, unpacked, 0);
        for (j = 1; j <= along; j++)
            for (i = 1; i <= across; i++) {
                double *at = change + place(i, j, k);
                for (l = 0; l < COMPONENTS; l++)
                    at[l] += change[place(i - 1, j, k) + (size_t)l] +
                             change[place(i, j - 1, k) + (size_t)l] +
                             change[place(i, j, k - 1) + (size_t)l];
                solve_point(u + place(i, j, k), at);
            }
        copy_edge(change, across + 1, 0, k, k, packed, 1);
        MPI_Send(packed, of_side, MPI_DOUBLE, east, TAG_FORWARD, MPI_COMM_WORLD);
        copy_edge(change, 0, along + 1, k, k, packed, 1);
        MPI_Send(packed, of_end, MPI_DOUBLE, south, TAG_FORWARD, MPI_COMM_WORLD);
    }
}

/* (D + U) change = D v, from the last plane to the first. */
static void sweep_back(void)
{
    int i, j, k, l;
    const int of_side = along * COMPONENTS, of_end = across * COMPONENTS;
    for (k = n; k >= 1; k--) {
        MPI_Recv(unpacked, of_side, MPI_DOUBLE, east, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (east != MPI_PROC_NULL)
            copy_edge(change, across + 2, 0, k, k, unpacked, 0);
        MPI_Recv(unpacked, of_end, MPI_DOUBLE, south, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (south != MPI_PROC_NULL)
            copy_edge(change, 0, along + 2, k, k, unpacked, 0);
        for (j = along; j >= 1; j--)
            for (i = across; i >= 1; i--) {
                double later[COMPONENTS], *at = change + place(i, j, k);
                for (l = 0; l < COMPONENTS; l++)
                    later[l] = change[place(i + 1, j, k) + (size_t)l] +
                               change[place(i, j + 1, k) + (size_t)l] +
                               change[place(i, j, k + 1) + (size_t)l];
                solve_point(u + place(i, j, k), later);
                for (l = 0; l < COMPONENTS; l++)
                    at[l] += later[l];
            }
        copy_edge(change, 2, 0, k, k, packed, 1);
        MPI_Send(packed, of_side, MPI_DOUBLE, west, TAG_BACK, MPI_COMM_WORLD);
        copy_edge(change, 0, 2, k, k, packed, 1);
        MPI_Send(packed, of_end, MPI_DOUBLE, north, TAG_BACK, MPI_COMM_WORLD);
    }
}

static void make_step(void)
{
    int i, j, k, l;
    const double weight = (2 - RELAXATION) / RELAXATION;
    memset(change, 0, place(0, 0, n + 2) * sizeof *change);
    exchange_borders();
    residual(change, goal);
    sweep_forward();
    sweep_back();
    for (k = 1; k <= n; k++)
        for (j = 1; j <= along; j++)
            for (i = 1; i <= across; i++)
                for (l = 0; l < COMPONENTS; l++)
                    u[place(i, j, k) + (size_t)l] += weight * change[place(i, j, k) + (size_t)l];
}

static double error(void)
{
    int i, j, k, l;
    double mine = 0, most;
    for (k = 1; k <= n; k++)
        for (j = 1; j <= along; j++)
            for (i = 1; i <= across; i++)
                for (l = 0; l < COMPONENTS; l++) {
                    const double off = fabs(u[place(i, j, k) + (size_t)l] - wanted(l, i, j, k));
                    mine = off <= mine ? mine : off; /* not a number is the greatest */
                }
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static unsigned long long digest(void)
{
    int i, j, k, l;
    unsigned long long sum = 0;
    for (k = 1; k <= n; k++)
        for (j = 1; j <= along; j++)
            for (i = 1; i <= across; i++)
                for (l = 0; l < COMPONENTS; l++)
                    sum ^= digest_of((((unsigned long long)k * (unsigned long long)(n + 2) +
                                       (unsigned long long)(first_y + j)) *
                                          (unsigned long long)(n + 2) +
                                      (unsigned long long)(first_x + i)) *
                                             COMPONENTS +
                                         (unsigned long long)l,
                                     bits_of(u[place(i, j, k) + (size_t)l]));
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, step, numbers[2] = {12, 60};
    double before, after;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_numbers(argc, argv, numbers, 2);
    n = numbers[0];
    hh = 1.0 / ((double)(n + 1) * (n + 1));
    divide(rank, size);
    u = allocate(place(0, 0, n + 2));
    change = allocate(place(0, 0, n + 2));
    goal = allocate(place(0, 0, n + 2));
    packed = allocate((size_t)n * (size_t)n * COMPONENTS);
    unpacked = allocate((size_t)n * (size_t)n * COMPONENTS);
    begin_with(0);
    residual(goal, NULL);
    begin_with(1);
    before = error();

    for (step = 0; step < numbers[1]; step++)
        make_step();

    after = error();
    conclude("lu", step, after < before, after, digest());
    free(u);
    free(change);
    free(goal);
    free(packed);
    free(unpacked);
    MPI_Finalize();
    return 0;
}
