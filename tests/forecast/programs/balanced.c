/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks rest as long, and exchange 64 KiB with receives that are posted before: what is left to
 * gain is next to nothing. */
#include "rest.h"

int main(int argc, char **argv)
{
    int rank;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *from = touched(BYTES);
    char *to = touched(BYTES);
    for (int i = 0; i < 10; i++) {
        MPI_Request request;
        MPI_Irecv(to, 1 << 16, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &request);
        rest(50);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(from, 1 << 16, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
