/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * background WHAT: nonblocking collectives go on while ranks are outside MPI.
 *
 *   advances   all ranks but the last stay outside MPI until that one has its result: all the
 *              steps of the others are made without them
 *   user-op    a user's reduction runs on the threads of the program, and the result is right
 *   idup       communicators are duplicated while ranks compute
 *   poll       a rank that looks for the end again and again does not wake the library's thread
 *              each time
 */
#include "check.h"
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

enum { PATIENCE_MS = 30000, COUNT = 200000, ROUNDS = 3, KINDS = 7 };

static char told[64];

static void name_told(int round, int kind)
{
    snprintf(told, sizeof told, "/tmp/zc-background-%llx-%d-%d", (unsigned long long)check_seed,
             round, kind);
}

/* Another rank is as far as @what: told by a file, since those that wait are not to enter MPI. */
static void await_word(const char *what)
{
    struct stat status;
    for (int ms = 0; stat(told, &status) != 0; ms++) {
        CHECK(ms < PATIENCE_MS, "%s: %s", told, what);
        check_sleep_ms(1);
    }
}

static void tell(void)
{
    FILE *file = fopen(told, "w");
    CHECK(file && fclose(file) == 0, "cannot write %s", told);
}

static const char *const names[KINDS] = {"Ibarrier",   "Ibcast",    "Iallreduce",
                                         "Iallgather", "Ialltoall", "Ineighbor_alltoall",
                                         "Bcast_init"};

static MPI_Request start(int kind, uint64_t *out, uint64_t *in, MPI_Comm ring)
{
    const int part = COUNT / check_ranks;
    MPI_Request request;
    switch (kind) {
    case 0:
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        break;
    case 1:
        memcpy(in, out, COUNT * sizeof *in);
        MPI_Ibcast(in, COUNT, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
        break;
    case 2:
        MPI_Iallreduce(out, in, COUNT, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
        break;
    case 3:
        MPI_Iallgather(out, part, MPI_UINT64_T, in, part, MPI_UINT64_T, MPI_COMM_WORLD, &request);
        break;
    case 4:
        MPI_Ialltoall(out, part, MPI_UINT64_T, in, part, MPI_UINT64_T, MPI_COMM_WORLD, &request);
        break;
    case 5:
        MPI_Ineighbor_alltoall(out, part, MPI_UINT64_T, in, part, MPI_UINT64_T, ring, &request);
        break;
    default:
        memcpy(in, out, COUNT * sizeof *in);
        MPI_Bcast_init(in, COUNT, MPI_UINT64_T, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        break;
    }
    return request;
}

/* Rank r's word i is r * COUNT + i. */
static void check_result(int kind, const uint64_t *in)
{
    const int part = COUNT / check_ranks, left = (check_rank + check_ranks - 1) % check_ranks;
    const uint64_t n = (uint64_t)check_ranks;
    for (int i = 0; i < part; i++) {
        uint64_t expected = 0;
        switch (kind) {
        case 1:
        case 6:
            expected = (uint64_t)i;
            break;
        case 2:
            expected = COUNT * (n * (n - 1) / 2) + n * (uint64_t)i;
            break;
        case 3:
            expected = (uint64_t)i;
            break;
        case 4:
            expected = (uint64_t)(check_rank * part + i);
            break;
        case 5:
            /* From the left neighbour, which sends its second part to the right. */
            expected = (uint64_t)left * COUNT + (uint64_t)(part + i);
            break;
        }
        if (kind)
            CHECK(in[i] == expected, "%s: word %d is %llu, not %llu", names[kind], i,
                  (unsigned long long)in[i], (unsigned long long)expected);
    }
}

static void advances(void)
{
    uint64_t *out = check_malloc(COUNT * sizeof *out), *in = check_malloc(COUNT * sizeof *in);
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &check_ranks, &periodic, 0, &ring);
    for (int i = 0; i < COUNT; i++)
        out[i] = (uint64_t)check_rank * COUNT + (uint64_t)i;
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            name_told(round, kind);
            memset(in, 0, COUNT * sizeof *in);
            if (check_rank == 0)
                remove(told); /* of a run that was killed */
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Request request = start(kind, out, in, ring);
            if (check_rank < check_ranks - 1)
                await_word("the last rank has no result");
            if (kind == 6) {
                MPI_Status status;
                MPI_Wait(&request, &status);
                MPI_Request_free(&request);
            } else {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            check_result(kind, in);
            if (check_rank == check_ranks - 1)
                tell();
            MPI_Barrier(MPI_COMM_WORLD);
            if (check_rank == 0)
                remove(told);
        }
    }
    MPI_Comm_free(&ring);
    free(in);
    free(out);
}

/* ---- a reduction of the user's ---- */

static pthread_t program;
static int reductions;

/* Matrices of 2 x 2 of integers modulo 2^64: their product depends on the order. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    CHECK(pthread_equal(pthread_self(), program), "a reduction on a thread of the library");
    reductions++;
    for (int i = 0; i < *count; i++) {
        const uint64_t *a = (uint64_t *)in + 4 * i;
        uint64_t *b = (uint64_t *)inout + 4 * i;
        const uint64_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                                     a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, product, sizeof product);
    }
}

static void user_op(void)
{
    enum { MATRICES = 20000 };
    uint64_t *out = check_malloc(4 * MATRICES * sizeof *out);
    uint64_t *in = check_malloc(4 * MATRICES * sizeof *in);
    MPI_Datatype matrix;
    MPI_Op op;
    program = pthread_self();
    MPI_Type_contiguous(4, MPI_UINT64_T, &matrix);
    MPI_Type_commit(&matrix);
    for (int commutes = 0; commutes < 2; commutes++) {
        MPI_Op_create(multiply, commutes, &op);
        for (int round = 0; round < 10; round++) {
            /* All the same where any order will do. */
            for (uint64_t i = 0; i < MATRICES; i++) {
                const uint64_t r = commutes ? 0 : (uint64_t)check_rank;
                const uint64_t of[4] = {1, i + r, r, 1 + r * (i + r)};
                memcpy(out + 4 * i, of, sizeof of);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Request request;
            if (round % 2)
                MPI_Iallreduce(out, in, MATRICES, matrix, op, MPI_COMM_WORLD, &request);
            else
                MPI_Ireduce(out, in, MATRICES, matrix, op, 0, MPI_COMM_WORLD, &request);
            check_sleep_ms(20);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (uint64_t i = 0; (round % 2 || check_rank == 0) && i < MATRICES; i += 97) {
                uint64_t expected[4] = {1, 0, 0, 1};
                for (int k = check_ranks - 1; k >= 0; k--) {
                    const uint64_t r = commutes ? 0 : (uint64_t)k;
                    uint64_t of[4] = {1, i + r, r, 1 + r * (i + r)};
                    int one = 1;
                    multiply(of, expected, &one, &matrix);
                }
                CHECK(memcmp(expected, in + 4 * i, sizeof expected) == 0, "matrix %llu, round %d",
                      (unsigned long long)i, round);
            }
        }
        MPI_Op_free(&op);
    }
    CHECK(reductions > 0, "no reduction");
    MPI_Type_free(&matrix);
    free(in);
    free(out);
}

