/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads [BYTES]: several threads per rank, each on its own communicator or its own tag,
 * exchange late messages of a MiB, or BYTES, and more, while other threads write and read the bytes
 * next to the receive buffers: neither may disturb the other.
 *
 *     page       |        |        |        |
 *     watched    ##                        ##   written and read all the time
 *     received     ~~~~~~~~~~~~~~~~~~~~~~~~
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4, MESSAGES = 25, EDGE = 512 };

struct worker {
    int number;
    MPI_Comm comm;
    int tag;
    struct guarded room; /* EDGE watched bytes, the receive buffer, EDGE watched bytes */
    size_t bytes;
    atomic_int done;
    uint64_t seed;
};

static void *exchange(void *argument)
{
    struct worker *w = argument;
    const int peer = 1 - check_rank;
    char *out = check_malloc(w->bytes);
    unsigned char *in = w->room.at + EDGE;
    uint64_t state = w->seed + (uint64_t)check_rank;
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request request;
        pattern_fill(out, w->bytes, w->seed + (uint64_t)(2 * i + check_rank));
        MPI_Isend(out, (int)w->bytes, MPI_BYTE, peer, w->tag, w->comm, &request);
        if (check_random(&state, 2))
            check_sleep_ms((int)check_random(&state, 8));
        MPI_Recv(in, (int)w->bytes, MPI_BYTE, peer, w->tag, w->comm, MPI_STATUS_IGNORE);
        check_content(in, w->bytes, w->seed + (uint64_t)(2 * i + peer), "threaded message");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(out);
    atomic_store(&w->done, 1);
    return NULL;
}

static void *write_next_to_it(void *argument)
{
    struct worker *w = argument;
    volatile unsigned char *before = w->room.at, *after = w->room.at + EDGE + w->bytes;
    unsigned char value = 0;
    while (!atomic_load(&w->done)) {
        value++;
        for (int i = 0; i < EDGE; i++)
            before[i] = after[i] = value;
        struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
        for (int i = 0; i < EDGE; i++)
            CHECK(before[i] == value && after[i] == value,
                  "thread %d: a byte next to the receive buffer lost a write", w->number);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS];
    pthread_t threads[2 * WORKERS];
    check_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        w->number = i;
        w->tag = i;
        w->bytes = argc > 1 ? strtoul(argv[1], NULL, 10) + (size_t)i : MIB + (size_t)i * 100000;
        w->seed = check_seed + (uint64_t)i * 1000;
        w->room = guarded_make(w->bytes + 2 * EDGE, (size_t)(16 + 40 * i));
        if (i % 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
        else
            w->comm = MPI_COMM_WORLD;
    }
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_create(&threads[2 * i], NULL, exchange, &workers[i]) == 0, "no thread");
        CHECK(pthread_create(&threads[2 * i + 1], NULL, write_next_to_it, &workers[i]) == 0,
              "no thread");
    }
    for (int i = 0; i < 2 * WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++) {
        guarded_check(&workers[i].room, "threaded message");
        guarded_free(&workers[i].room);
        if (i % 2)
            MPI_Comm_free(&workers[i].comm);
    }
    return check_finish();
}
