/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipeline of small messages: a grid in which each element depends on its left, upper and upper
 * left neighbours is cut into strips, one for each rank. A strip's last column goes to the next
 * rank as soon as it is known, SIZE bytes (SIZE / 8 rows) at a time, and the last element of all
 * goes back to rank 0 before the next sweep.
 *
 *   rank 0        rank 1        ...
 *   ┌─────────┐   ┌─────────┐
 *   │ 1st rows│─8─▶ 1st rows│─8─▶        a(y,x) = a(y-1,x) + a(y,x-1) - a(y-1,x-1)
 *   │ 2nd     │─8─▶ 2nd     │─8─▶
 *   └─────────┘   └─────────┘
 *
 * With a(y,0) = y, a(0,x) = x, and minus the last element of the sweep before in a(0,0), every
 * element is y + x - a(0,0), which is verified: the last element in each sweep, all of them once.
 * One JSON line per sweep on rank 0, in µs.
 */
#include "bench.h"

enum { ROWS = 1024, COLUMNS = 1024, COLUMN = 1, LAST = 2 };

struct strip {
    int rank, ranks;
    int first, width; /* of the grid's columns 1 to COLUMNS */
    double *a;        /* (ROWS + 1) x (width + 1): row 0 and column 0 are the border */
};

static double *at(const struct strip *s, int y, int x)
{
    return s->a + (size_t)y * (size_t)(s->width + 1) + x;
}

static void strip_make(struct strip *s)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    s->first = 1 + COLUMNS * s->rank / s->ranks;
    s->width = COLUMNS * (s->rank + 1) / s->ranks - s->first + 1;
    s->a = bench_malloc((size_t)(ROWS + 1) * (size_t)(s->width + 1) * sizeof *s->a);
    memset(s->a, 0, (size_t)(ROWS + 1) * (size_t)(s->width + 1) * sizeof *s->a);
    for (int x = 0; x <= s->width; x++)
        *at(s, 0, x) = s->first - 1 + x;
    if (s->rank == 0)
        for (int y = 1; y <= ROWS; y++)
            *at(s, y, 0) = y;
}

static void strip_row(const struct strip *s, int y)
{
    const double *upper = at(s, y - 1, 0);
    double *row = at(s, y, 0);
    for (int x = 1; x <= s->width; x++)
        row[x] = upper[x] + row[x - 1] - upper[x - 1];
}

static void sweep(const struct strip *s, int rows, double *column)
{
    for (int y = 1; y <= ROWS; y += rows) {
        if (s->rank > 0) {
            MPI_Recv(column, rows, MPI_DOUBLE, s->rank - 1, COLUMN, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            for (int i = 0; i < rows; i++)
                *at(s, y + i, 0) = column[i];
        }
        for (int i = 0; i < rows; i++) {
            strip_row(s, y + i);
            column[i] = *at(s, y + i, s->width);
        }
        if (s->rank < s->ranks - 1)
            MPI_Send(column, rows, MPI_DOUBLE, s->rank + 1, COLUMN, MPI_COMM_WORLD);
    }
}

/* The last element, on rank 0; and minus it into a(0,0). */
static double feed_back(const struct strip *s)
{
    double last = *at(s, ROWS, s->width);
    if (s->ranks > 1 && s->rank == s->ranks - 1)
        MPI_Send(&last, 1, MPI_DOUBLE, 0, LAST, MPI_COMM_WORLD);
    if (s->ranks > 1 && s->rank == 0)
        MPI_Recv(&last, 1, MPI_DOUBLE, s->ranks - 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (s->rank == 0)
        *at(s, 0, 0) = -last;
    return last;
}

static void expect(double found, double expected)
{
    if (found != expected) {
        fprintf(stderr, "an element is %.1f instead of %.1f\n", found, expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* After @sweeps of them. */
static void verify_all(const struct strip *s, int sweeps)
{
    const double added = (double)(sweeps - 1) * (ROWS + COLUMNS);
    for (int y = 1; y <= ROWS; y++)
        for (int x = 1; x <= s->width; x++)
            expect(*at(s, y, x), y + s->first - 1 + x + added);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 100, .warmup = 10, .sizes = {8, 128}, .nr_sizes = 2};
    bench_parse(argc, argv, "a pipeline of small messages", &o);
    MPI_Init(&argc, &argv);
    double *column = bench_malloc(ROWS * sizeof *column);
    struct strip s;
    for (int i = 0; i < o.nr_sizes; i++) {
        const int rows = (int)(o.sizes[i] / sizeof *column);
        strip_make(&s);
        if (rows < 1 || rows > ROWS || ROWS % rows || s.width < 1) {
            fprintf(stderr, "SIZE / 8 must divide %d; at most %d ranks\n", ROWS, COLUMNS);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        const double start = bench_now_us();
        int sweeps = 0;
        for (; bench_again(&o, sweeps, start); sweeps++) {
            const double begin = bench_now_us();
            sweep(&s, rows, column);
            const double last = feed_back(&s), took_us = bench_now_us() - begin;
            if (s.rank > 0)
                continue;
            expect(last, (double)(sweeps + 1) * (ROWS + COLUMNS));
            if (sweeps >= o.warmup)
                printf("{\"bench\":\"pipeline\",\"bytes\":%zu,\"rep\":%d,\"time\":%.2f}\n",
                       o.sizes[i], sweeps - o.warmup, took_us);
        }
        verify_all(&s, sweeps);
        fflush(stdout);
        free(s.a);
    }
    free(column);
    return bench_finish(s.rank);
}
