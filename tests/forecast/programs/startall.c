/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent barriers are started 20 times, one by one and then all at once: with MPI-4. */
#include "rest.h"

enum { NR_REQUESTS = 200 };

#if MPI_VERSION >= 4
static MPI_Request requests[NR_REQUESTS];

static void start_each(void)
{
    for (int i = 0; i < NR_REQUESTS; i++)
        MPI_Start(&requests[i]);
}

static void start_all(void)
{
    MPI_Startall(NR_REQUESTS, requests);
}

static void start_persistent(void)
{
    for (int i = 0; i < NR_REQUESTS; i++)
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    for (int i = 0; i < 40; i++) {
        if (i < 20)
            start_each();
        else
            start_all();
        MPI_Waitall(NR_REQUESTS, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < NR_REQUESTS; i++)
        MPI_Request_free(&requests[i]);
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#if MPI_VERSION >= 4
    start_persistent();
#endif
    MPI_Finalize();
    return 0;
}
