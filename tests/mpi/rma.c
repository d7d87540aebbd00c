/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication, small and large, under fence, lock, lock-all and
 * post-start-complete-wait, beside large late messages.
 *
 *   rma           all of that
 *   rma threads   threads that get from one target and flush: each must find what it got
 *   rma nocheck   epochs whose locks are checked after some whose locks are not
 */
#include "check.h"
#include <pthread.h>

static const size_t window_bytes = 4 << 20;
static MPI_Win window;
static char *memory;

static uint64_t seed_of(int round, int rank)
{
    return check_seed + (uint64_t)(round * 16 + rank);
}

static void put_under_fence(int round, size_t bytes, int peer)
{
    char *out = check_malloc(bytes);
    pattern_fill(out, bytes, seed_of(round, check_rank));
    memset(memory, 0x5a, window_bytes);
    MPI_Win_fence(0, window);
    MPI_Put(out, (int)bytes, MPI_BYTE, peer, 64, (int)bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check_content(memory + 64, bytes, seed_of(round, peer), "put");
    for (size_t i = 0; i < 64; i++)
        CHECK(memory[i] == 0x5a && memory[64 + bytes + i] == 0x5a, "put wrote outside");
    free(out);
}

static void get_under_lock(int round, size_t bytes, int peer)
{
    char *in = check_malloc(bytes);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
    pattern_fill(memory, bytes, seed_of(round, check_rank));
    MPI_Win_unlock(check_rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
    MPI_Get(in, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_unlock(peer, window);
    check_content(in, bytes, seed_of(round, peer), "get");
    MPI_Barrier(MPI_COMM_WORLD);
    free(in);
}

static void accumulate(size_t bytes, int peer)
{
    const int count = (int)(bytes / sizeof(int64_t));
    int64_t *out = check_malloc((size_t)count * sizeof *out);
    int64_t *in = (int64_t *)memory;
    for (int i = 0; i < count; i++) {
        out[i] = i;
        in[i] = 1000;
    }
    MPI_Win_fence(0, window);
    for (int twice = 0; twice < 2; twice++)
        MPI_Accumulate(out, count, MPI_INT64_T, peer, 0, count, MPI_INT64_T, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < count; i++)
        CHECK(in[i] == 1000 + 2 * i, "accumulate: element %d is %lld", i, (long long)in[i]);
    free(out);
}

static void put_beside_messages(int round, size_t bytes, int peer)
{
    char *out = check_malloc(bytes), *in = check_malloc(bytes);
    MPI_Group world, other;
    MPI_Request request;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    pattern_fill(out, bytes, seed_of(round, check_rank));
    MPI_Isend(out, (int)bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &request);
    MPI_Win_post(other, 0, window);
    MPI_Win_start(other, 0, window);
    MPI_Put(out, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_content(memory, bytes, seed_of(round, peer), "put beside a message");
    check_content(in, bytes, seed_of(round, peer), "message beside a put");
    MPI_Group_free(&other);
    MPI_Group_free(&world);
    free(out);
    free(in);
}

/* Ways of reaching memory mixed within one passive epoch: requests, strides, accumulates. */
static void mix_under_lock_all(int round, size_t bytes, int peer)
{
    const size_t half = window_bytes / 2;
    char *out = check_malloc(bytes), *in = check_malloc(bytes), *back = check_malloc(bytes);
    MPI_Request requests[2];
    MPI_Datatype strided;
    int64_t one = 1, before = -1, *counter = (int64_t *)(memory + half);
    const int blocks = (int)(bytes / 8);
    MPI_Type_vector(blocks, 4, 8, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    memset(memory, 0, window_bytes);
    memset(back, 0, bytes);
    pattern_fill(out, bytes, seed_of(round, check_rank));
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Win_lock_all(0, window);
    MPI_Rput(out, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window, &requests[0]);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, peer, (MPI_Aint)half, MPI_SUM, window);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(peer, window);
    CHECK(before == 0, "counter was %lld", (long long)before);
    MPI_Rget(in, (int)bytes, MPI_BYTE, peer, 0, (int)bytes, MPI_BYTE, window, &requests[0]);
    MPI_Get(back, 1, strided, peer, 0, 1, strided, window);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check_content(in, bytes, seed_of(round, check_rank), "read back what was put");
    MPI_Win_flush_all(window);
    for (size_t i = 0; i < (size_t)blocks * 8; i++)
        CHECK(back[i] == (i % 8 < 4 ? in[i] : 0), "byte %zu of a strided get", i);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    check_content(memory, bytes, seed_of(round, peer), "put with a request");
    CHECK(*counter == 1, "counter is %lld", (long long)*counter);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_free(&strided);
    free(back);
    free(in);
    free(out);
}

/* Memory of the program's own, nothing at one rank, units other than a byte. */
static void created_window(int peer)
{
    enum { COUNT = 5000 };
    int *own = check_malloc(COUNT * sizeof *own), value = 7 + check_rank, got = 0;
    MPI_Win created;
    memset(own, 0, COUNT * sizeof *own);
    MPI_Win_create(check_rank == 0 ? own : NULL, check_rank == 0 ? COUNT * sizeof *own : 0,
                   sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_fence(0, created);
    if (check_rank == 1)
        MPI_Put(&value, 1, MPI_INT, peer, COUNT - 1, 1, MPI_INT, created);
    MPI_Win_fence(0, created);
    MPI_Get(&got, check_rank == 1, MPI_INT, 0, COUNT - 1, check_rank == 1, MPI_INT, created);
    MPI_Win_fence(0, created);
    CHECK(check_rank == 0 ? own[COUNT - 1] == 8 : got == 8, "put %d, got %d", own[COUNT - 1], got);
    MPI_Win_free(&created);
    free(own);
}

enum { THREADS = 3, GETS = 200, GOT = 1 << 20 };

static void *get_and_flush(void *number)
{
    const int target = 1 - check_rank;
    char *in = check_malloc(GOT);
    for (int i = 0; i < GETS; i++) {
        memset(in, 0, GOT);
        MPI_Get(in, GOT, MPI_BYTE, target, 0, GOT, MPI_BYTE, window);
        usleep((unsigned)(i % 5 * 50)); /* another's flush may begin */
        if (i % 3 == *(int *)number)
            MPI_Win_flush_all(window);
        else
            MPI_Win_flush(target, window);
        check_content(in, GOT, seed_of(0, target), "got by a thread");
    }
    free(in);
    return NULL;
}

static void threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    MPI_Win_allocate((MPI_Aint)window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    pattern_fill(memory, GOT, seed_of(0, check_rank));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        pthread_create(&threads[t], NULL, get_and_flush, &numbers[t]);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void put_number(int number, int target, int assertion)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, assertion, window);
    MPI_Put(&number, 1, MPI_INT, target, 0, 1, MPI_INT, window);
    MPI_Win_unlock(target, window);
}

/* What follows an epoch whose lock is not checked has to give its lock back: others wait for it. */
static void nocheck(int peer)
{
    enum { EPOCHS = 100 };
    MPI_Win_allocate((MPI_Aint)window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int i = 0; i < EPOCHS; i++) {
        int number = -1;
        if (check_rank == i % 2) {
            put_number(-i, peer, MPI_MODE_NOCHECK);
            put_number(i, peer, i % 3 ? 0 : MPI_MODE_NOCHECK);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank != i % 2) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
            memcpy(&number, memory, sizeof(number));
            MPI_Win_unlock(check_rank, window);
            CHECK(number == i, "%d instead of %d", number, i);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {8, 5000, 65536, 1 << 20, 3 << 20};
    const int threaded = argc > 1 && !strcmp(argv[1], "threads");
    check_init(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    CHECK(check_ranks == 2, "2 ranks, not %d", check_ranks);
    const int peer = 1 - check_rank;
    if (threaded) {
        threads();
        return check_finish();
    }
    if (argc > 1 && !strcmp(argv[1], "nocheck")) {
        nocheck(peer);
        return check_finish();
    }
    MPI_Win_allocate((MPI_Aint)window_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    for (int s = 0; s < 5; s++) {
        put_under_fence(s * 4, sizes[s], peer);
        get_under_lock(s * 4 + 1, sizes[s], peer);
        MPI_Barrier(MPI_COMM_WORLD);
        accumulate(sizes[s], peer);
        put_beside_messages(s * 4 + 3, sizes[s], peer);
        if (sizes[s] <= window_bytes / 2)
            mix_under_lock_all(s * 4 + 2, sizes[s], peer);
    }
    created_window(peer);
    MPI_Win_free(&window);
    return check_finish();
}
