/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads FILE
 *
 * Each rank has a thread for each of four communicators, which exchanges messages with the ranks
 * before and behind it, and all of them end before each safe point. Where MPI has as many VCIs,
 * each thread has one of its own, in a process that a rank has moved to, too: by ch4:zc's counter
 * it has a connection to each of both ranks on each of them. It ends once FILE exists.
 */
#include "../mpi/counter.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zcm/zcm.h>

enum { THREADS = 4, WORDS = 20, LARGE = 1 << 20, NEIGHBOURS = 2 };

static long step;
static MPI_Comm comms[THREADS];

/* A message behind the other of each neighbour, from whichever comes first. */
static void exchange_words(MPI_Comm comm, int before, int behind, int number)
{
    int next[NEIGHBOURS] = {0};
    MPI_Request requests[NEIGHBOURS];
    for (int i = 0; i < WORDS; i++) {
        int word = (int)step * 1000 + number * WORDS + i;
        MPI_Isend(&word, 1, MPI_INT, before, 1, comm, &requests[0]);
        MPI_Isend(&word, 1, MPI_INT, behind, 1, comm, &requests[1]);
        for (int n = 0; n < NEIGHBOURS; n++) {
            int came = -1;
            MPI_Status status;
            MPI_Recv(&came, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status);
            int *wanted = &next[status.MPI_SOURCE == before];
            CHECK(came == (int)step * 1000 + number * WORDS + *wanted, "%d of rank %d, not word %d",
                  came, status.MPI_SOURCE, *wanted);
            (*wanted)++;
        }
        MPI_Waitall(NEIGHBOURS, requests, MPI_STATUSES_IGNORE);
    }
}

static void exchange_large(MPI_Comm comm, int before, int behind, int number)
{
    char *out = malloc(LARGE), *in = malloc(LARGE);
    CHECK(out && in, "no memory");
    memset(out, (int)step + number, LARGE);
    MPI_Sendrecv(out, LARGE, MPI_BYTE, behind, 2, in, LARGE, MPI_BYTE, before, 2, comm,
                 MPI_STATUS_IGNORE);
    CHECK(!memcmp(in, out, LARGE), "other bytes on communicator %d", number);
    free(out);
    free(in);
}

static void *exchange(void *argument)
{
    const int number = (int)((MPI_Comm *)argument - comms);
    const int before = (check_rank + check_ranks - 1) % check_ranks,
              behind = (check_rank + 1) % check_ranks;
    exchange_words(comms[number], before, behind, number);
    exchange_large(comms[number], before, behind, number);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, stop = 0;
    pthread_t threads[THREADS];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
    CHECK(argc == 2 && check_ranks > NEIGHBOURS && provided == MPI_THREAD_MULTIPLE, "threads FILE");
    struct counter made = counter_open("foreign_endpoints");
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CHECK(zcm_init(&argc, &argv) == 0 && zcm_register("step", &step, 1, MPI_LONG) == 0, "libzcm");
    for (; !stop; step++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        for (int i = 0; i < THREADS; i++)
            CHECK(!pthread_create(&threads[i], NULL, exchange, &comms[i]), "no thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK(counter_read(&made) >= THREADS * NEIGHBOURS, "%llu connections in step %ld, not %d",
              counter_read(&made), step, THREADS * NEIGHBOURS);
        stop = check_rank == 0 && access(argv[1], F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(1000);
    }
    if (check_rank == 0)
        printf("the threads of %d ranks have a connection each: all right\n", check_ranks);
    zcm_finalize();
    counter_close(&made);
    MPI_Finalize();
    return 0;
}
