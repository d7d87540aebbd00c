/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 1 waits for what rank 0 sends 50 ms later: zc has nothing to give there. */
#include "rest.h"

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = touched(BYTES);
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            rest(50);
            MPI_Send(data, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