static void idup(void)
{
    for (int round = 0; round < 20; round++) {
        MPI_Comm first, second;
        MPI_Request requests[2];
        MPI_Comm_idup(MPI_COMM_WORLD, &first, &requests[0]);
        MPI_Comm_idup(MPI_COMM_WORLD, &second, &requests[1]);
        check_sleep_ms(check_rank % 2 ? 10 : 0);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        int sum = 0;
        MPI_Allreduce(&check_rank, &sum, 1, MPI_INT, MPI_SUM, round % 2 ? first : second);
        CHECK(sum == check_ranks * (check_ranks - 1) / 2, "%d", sum);
        MPI_Comm_free(&first);
        MPI_Comm_free(&second);
    }
}

/* ---- the wake-up timer of the landing thread ---- */

static long times_set;

/* That of libc, which the library calls. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
    times_set++;
    return (int)syscall(SYS_timerfd_settime, fd, flags, when, old);
}

/* Rank 0 looks so many times before the other one begins. */
enum { LOOKS = 100000 };

static void poll_end(void)
{
    for (int round = 0; round < 5; round++) {
        MPI_Request request;
        long looks = 0;
        int flag = 0;
        name_told(round, 0);
        if (check_rank == 0)
            remove(told); /* of a run that was killed */
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0)
            check_sleep_ms(50);
        else
            await_word("rank 0 looks no more");
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        times_set = 0;
        for (; !flag; looks++) {
            if (check_rank == 0 && looks == LOOKS)
                tell();
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        CHECK(check_rank != 0 || looks > LOOKS, "the end after %ld looks", looks);
        CHECK(check_rank != 0 || times_set < 1000 + looks / 10,
              "the timer was set %ld times in %ld looks", times_set, looks);
        if (check_rank == 0)
            remove(told);
    }
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 2, "background WHAT");
    if (strcmp(argv[1], "advances") == 0)
        advances();
    else if (strcmp(argv[1], "user-op") == 0)
        user_op();
    else if (strcmp(argv[1], "poll") == 0)
        poll_end();
    else
        idup();
    return check_finish();
}
