/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 waits for what rank 0 sends 50 ms later: zc has nothing to give there. */
#include "rest.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = touched(BYTES);
    const int fifo = open_fifo(0);
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            hear(fifo);
            rest(50);
            MPI_Send(data, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else {
            say(fifo);
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (rank == 0)
        remove_fifo(0);
    MPI_Finalize();
    return 0;
}
