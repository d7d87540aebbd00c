/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends with handles that another thread frees when it hears that the message has come, which may
 * be before the call that sent it returns. */
#include "expect.h"

#define ROUNDS 3000
static MPI_Comm comm;
static MPI_Datatype type;
static pthread_barrier_t begun, over;
static char data[16];

static void *work(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&begun);
        MPI_Ssend(data, 1, type, 1, 1, comm);
        pthread_barrier_wait(&over);
    }
    return arg;
}

static void make_handles(void)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(8, MPI_CHAR, &type);
    MPI_Type_commit(&type);
}

static void free_handles(void)
{
    MPI_Comm_free(&comm);
    MPI_Type_free(&type);
}

static void send_all(void)
{
    pthread_t sender;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&over, NULL, 2);
    pthread_create(&sender, NULL, work, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        make_handles();
        pthread_barrier_wait(&begun);
        MPI_Recv(data + 8, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, 1, 2, 1, data + 8);
        free_handles();
        pthread_barrier_wait(&over);
    }
    pthread_join(sender, NULL);
}

static void receive_all(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        make_handles();
        MPI_Recv(data, 1, type, 0, 1, comm, MPI_STATUS_IGNORE);
        p2p(comm, 0, 1, 8, data);
        MPI_Send(data + 8, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
        free_handles();
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    expect_open();
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "no MPI_THREAD_MULTIPLE\n");
        MPI_Finalize();
        return 77;
    }
    if (rank == 0)
        send_all();
    else
        receive_all();
    end();
    return 0;
}
