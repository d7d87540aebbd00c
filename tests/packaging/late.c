/* SPDX-License-Identifier: BSD-3-Clause */
/* A message of 4 MiB that has arrived before its receive is posted: its bytes are those sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 4 << 20, TURNS = 4 };

int main(int argc, char **argv)
{
    int rank;
    unsigned wrong = 0;
    unsigned char *data = malloc(SIZE);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 0) {
            for (int i = 0; i < SIZE; i++)
                data[i] = (unsigned char)(i * 7 + turn);
            MPI_Send(data, SIZE, MPI_BYTE, 1, turn, MPI_COMM_WORLD);
        } else if (rank == 1) {
            usleep(300000);
            MPI_Recv(data, SIZE, MPI_BYTE, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < SIZE; i++)
                wrong += data[i] != (unsigned char)(i * 7 + turn);
        }
    }
    if (rank == 1)
        printf("%u wrong\n", wrong);
    MPI_Finalize();
    free(data);
    return wrong != 0;
}
