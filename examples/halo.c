/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat on a plate: Jacobi iteration with halo exchange and uneven work.
 *
 * The plate is cut into bands of rows, one per rank, in a ring. Each iteration
 *
 *     send my edge rows  ->  update my inner rows (+ extra work on one rank,
 *     in turn)  ->  receive the neighbours' edge rows  ->  update my edge rows
 *
 *             up's last row   ~~~~~~~~~~~~   ghost row 0        received late
 *             first row       ############   row 1              sent
 *             ...                            rows 2 .. n-1
 *             last row        ############   row n              sent
 *             down's first    ~~~~~~~~~~~~   ghost row n + 1    received late
 *
 * so every row is on its way before its receive is posted. Afterwards rank 0
 * computes the whole plate alone and compares bit by bit.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UP = 1, DOWN = 2, RESULT = 3 };

struct plate {
    size_t rows, columns; /* of one band, without ghosts */
    int iterations;
    double extra_ms;
    int json, verify;
};

static volatile double sink;

static void busy(long rounds)
{
    double x = 1.0;
    for (long i = 0; i < rounds; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
}

/* Rounds of busy() that take @ms on an idle core: a fixed amount of work, not of time. */
static long rounds_for(double ms)
{
    const long probe = 1000000;
    double best = 1e9;
    for (int i = 0; i < 10; i++) {
        double begin = MPI_Wtime();
        busy(probe);
        double took = MPI_Wtime() - begin;
        best = took < best ? took : best;
    }
    return (long)(ms * 1e-3 / best * (double)probe);
}

static double initial(size_t row, size_t column)
{
    return (double)((row * 31 + column * 17) % 1009) / 1009.0;
}

static void update_rows(const double *old, double *new, size_t first, size_t last, size_t columns)
{
    for (size_t r = first; r <= last; r++) {
        const double *up = old + (r - 1) * columns, *here = old + r * columns,
                     *down = old + (r + 1) * columns;
        double *out = new + r *columns;
        out[0] = here[0];
        out[columns - 1] = here[columns - 1];
        for (size_t c = 1; c + 1 < columns; c++)
            out[c] = 0.2 * (here[c] + here[c - 1] + here[c + 1] + up[c] + down[c]);
    }
}

static double *allocate(size_t rows, size_t columns)
{
    double *p = malloc((rows + 2) * columns * sizeof *p);
    if (!p) {
        fprintf(stderr, "halo: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

static void start_rows(double *u, size_t rows, size_t columns, size_t first_row)
{
    for (size_t r = 1; r <= rows; r++)
        for (size_t c = 0; c < columns; c++)
            u[r * columns + c] = initial(first_row + r - 1, c);
}

/* Returns the seconds taken; *@u is the result. */
static double iterate(const struct plate *p, double **u, double **v, int rank, int ranks)
{
    const int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    const int count = (int)p->columns;
    const long extra = rounds_for(p->extra_ms);

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < p->iterations; i++) {
        double *old = *u, *new = *v;
        MPI_Request sent[2];
        MPI_Isend(old + p->columns, count, MPI_DOUBLE, up, UP, MPI_COMM_WORLD, &sent[0]);
        MPI_Isend(old + p->rows * p->columns, count, MPI_DOUBLE, down, DOWN, MPI_COMM_WORLD,
                  &sent[1]);
        update_rows(old, new, 2, p->rows - 1, p->columns);
        if (i % ranks == rank)
            busy(extra);
        MPI_Recv(old, count, MPI_DOUBLE, up, DOWN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(old + (p->rows + 1) * p->columns, count, MPI_DOUBLE, down, UP, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        update_rows(old, new, 1, 1, p->columns);
        update_rows(old, new, p->rows, p->rows, p->columns);
        MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
        *u = new;
        *v = old;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

/* The whole plate on one rank: what the bands must add up to. */
static double *solve_alone(const struct plate *p, size_t all_rows)
{
    double *u = allocate(all_rows, p->columns), *v = allocate(all_rows, p->columns);
    const size_t row_bytes = p->columns * sizeof *u;
    start_rows(u, all_rows, p->columns, 0);
    for (int i = 0; i < p->iterations; i++) {
        memcpy(u, u + all_rows * p->columns, row_bytes);
        memcpy(u + (all_rows + 1) * p->columns, u + p->columns, row_bytes);
        update_rows(u, v, 1, all_rows, p->columns);
        double *swap = u;
        u = v;
        v = swap;
    }
    free(v);
    return u;
}

/* On rank 0: the rank whose band is wrong, or -1. */
static int find_wrong_band(const struct plate *p, const double *u, int rank, int ranks)
{
    const size_t band = p->rows * p->columns;
    if (rank != 0) {
        for (size_t r = 1; r <= p->rows; r++)
            MPI_Send(u + r * p->columns, (int)p->columns, MPI_DOUBLE, 0, RESULT, MPI_COMM_WORLD);
        return -1;
    }
    int wrong = -1;
    double *right = solve_alone(p, p->rows * (size_t)ranks);
    double *row = allocate(1, p->columns);
    if (memcmp(u + p->columns, right + p->columns, band * sizeof *u) != 0)
        wrong = 0;
    for (int from = 1; from < ranks; from++) {
        for (size_t r = 0; r < p->rows; r++) {
            MPI_Recv(row, (int)p->columns, MPI_DOUBLE, from, RESULT, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            const double *expected = right + ((size_t)from * p->rows + r + 1) * p->columns;
            if (memcmp(row, expected, p->columns * sizeof *row) != 0)
                wrong = from;
        }
    }
    free(row);
    free(right);
    return wrong;
}

static void usage(const char *name)
{
    printf("usage: %s [-r ROWS] [-c COLUMNS] [-i ITERATIONS] [-x EXTRA_MS] [--json]"
           " [--no-verify]\n"
           "  -r   rows of one rank (default 16, at least 2)\n"
           "  -c   columns; one halo message is 8 * COLUMNS bytes (default 131072: 1 MiB)\n"
           "  -i   iterations (default 60)\n"
           "  -x   extra work, in ms, of one rank per iteration, in turn (default 4)\n",
           name);
}

static struct plate parse(int argc, char **argv)
{
    struct plate p = {.rows = 16, .columns = 131072, .iterations = 60, .extra_ms = 4, .verify = 1};
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
                                          {"no-verify", no_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "r:c:i:x:h", longs, NULL)) != -1) {
        switch (letter) {
        case 'r':
            p.rows = strtoul(optarg, NULL, 10);
            break;
        case 'c':
            p.columns = strtoul(optarg, NULL, 10);
            break;
        case 'i':
            p.iterations = atoi(optarg);
            break;
        case 'x':
            p.extra_ms = atof(optarg);
            break;
        case 'j':
            p.json = 1;
            break;
        case 'n':
            p.verify = 0;
            break;
        case 'h':
            usage(argv[0]);
            exit(0);
        default:
            usage(argv[0]);
            exit(2);
        }
    }
    if (p.rows < 2 || p.columns < 2 || p.iterations < 1 || p.extra_ms < 0 || optind != argc) {
        usage(argv[0]);
        exit(2);
    }
    return p;
}

int main(int argc, char **argv)
{
    struct plate p = parse(argc, argv);
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    double *u = allocate(p.rows, p.columns), *v = allocate(p.rows, p.columns);
    start_rows(u, p.rows, p.columns, (size_t)rank * p.rows);
    double seconds = iterate(&p, &u, &v, rank, ranks);

    int wrong = p.verify ? find_wrong_band(&p, u, rank, ranks) : -1;
    if (wrong >= 0) {
        fprintf(stderr, "halo: wrong result in the band of rank %d\n", wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0 && p.json)
        printf("{\"bench\":\"halo\",\"ranks\":%d,\"bytes\":%zu,\"iterations\":%d,"
               "\"time_to_solution\":%.3f,\"verified\":%s}\n",
               ranks, p.columns * sizeof *u, p.iterations, seconds * 1e3,
               p.verify ? "true" : "false");
    else if (rank == 0)
        printf("%d iterations on %d ranks, %zu-byte halo rows: %.1f ms%s\n", p.iterations, ranks,
               p.columns * sizeof *u, seconds * 1e3, p.verify ? ", result verified" : "");
    free(u);
    free(v);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("# finalizing\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
