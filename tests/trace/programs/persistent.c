/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent requests: a row per round, numbered when started. */
#include "expect.h"

static int in[3][100], out[100];

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const int next = (rank + 1) % size;
    const int last = (rank + size - 1) % size;
    MPI_Request r[5];
    MPI_Recv_init(in[0], 100, MPI_INT, last, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in[1], 100, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Send_init(out, 10, MPI_INT, next, 0, MPI_COMM_WORLD, &r[2]);
    MPI_Ssend_init(out, 20, MPI_INT, next, 1, MPI_COMM_WORLD, &r[3]);
    MPI_Recv_init(in[2], 100, MPI_INT, last, 2, MPI_COMM_WORLD, &r[4]); /* never started */
    for (int round = 0; round < 4; round++) {
        if (round % 2) {
            MPI_Startall(4, r);
            p2p(MPI_COMM_WORLD, last, 0, 40, in[0]);
            p2p(MPI_COMM_WORLD, last, 1, 80, in[1]);
        } else {
            MPI_Start(&r[1]);
            p2p(MPI_COMM_WORLD, last, 1, 80, in[1]);
            MPI_Start(&r[0]);
            p2p(MPI_COMM_WORLD, last, 0, 40, in[0]);
            MPI_Start(&r[2]);
            MPI_Start(&r[3]);
        }
        MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 5; i++)
        MPI_Request_free(&r[i]);
    /* The handles may be others' now. */
    MPI_Irecv(in[2], 100, MPI_INT, last, 3, MPI_COMM_WORLD, &r[0]);
    p2p(MPI_COMM_WORLD, last, 3, 4, in[2]);
    MPI_Send(out, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    end();
    return 0;
}
