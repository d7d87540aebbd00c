/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many more waiting threads than processors on few VCIs: communicators are made and used,
 * messages are probed for, windows are locked in all threads at once. Each step needs
 * answers that another thread may have taken from the network; where threads keep each
 * other from the lock or the processor for a time slice, this does not end within minutes.
 */
#include <pthread.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 60, DATA = 3 };

static MPI_Comm comms[THREADS];

static void make_communicators(MPI_Comm comm, int thread)
{
    MPI_Group group;

    MPI_Comm_group(comm, &group);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm made;
        int sum = 0;
        const int mine = (check_rank + 1) * (thread + 1) + round;

        MPI_Comm_create(comm, group, &made);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made);
        CHECK(sum == check_ranks * (check_ranks + 1) / 2 * (thread + 1) + check_ranks * round,
              "thread %d, round %d: the sum is %d", thread, round, sum);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&group);
}

static void probe(MPI_Comm comm, int thread)
{
    const int right = (check_rank + 1) % check_ranks;
    const int left = (check_rank + check_ranks - 1) % check_ranks;

    for (int round = 0; round < ROUNDS; round++) {
        int sent[2] = {thread, round}, received[2] = {-1, -1};
        MPI_Status status;
        MPI_Message message;

        MPI_Send(sent, 2, MPI_INT, right, DATA, comm);
        if (round % 2) {
            MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, &status);
            MPI_Mrecv(received, 2, MPI_INT, &message, &status);
        } else {
            MPI_Probe(MPI_ANY_SOURCE, DATA, comm, &status);
            MPI_Recv(received, 2, MPI_INT, status.MPI_SOURCE, DATA, comm, &status);
        }
        CHECK(received[0] == thread && received[1] == round && status.MPI_SOURCE == left,
              "thread %d, round %d: message %d of thread %d and rank %d", thread, round,
              received[1], received[0], status.MPI_SOURCE);
    }
}

static void lock_windows(MPI_Comm comm, int thread)
{
    int *counter, seen = 0;
    const int one = 1;
    MPI_Win win;

    MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, comm, &counter, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, win);
    *counter = 0;
    MPI_Win_unlock(check_rank, win);
    MPI_Barrier(comm);
    for (int round = 0; round < ROUNDS / 4; round++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    CHECK(seen == check_ranks * (ROUNDS / 4), "thread %d: %d additions, not %d", thread, seen,
          check_ranks * (ROUNDS / 4));
    MPI_Win_free(&win);
}

static void *run(void *argument)
{
    const int thread = (int)(size_t)argument;

    make_communicators(comms[thread], thread);
    probe(comms[thread], thread);
    lock_windows(comms[thread], thread);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];

    check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (size_t i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0, "no thread %zu", i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    return check_finish();
}
