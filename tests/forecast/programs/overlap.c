/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides post 4 MiB, rest for 50 ms, and wait: the transfer could have gone on meanwhile. */
#include "rest.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = touched(BYTES);
    for (int i = 0; i < 5; i++) {
        MPI_Request request;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Isend(data, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        else
            MPI_Irecv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        rest(50);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
