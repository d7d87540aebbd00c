/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI process with ch4:zc that has ended MPI, but not itself: what the netmod leaves behind when
 * it is taken down, and whether that can be moved. It takes orders as detached_rank does; between
 * MPI_Finalize and its end it is an ordinary process that has libmpi, libzc and UCX in its memory.
 *
 * usage: finalized IN,OUT        IN: detach; attach N; end     OUT: detached; bound */
#include "census.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1 << 20 };

static unsigned *data;

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "finalized: %s\n", what);
        abort();
    }
}

/* A long message to itself, which is announced, and arrives before its receive. */
static void exchange(void)
{
    unsigned *copy = malloc(WORDS * sizeof(*copy));
    MPI_Request request;
    check(data && copy, "no memory");
    for (int i = 0; i < WORDS; i++) {
        data[i] = 3u * (unsigned)i;
    }
    MPI_Isend(data, WORDS, MPI_UNSIGNED, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(copy, WORDS, MPI_UNSIGNED, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(memcmp(data, copy, WORDS * sizeof(*copy)) == 0, "what arrived is not what was sent");
    free(copy);
}

static void read_order(FILE *orders, const char *expected)
{
    char line[64];
    check(fgets(line, sizeof(line), orders) && strncmp(line, expected, strlen(expected)) == 0,
          expected);
}

/* Only files may have come, which libzc keeps open. */
static void check_left(census_t before)
{
    const census_t now = census_take();
    if (now.threads != before.threads || now.sockets != before.sockets ||
        now.anonymous != before.anonymous || now.shared != before.shared) {
        census_print_descriptors(stderr);
        check(0, "MPI_Finalize has left something");
    }
}

int main(int argc, char **argv)
{
    int in, out;
    const census_t before = census_take();
    check(argc == 2 && sscanf(argv[1], "%d,%d", &in, &out) == 2, "usage: finalized IN,OUT");
    FILE *orders = fdopen(in, "r");
    data = malloc(WORDS * sizeof(*data));

    MPI_Init(&argc, &argv);
    exchange();
    read_order(orders, "LEAVE");
    MPI_Finalize();
    check_left(before);
    dprintf(out, "DETACHED\n");
    read_order(orders, "BIND");
    for (int i = 0; i < WORDS; i++) {
        check(data[i] == 3u * (unsigned)i, "memory has changed");
    }
    dprintf(out, "BOUND 1\n");
    read_order(orders, "end");
    return 0;
}
