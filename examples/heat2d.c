/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat on a plate, in two dimensions, by a program whose ranks can move to other
 * hosts while it runs:
 *
 *     ZC_MIGRATE=1 mpiexec -n 4 ./heat2d --iterations 100000
 *     zcctl move --rank 1,3 --to another-host
 *
 * The plate is cut into blocks of rows. Each iteration sends the edge rows to the
 * neighbours above and below (persistent requests, so that these have to be made
 * again after a move), and updates the block. At the end rank 0 computes the whole
 * plate alone and compares bit by bit.
 *
 * Compiled with -DPLAIN it is the same program without migration.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef PLAIN
#include <zcm/zcm.h>
#else
#define zcm_world() MPI_COMM_WORLD
#endif

enum { UP = 1, DOWN = 2, RESULT = 3 };

struct options {
    long rows, columns, iterations, ballast, checkpoint_every, report_every;
    const char *until;
    int verify;
};

struct block {
    MPI_Comm ring; /* derived from the world: has to be rebuilt after a move */
    MPI_Request halo[2][4];
    int rank, size;
    long rows, columns; /* without ghost rows */
    long iteration;
    double *plate[2]; /* plate[iteration % 2] is the current one */
};

static void fail(const char *what)
{
    fprintf(stderr, "heat2d: %s\n", what);
    exit(1);
}

static double initial(long row, long column)
{
    return (double)((row * 31 + column * 17) % 1009) / 1009.0;
}

static void update(const double *old, double *new, long first, long last, long columns)
{
    for (long r = first; r <= last; r++) {
        const double *up = old + (r - 1) * columns, *here = old + r * columns,
                     *down = old + (r + 1) * columns;
        double *out = new + r *columns;
        out[0] = here[0];
        out[columns - 1] = here[columns - 1];
        for (long c = 1; c + 1 < columns; c++)
            out[c] = 0.2 * (here[c] + here[c - 1] + here[c + 1] + up[c] + down[c]);
    }
}

static double *allocate(long rows, long columns)
{
    double *p = calloc((size_t)((rows + 2) * columns), sizeof *p);
    if (!p)
        fail("out of memory");
    return p;
}

/* What hangs on the world communicator. */
static void connect_block(MPI_Comm world, void *arg)
{
    struct block *b = arg;
    const int n = (int)b->columns;
    MPI_Comm_dup(world, &b->ring);
    const int up = b->rank > 0 ? b->rank - 1 : MPI_PROC_NULL;
    const int down = b->rank + 1 < b->size ? b->rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < 2; i++) {
        double *p = b->plate[i];
        MPI_Send_init(p + b->columns, n, MPI_DOUBLE, up, UP, b->ring, &b->halo[i][0]);
        MPI_Send_init(p + b->rows * b->columns, n, MPI_DOUBLE, down, DOWN, b->ring, &b->halo[i][1]);
        MPI_Recv_init(p, n, MPI_DOUBLE, up, DOWN, b->ring, &b->halo[i][2]);
        MPI_Recv_init(p + (b->rows + 1) * b->columns, n, MPI_DOUBLE, down, UP, b->ring,
                      &b->halo[i][3]);
    }
}

static void disconnect_block(MPI_Comm world, void *arg)
{
    struct block *b = arg;
    (void)world;
    for (int i = 0; i < 8; i++)
        MPI_Request_free(&b->halo[i / 4][i % 4]);
    MPI_Comm_free(&b->ring);
}

static void iterate(struct block *b)
{
    const int now = (int)(b->iteration % 2);
    MPI_Startall(4, b->halo[now]);
    update(b->plate[now], b->plate[!now], 2, b->rows - 1, b->columns);
    MPI_Waitall(4, b->halo[now], MPI_STATUSES_IGNORE);
    update(b->plate[now], b->plate[!now], 1, 1, b->columns);
    if (b->rows > 1)
        update(b->plate[now], b->plate[!now], b->rows, b->rows, b->columns);
    b->iteration++;
}

/* The whole plate alone; its rows beyond the first and last are zero for ever. */
static long compare_with_serial(const struct block *b, const double *all, const struct options *o)
{
    const long rows = o->rows * b->size, columns = o->columns;
    double *plate[2] = {allocate(rows, columns), allocate(rows, columns)};
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++)
            plate[0][(r + 1) * columns + c] = initial(r, c);
    for (long i = 0; i < b->iteration; i++)
        update(plate[i % 2], plate[(i + 1) % 2], 1, rows, columns);
    long wrong = 0;
    const double *right = plate[b->iteration % 2] + columns;
    for (long i = 0; i < rows * columns; i++)
        wrong += memcmp(&right[i], &all[i], sizeof *all) != 0;
    free(plate[0]);
    free(plate[1]);
    return wrong;
}

/* Rank 0 has seen the file; all hear of it in the same iteration. */
static int told_to_stop(const struct block *b, const struct options *o)
{
    int stop = 0;
    if (!o->until || b->iteration % 16 != 0)
        return 0;
    if (b->rank == 0)
        stop = access(o->until, F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, zcm_world());
    return stop;
}

