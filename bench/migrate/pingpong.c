/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libzcm costs a message: two ranks send one of BYTES there and back, again and again.
 *
 *   pingpong BYTES SETS EACH     one line per set of EACH: "set N ns", the time one way
 *
 * PLAIN: without libzcm. Both ranks touch what they have received.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef PLAIN
#include <zcm/zcm.h>
#endif

/* Between sets, and before the first: up to then libzcm notes what a rank calls and receives. */
static void safe_point(void)
{
#ifndef PLAIN
    zcm_safe_point();
#endif
}

static long send_and_receive(char *buffer, int bytes, int rank, long sum)
{
    if (rank == 0)
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i += 64)
        sum += buffer[i]++;
    if (rank == 1)
        MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    long sum = 0;
    MPI_Init(&argc, &argv);
#ifndef PLAIN
    if (zcm_init(&argc, &argv) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int bytes = argc > 3 ? atoi(argv[1]) : 0, sets = argc > 3 ? atoi(argv[2]) : 0;
    const int each = argc > 3 ? atoi(argv[3]) : 0;
    char *buffer = calloc((size_t)bytes + 1, 1);
    if (!buffer || ranks != 2 || bytes < 1 || each < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    safe_point();
    for (int set = 0; set < sets; set++) {
        const double begin = MPI_Wtime();
        for (int i = 0; i < each; i++)
            sum = send_and_receive(buffer, bytes, rank, sum);
        if (rank == 0)
            printf("set %.1f ns\n", (MPI_Wtime() - begin) / each / 2 * 1e9);
        safe_point();
    }
    if (rank == 0)
        printf("sum %ld\n", sum);
    free(buffer);
#ifndef PLAIN
    zcm_finalize();
#endif
    MPI_Finalize();
    return 0;
}
