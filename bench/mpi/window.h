/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of small messages from rank 1 to rank 0 of a communicator, which posts its
 * receives just before; what arrives is checked. For message rates. */
#ifndef ZC_BENCH_WINDOW_H
#define ZC_BENCH_WINDOW_H

#include "bench.h"

enum { WINDOW_DATA = 1, WINDOW_READY = 2, WINDOW = 64 };

static inline void window_receive(size_t bytes, char *buf, uint64_t seed, MPI_Comm comm)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(buf + (size_t)i * bytes, (int)bytes, MPI_BYTE, 1, WINDOW_DATA, comm, &request[i]);
    MPI_Send(NULL, 0, MPI_BYTE, 1, WINDOW_READY, comm);
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    bench_verify(buf, bytes * WINDOW, seed);
}

static inline void window_send(size_t bytes, char *buf, uint64_t seed, MPI_Comm comm)
{
    MPI_Request request[WINDOW];
    pattern_fill(buf, bytes * WINDOW, seed);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, WINDOW_READY, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(buf + (size_t)i * bytes, (int)bytes, MPI_BYTE, 0, WINDOW_DATA, comm, &request[i]);
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
}

#endif
