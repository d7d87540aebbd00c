/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads FILE
 *
 * Each rank has a thread for each of four communicators, which exchanges messages with the ranks
 * before and behind it, and all of them end before each safe point. Where MPI has as many VCIs,
 * each thread has one of its own, in a process that a rank has moved to, too: by ch4:zc's counter
 * it has a connection to each of both ranks on each of them. It ends once FILE exists.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zcm/zcm.h>

enum { THREADS = 4, WORDS = 20, LARGE = 1 << 20, NEIGHBOURS = 2 };

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: ", rank);                                                    \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int rank, ranks;
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
    const int before = (rank + ranks - 1) % ranks, behind = (rank + 1) % ranks;
    exchange_words(comms[number], before, behind, number);
    exchange_large(comms[number], before, behind, number);
    return NULL;
}

static unsigned long long connections(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS, "cannot read the counter");
    return value;
}

int main(int argc, char **argv)
{
    int provided, level, index, count, stop = 0;
    pthread_t threads[THREADS];
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 2 && ranks > NEIGHBOURS && provided == MPI_THREAD_MULTIPLE, "threads FILE");
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS &&
              MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
              MPI_T_pvar_get_index("ch4_zc_foreign_endpoints", MPI_T_PVAR_CLASS_COUNTER, &index) ==
                  MPI_SUCCESS &&
              MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS,
          "no counter");
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    CHECK(zcm_init(&argc, &argv) == 0 && zcm_register("step", &step, 1, MPI_LONG) == 0, "libzcm");
    for (; !stop; step++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        for (int i = 0; i < THREADS; i++)
            CHECK(!pthread_create(&threads[i], NULL, exchange, &comms[i]), "no thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK(connections(session, handle) >= THREADS * NEIGHBOURS,
              "%llu connections in step %ld, not %d", connections(session, handle), step,
              THREADS * NEIGHBOURS);
        stop = rank == 0 && access(argv[1], F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(1000);
    }
    if (rank == 0)
        printf("the threads of %d ranks have a connection each: all right\n", ranks);
    zcm_finalize();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
