/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking receives of every kind of send; a shorter message than asked for. */
#include "expect.h"

static double data[1000], other[100];
static char attached[1 << 16];

int main(int argc, char **argv)
{
    MPI_Status status;
    begin(&argc, &argv);
    const int next = (rank + 1) % size;
    const int last = (rank + size - 1) % size;

    if (rank == 0) {
        int ready = 0;
        MPI_Buffer_attach(attached, sizeof(attached));
        MPI_Send(data, 1000, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
        MPI_Ssend(data, 3, MPI_DOUBLE, 1, 8, MPI_COMM_WORLD);
        MPI_Bsend(data, 5, MPI_INT, 1, 9, MPI_COMM_WORLD);
        MPI_Recv(&ready, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, 1, 1, 4, &ready);
        MPI_Rsend(data, 0, MPI_INT, 1, 10, MPI_COMM_WORLD);
        void *detached;
        int detached_size;
        MPI_Buffer_detach(&detached, &detached_size);
    } else if (rank == 1) {
        MPI_Request request;
        MPI_Recv(data, 1000, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &status);
        p2p(MPI_COMM_WORLD, 0, 7, 8000, data);
        MPI_Recv(data + 10, 990, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, 0, 8, 24, data + 10);
        MPI_Recv(other, 5, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, 0, 9, 20, other);
        MPI_Irecv(other, 1, MPI_INT, 0, 10, MPI_COMM_WORLD, &request);
        p2p(MPI_COMM_WORLD, 0, 10, 0, other);
        MPI_Send(data, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }

    MPI_Sendrecv(data, 2, MPI_INT, next, 4, other, 100, MPI_INT, last, 4, MPI_COMM_WORLD, &status);
    p2p(MPI_COMM_WORLD, last, 4, 8, other);
    MPI_Sendrecv_replace(data, 9, MPI_DOUBLE, next, 5, last, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 5, 72, data);

    /* At the border of a domain, and of nothing, Open MPI calls PMPI_Sendrecv in here. */
    const int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    const int down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Sendrecv_replace(data, 9, MPI_DOUBLE, up, 6, down, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (down != MPI_PROC_NULL)
        p2p(MPI_COMM_WORLD, down, 6, 72, data);
    MPI_Sendrecv_replace(data, 0, MPI_DOUBLE, next, 6, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 6, 0, data);

    /* To and from MPI_PROC_NULL: no rows. */
    MPI_Send(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Sendrecv(data, 1, MPI_INT, MPI_PROC_NULL, 4, other, 1, MPI_INT, MPI_PROC_NULL, 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    end();
    return 0;
}
