/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that receive at once, each with its own communicator. */
#include "expect.h"

#define THREADS 4
#define ROUNDS 2000
static MPI_Comm comms[THREADS];
static int data[THREADS][8][64];

static void *work(void *arg)
{
    const int t = (int)(intptr_t)arg;
    const int peer = rank ^ 1;
    MPI_Request requests[8];
    for (int i = 0; i < ROUNDS; i++) {
        const int k = i % 8;
        if (k == 0)
            for (int j = 0; j < 8; j++)
                MPI_Irecv(data[t][j], 64, MPI_INT, peer, i + j, comms[t], &requests[j]);
        MPI_Send(data[t][k], 1 + k, MPI_INT, peer, i, comms[t]);
        if (k == 7)
            MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    expect_open();
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 77;
    }
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)(intptr_t)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < ROUNDS; i++)
            p2p(comms[t], rank ^ 1, i, 4 * (size_t)(1 + i % 8), data[t][i % 8]);
    end();
    return 0;
}
