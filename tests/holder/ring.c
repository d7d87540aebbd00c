/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks in a ring send each other messages, whose contents and order are checked, and add up; an
 * MPI program that knows nothing of moves.
 *
 *     ring FILE [MIB [STEP]]   goes on until FILE is there; MIB: of memory, which is checked in the
 *                              end; STEP: most messages are to the rank that is so much further
 *
 * Each rank prints a line a second, and "rank R ends after N rounds" at its end; rank 0 prints what
 * comes from standard input as well.
 */
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, MANY = 8 };
static const int sizes[] = {1, 64, 1000, 8000, 70000, LONGEST};
static int rank, ranks;

static void fail(const char *what, long round)
{
    fprintf(stderr, "ring: rank %d: %s in round %ld\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static unsigned char content(int from, int to, long round, int i)
{
    return (unsigned char)(from * 31 + to * 17 + round * 7 + i + i / 253);
}

static void exchange(long round, int step, unsigned char *out, unsigned char *in)
{
    const int to = (rank + step + ranks) % ranks, from = (rank - step + ranks) % ranks;
    const int size = sizes[round % (long)(sizeof sizes / sizeof *sizes)];
    MPI_Status status;
    int got;
    for (int i = 0; i < size; i++)
        out[i] = content(rank, to, round, i);
    MPI_Sendrecv(out, size, MPI_BYTE, to, (int)(round % 1000), in, LONGEST, MPI_BYTE, from,
                 (int)(round % 1000), MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != size)
        fail("a message has another length", round);
    for (int i = 0; i < size; i++) {
        if (in[i] != content(from, rank, round, i))
            fail("a message has changed", round);
    }
}

static void copy_input(void)
{
    char bytes[4096];
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&ready, 1, 0) > 0) {
        const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got <= 0)
            return;
        fwrite(bytes, 1, (size_t)got, stdout);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
    const size_t bytes = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;
    const int step = argc > 3 ? atoi(argv[3]) : 0;
    unsigned char *memory = malloc(bytes + 1);
    int over = 0;
    long round = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(i * 31 + i / 4096);
    for (double said = MPI_Wtime(); !over; round++) {
        exchange(round, 1, out, in);
        exchange(round, -1, out, in);
        for (int i = 0; step > 0 && i < MANY; i++)
            exchange(round + i, step, out, in);
        long sum = 0, mine = round + rank;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (sum != ranks * round + ranks * (ranks - 1L) / 2)
            fail("a sum is wrong", round);
        if (rank == 0) {
            over = access(argv[1], F_OK) == 0;
            copy_input();
        }
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (MPI_Wtime() - said > 1) {
            said = MPI_Wtime();
            printf("rank %d round %ld\n", rank, round);
            fflush(stdout);
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        if (memory[i] != (unsigned char)(i * 31 + i / 4096))
            fail("memory has changed", round);
    }
    printf("rank %d ends after %ld rounds\n", rank, round);
    fflush(stdout);
    MPI_Finalize();
    free(memory);
    free(in);
    free(out);
    return 0;
}