static int verify(const struct block *b, const struct options *o)
{
    const double *mine = b->plate[b->iteration % 2] + b->columns;
    const long count = b->rows * b->columns;
    if (b->rank != 0) {
        MPI_Send(mine, (int)count, MPI_DOUBLE, 0, RESULT, zcm_world());
        return 0;
    }
    double *all = allocate(b->rows * b->size, b->columns);
    memcpy(all, mine, (size_t)count * sizeof *all);
    for (int rank = 1; rank < b->size; rank++)
        MPI_Recv(all + rank * count, (int)count, MPI_DOUBLE, rank, RESULT, zcm_world(),
                 MPI_STATUS_IGNORE);
    const long wrong = compare_with_serial(b, all, o);
    free(all);
    printf("%ld iterations on %d ranks: %s (%ld values differ)\n", b->iteration, b->size,
           wrong ? "WRONG" : "bit-identical to the serial solution", wrong);
    fflush(stdout);
    return wrong != 0;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {.rows = 64, .columns = 256, .iterations = 2000, .verify = 1};
    const struct option known[] = {{"rows", required_argument, NULL, 'r'},
                                   {"columns", required_argument, NULL, 'c'},
                                   {"iterations", required_argument, NULL, 'i'},
                                   {"ballast", required_argument, NULL, 'b'},
                                   {"checkpoint", required_argument, NULL, 'k'},
                                   {"report", required_argument, NULL, 'p'},
                                   {"until", required_argument, NULL, 'u'},
                                   {"no-verify", no_argument, NULL, 'n'},
                                   {"help", no_argument, NULL, 'h'},
                                   {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        long *number = c == 'r'   ? &o.rows
                       : c == 'c' ? &o.columns
                       : c == 'i' ? &o.iterations
                       : c == 'b' ? &o.ballast
                       : c == 'k' ? &o.checkpoint_every
                       : c == 'p' ? &o.report_every
                                  : NULL;
        if (number) {
            *number = strtol(optarg, NULL, 10);
        } else if (c == 'u') {
            o.until = optarg;
        } else if (c == 'n') {
            o.verify = 0;
        } else {
            printf("usage: heat2d [--rows N] [--columns N] [--iterations N] [--no-verify]\n"
                   "  rows and columns of one rank's block (64, 256); iterations (2000)\n"
                   "  --ballast MIB     more state per rank\n"
                   "  --checkpoint N    save to disk every N iterations\n"
                   "  --until FILE      stop earlier, once FILE exists\n"
                   "  --report N        print the time every N iterations\n");
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (o.rows < 1 || o.columns < 3 || o.iterations < 0 || o.ballast < 0)
        fail("bad sizes");
    return o;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#ifndef PLAIN
    if (zcm_init(&argc, &argv) != 0)
        fail("cannot start");
#endif
    const struct options o = parse(argc, argv);
    struct block b = {.rows = o.rows, .columns = o.columns};
    MPI_Comm_rank(zcm_world(), &b.rank);
    MPI_Comm_size(zcm_world(), &b.size);
    for (int i = 0; i < 2; i++)
        b.plate[i] = allocate(b.rows, b.columns);
    const size_t ballast_bytes = (size_t)o.ballast << 20;
    char *ballast = ballast_bytes ? malloc(ballast_bytes) : NULL;
    if (ballast_bytes && !ballast)
        fail("out of memory");

#ifndef PLAIN
    const size_t cells = (size_t)((b.rows + 2) * b.columns);
    if (zcm_register("even", b.plate[0], cells, MPI_DOUBLE) != 0 ||
        zcm_register("odd", b.plate[1], cells, MPI_DOUBLE) != 0 ||
        zcm_register("iteration", &b.iteration, 1, MPI_LONG) != 0 ||
        (ballast && zcm_register("ballast", ballast, ballast_bytes, MPI_BYTE) != 0))
        fail("cannot register");
    zcm_on_rebuild(disconnect_block, connect_block, &b);
    zcm_total_safe_points(o.until ? 0 : o.iterations);
    if (!zcm_resumed())
#endif
    {
        connect_block(zcm_world(), &b);
        for (long r = 0; r < b.rows; r++)
            for (long c = 0; c < b.columns; c++)
                b.plate[0][(r + 1) * b.columns + c] = initial(b.rank * b.rows + r, c);
        for (size_t i = 0; i < ballast_bytes; i++)
            ballast[i] = (char)((i * 2654435761u) >> 13);
    }

    while (b.iteration < o.iterations) {
#ifndef PLAIN
        if (o.checkpoint_every && b.iteration % o.checkpoint_every == o.checkpoint_every - 1)
            zcm_checkpoint();
        if (zcm_safe_point() != 0)
            fail("cannot go on");
#endif
        iterate(&b);
        if (o.report_every && b.rank == 0 && b.iteration % o.report_every == 0) {
            printf("iteration %ld at %.6f\n", b.iteration, MPI_Wtime());
            fflush(stdout);
        }
        if (told_to_stop(&b, &o))
            break;
    }

    int wrong = 0;
    for (size_t i = 0; i < ballast_bytes && !wrong; i++)
        wrong = ballast[i] != (char)((i * 2654435761u) >> 13);
    if (wrong)
        fprintf(stderr, "rank %d: ballast damaged\n", b.rank);
    if (o.verify)
        wrong |= verify(&b, &o);
    disconnect_block(zcm_world(), &b);
#ifndef PLAIN
    zcm_finalize();
#endif
    MPI_Finalize();
    free(b.plate[0]);
    free(b.plate[1]);
    free(ballast);
    return wrong;
}
