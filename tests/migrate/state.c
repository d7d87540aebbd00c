/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with every kind of state and message, to be moved about:
 *
 *   state MODE [ITERATIONS [FILE]]   ends earlier once FILE exists
 *
 *   state run ITERATIONS       all types, zero blocks, a buffer that grows; each iteration
 *                              exchanges by isend/irecv, persistent and unexpected large
 *                              messages; all content is verified
 *   state uneven ITERATIONS    ranks of very different speed that do not communicate
 *   state crossing ITERATIONS  a message is always on its way across safe points
 *   state types                the successor registers 'x' with another type
 *   state count                the successor registers 'x' with another count
 *   state missing              the successor does not register 'x'
 *   state freed                the memory of 'x' is unmapped without a word
 *   state quick                ends at once, over and over asked to move meanwhile
 *   state lost RANK FILE       RANK is slow, and then comes to no safe point until FILE exists,
 *                              while the others pass theirs
 *   state talk ITERATIONS      messages of every kind that profiles report, in known numbers
 *   state room FILE            says how many communicators can be made, whenever FILE.count appears
 *   state bad                  mistakes of the caller, each refused
 *   state wrong ITERATIONS     once FILE exists rank 1 makes an error that MPI ends it for; with
 *                              another argument at MPI_THREAD_MULTIPLE
 *   state abort ITERATIONS     once FILE exists rank 1 calls MPI_Abort(); a successor does so at
 *                              once if FILE.at-once exists
 *   state exit ITERATIONS      rank 1 (of one: rank 0) ends with status 5 after a while, or once
 *                              FILE exists
 */
#define _GNU_SOURCE
#include "../mpi/pattern.h"
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

enum { LARGE = 300000, MEMORY = 5 << 20, TAG = 4 };

static int rank, ranks;
static const char *stop_file;
static MPI_Comm ring;
static MPI_Request persistent[2];
static char persistent_out[1000], persistent_in[1000];

static void sleep_ms(double ms)
{
    struct timespec span = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(ms * 1e6) % 1000000000};
    nanosleep(&span, NULL);
}

/* At the end of an iteration: the test has had enough. */
static int is_over(void)
{
    int stop = 0;
    if (!stop_file)
        return 0;
    if (rank == 0)
        stop = access(stop_file, F_OK) == 0;
    MPI_Bcast(&stop, 1, MPI_INT, 0, zcm_world());
    return stop;
}

static void build(MPI_Comm world, void *arg)
{
    (void)arg;
    MPI_Comm_dup(world, &ring);
    MPI_Send_init(persistent_out, sizeof persistent_out, MPI_BYTE, (rank + 1) % ranks, 1, ring,
                  &persistent[0]);
    MPI_Recv_init(persistent_in, sizeof persistent_in, MPI_BYTE, (rank + ranks - 1) % ranks, 1,
                  ring, &persistent[1]);
}

static void release(MPI_Comm world, void *arg)
{
    (void)world;
    (void)arg;
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Comm_free(&ring);
}

/* Everything that is sent here is received here. */
static void exchange(long i)
{
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    static char out[LARGE], in[LARGE];
    MPI_Request requests[2];
    pattern_fill(out, LARGE, (uint64_t)(rank * 1000003 + i));
    MPI_Isend(out, LARGE, MPI_BYTE, right, TAG, zcm_world(), &requests[0]);
    pattern_fill(persistent_out, sizeof persistent_out, (uint64_t)(rank * 7 + i));
    MPI_Startall(2, persistent);
    if (i % 3 == rank % 3)
        sleep_ms(2); /* the large one is unexpected then */
    MPI_Irecv(in, LARGE, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : left, TAG, zcm_world(), &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    CHECK(pattern_find_error(in, LARGE, (uint64_t)(left * 1000003 + i)) == LARGE,
          "iteration %ld: wrong large message", i);
    CHECK(pattern_find_error(persistent_in, sizeof persistent_in, (uint64_t)(left * 7 + i)) ==
              sizeof persistent_in,
          "iteration %ld: wrong persistent message", i);
}

struct scalars {
    char c;
    short s;
    unsigned u;
    long l;
    unsigned long long ull;
    float f;
    double d;
};

static int run(long iterations)
{
    long i = 0, grown = 1000;
    struct scalars v = {0};
    double *sparse = calloc(MEMORY / 8, 8);
    long *growing = malloc((size_t)grown * sizeof *growing);
    CHECK(zcm_register("i", &i, 1, MPI_LONG) == 0, "i");
    CHECK(zcm_register("grown", &grown, 1, MPI_LONG) == 0, "grown");
    if (zcm_resumed()) /* its length has just been restored */
        growing = realloc(growing, (size_t)grown * sizeof *growing);
    CHECK(zcm_register("c", &v.c, 1, MPI_CHAR) == 0 && zcm_register("s", &v.s, 1, MPI_SHORT) == 0 &&
              zcm_register("u", &v.u, 1, MPI_UNSIGNED) == 0 &&
              zcm_register("l", &v.l, 1, MPI_LONG) == 0 &&
              zcm_register("ull", &v.ull, 1, MPI_UNSIGNED_LONG_LONG) == 0 &&
              zcm_register("f", &v.f, 1, MPI_FLOAT) == 0 &&
              zcm_register("d", &v.d, 1, MPI_DOUBLE) == 0,
          "scalars");
    CHECK(zcm_register("sparse", sparse, MEMORY / 8, MPI_DOUBLE) == 0, "sparse");
    CHECK(zcm_register("growing", growing, (size_t)grown, MPI_LONG) == 0, "growing");
    zcm_on_rebuild(release, build, NULL);
    if (!zcm_resumed())
        build(zcm_world(), NULL);
    else
        printf("rank %d resumed at %ld\n", rank, i);
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        CHECK(i == 0 || (v.c == (char)i && v.s == (short)(3 * i) && v.u == (unsigned)(5 * i) &&
                         v.l == -7 * i && v.ull == 11ull * (unsigned long long)i &&
                         v.f == (float)i / 3 && v.d == (double)i / 7),
              "iteration %ld: scalars", i);
        for (long k = 0; k < MEMORY / 8; k++)
            if (sparse[k] != 0)
                CHECK(k == (i * 977) % (MEMORY / 8) || k == 3, "iteration %ld: sparse[%ld] = %g", i,
                      k, sparse[k]);
        CHECK(i == 0 || sparse[(i * 977) % (MEMORY / 8)] == (double)i, "iteration %ld: sparse", i);
        for (long k = 0; i > 0 && k < grown; k += 97)
            CHECK(growing[k] == k * i + rank, "iteration %ld: growing[%ld]", i, k);
        exchange(i);
        sparse[(i * 977) % (MEMORY / 8)] = 0;
        sparse[((i + 1) * 977) % (MEMORY / 8)] = (double)(i + 1);
        const long n = i + 1;
        v = (struct scalars){
            (char)n,      (short)(3 * n), (unsigned)(5 * n), -7 * n, 11ull * (unsigned long long)n,
            (float)n / 3, (double)n / 7};
        if (i % 10 == 9) {
            grown += 5000;
            growing = realloc(growing, (size_t)grown * sizeof *growing);
            CHECK(zcm_reregister("growing", growing, (size_t)grown) == 0, "reregister");
        }
        for (long k = 0; k < grown; k++)
            growing[k] = k * n + rank;
        if (is_over())
            break;
    }
    release(zcm_world(), NULL);
    return 0;
}

static int uneven(long iterations)
{
    long i = 0;
    double sum = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("sum", &sum, 1, MPI_DOUBLE);
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        sleep_ms(4 + 3 * (rank % 3));
        sum += (double)i;
    }
    CHECK(sum == (double)iterations * (double)(iterations - 1) / 2, "sum %g", sum);
    return 0;
}

static int crossing(long iterations)
{
    long i = 0;
    int token = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    /* One message ahead, always. */
    if (!zcm_resumed() && rank == 0)
        MPI_Send(&token, 1, MPI_INT, 1, TAG, zcm_world());
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        if (rank == 0) {
            token++;
            MPI_Send(&token, 1, MPI_INT, 1, TAG, zcm_world());
        } else if (rank == 1) {
            MPI_Recv(&token, 1, MPI_INT, 0, TAG, zcm_world(), MPI_STATUS_IGNORE);
            CHECK(token == i, "token %d in iteration %ld", token, i);
        }
        MPI_Barrier(zcm_world());
        sleep_ms(2);
        if (is_over())
            break;
    }
    if (rank == 1)
        MPI_Recv(&token, 1, MPI_INT, 0, TAG, zcm_world(), MPI_STATUS_IGNORE);
    return 0;
}

/* Every one of these moves must fail, and the job go on. */
static int mismatch(const char *kind, long iterations)
{
    long i = 0;
    const size_t bytes = 1 << 20;
    void *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(zcm_register("i", &i, 1, MPI_LONG) == 0, "i");
    const int other = zcm_resumed();
    if (kind[0] == 't')
        zcm_register("x", x, 100, other ? MPI_FLOAT : MPI_INT);
    else if (kind[0] == 'c')
        zcm_register("x", x, other ? 99 : 100, MPI_INT);
    else if (kind[0] == 'f')
        zcm_register("x", x, bytes, MPI_BYTE);
    else if (!other)
        zcm_register("x", x, 100, MPI_INT);
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        if (kind[0] == 'f' && i == 3 && rank == 0)
            /* Freed, and in a place that no other memory of the process can take. */
            CHECK(mmap(x, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == x,
                  "unmap");
        sleep_ms(2);
        if (is_over())
            break;
    }
    return 0;
}

/* A rank that does not come to its safe points any more, and does not talk to anybody. */
static int lost(long who, long iterations)
{
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        if (i == 20 && rank == who)
            while (access(stop_file, F_OK) != 0)
                sleep_ms(20);
        /* The others are ahead of it by then; it makes up for that. */
        sleep_ms(rank != who ? 5 : i < 20 ? 100 : 1);
    }
    return 0;
}

/*
 * In each iteration every rank sends to the next one 4 messages of 2000 bytes in all, by
 * different calls, and takes part in a broadcast, a reduction and an exchange of all with all.
 */
static int talk(long iterations)
{
    static char out[1000], in[1000];
    static char all_out[64 * 16], all_in[64 * 16];
    long i = 0;
    int sum, one = 1;
    MPI_Comm backwards = MPI_COMM_NULL;
    CHECK(ranks <= 64, "%d ranks", ranks);
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_total_safe_points(iterations);
    zcm_on_rebuild(release, build, NULL);
    if (!zcm_resumed())
        build(zcm_world(), NULL);
    for (; i < iterations; i++) {
        const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
        MPI_Request request;
        CHECK(zcm_safe_point() == 0, "safe point");
        MPI_Sendrecv(out, 100, MPI_BYTE, right, 1, in, 100, MPI_BYTE, left, 1, zcm_world(),
                     MPI_STATUS_IGNORE);
        MPI_Irecv(in, 200, MPI_BYTE, left, 2, zcm_world(), &request);
        MPI_Send(out, 200, MPI_BYTE, right, 2, zcm_world());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        /* Over a communicator in which ranks have other numbers. */
        MPI_Comm_split(zcm_world(), 0, -rank, &backwards);
        MPI_Irecv(in, 700, MPI_BYTE, ranks - 1 - left, 3, backwards, &request);
        MPI_Send(out, 700, MPI_BYTE, ranks - 1 - right, 3, backwards);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&backwards);
        MPI_Startall(2, persistent); /* 1000 bytes more */
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
        MPI_Bcast(&one, 1, MPI_INT, 0, zcm_world());
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, zcm_world());
        MPI_Alltoall(all_out, 16, MPI_BYTE, all_in, 16, MPI_BYTE, zcm_world());
        sleep_ms(5);
        if (is_over())
            break;
    }
    release(zcm_world(), NULL);
    return 0;
}

/* How many more communicators this process could make: those that were lost are missing. */
static int count_room(void)
{
    enum { MOST = 1 << 16 };
    static MPI_Comm made[MOST];
    int n = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (n < MOST && MPI_Comm_dup(MPI_COMM_SELF, &made[n]) == MPI_SUCCESS)
        n++;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < n; i++)
        MPI_Comm_free(&made[i]);
    return n;
}

static int room(long iterations)
{
    static char data[24 << 20]; /* more than is under way at once */
    long i = 0;
    char path[4096];
    snprintf(path, sizeof path, "%s.count", stop_file);
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("data", data, sizeof data, MPI_BYTE);
    if (!zcm_resumed())
        pattern_fill(data, sizeof data, 7);
    for (; i < iterations; i++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        int count = 0;
        if (rank == 0)
            count = unlink(path) == 0;
        MPI_Bcast(&count, 1, MPI_INT, 0, zcm_world());
        if (count) {
            const int mine = count_room();
            MPI_Reduce(&mine, &count, 1, MPI_INT, MPI_MIN, 0, zcm_world());
            if (rank == 0)
                printf("room for %d\n", count);
            fflush(stdout);
        }
        sleep_ms(2);
        if (is_over())
            break;
    }
    return 0;
}

static int bad(void)
{
    static double a[10];
    static char name[200];
    MPI_Datatype pair;
    memset(name, 'x', sizeof name - 1);
    CHECK(zcm_init(NULL, NULL) == -EALREADY, "second zcm_init");
    CHECK(zcm_register(NULL, a, 1, MPI_DOUBLE) == -EINVAL, "no name");
    CHECK(zcm_register("", a, 1, MPI_DOUBLE) == -EINVAL, "empty name");
    CHECK(zcm_register("a/b", a, 1, MPI_DOUBLE) == -EINVAL, "name with a slash");
    CHECK(zcm_register("zcm:record", a, 1, MPI_DOUBLE) == -EINVAL, "a name of libzcm's");
    CHECK(zcm_register(name, a, 1, MPI_DOUBLE) == -EINVAL, "long name");
    CHECK(zcm_register("null", NULL, 1, MPI_DOUBLE) == -EINVAL, "no memory");
    CHECK(zcm_register("none", NULL, 0, MPI_DOUBLE) == 0 && zcm_unregister("none") == 0,
          "no elements");
    MPI_Type_create_resized(MPI_DOUBLE, 0, -8, &pair);
    CHECK(zcm_register("pair", a, 1, pair) == -ENOTSUP, "a type that goes backwards");
    MPI_Type_free(&pair);
    CHECK(zcm_register("a", a, 5, MPI_DOUBLE) == 0, "a");
    CHECK(zcm_register("a", a + 5, 5, MPI_DOUBLE) == -EEXIST, "name taken");
    CHECK(zcm_register("b", a + 4, 5, MPI_DOUBLE) == -EEXIST, "overlap");
    CHECK(zcm_register("b", a + 5, 5, MPI_DOUBLE) == 0, "b");
    CHECK(zcm_reregister("c", a, 5) == -ENOENT, "unknown name");
    CHECK(zcm_reregister("a", a, 6) == -EEXIST, "overlap after realloc");
    CHECK(zcm_reregister("a", a, 4) == 0, "a again");
    CHECK(zcm_unregister("c") == -ENOENT, "unknown name");
    CHECK(zcm_total_safe_points(-1) == -EINVAL && zcm_total_safe_points(7) == 0, "total");
    CHECK(zcm_unregister("b") == 0 && zcm_unregister("b") == -ENOENT, "twice");
    for (int code = 0; code < 140; code++)
        CHECK(zcm_strerror(-code), "strerror");
    return 0;
}

/* To the program it has MPI's handler, before and after a move. */
static void check_handler(MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL, "another handler of errors");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK(MPI_Send(NULL, 0, MPI_BYTE, ranks + 3, TAG, comm) != MPI_SUCCESS, "no such rank");
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
}

static int wrong(long iterations)
{
    MPI_Comm copy;
    long i = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    zcm_register("i", &i, 1, MPI_LONG);
    for (; i < iterations; i++) {
        zcm_safe_point();
        MPI_Barrier(copy);
        check_handler(copy);
        check_handler(MPI_COMM_WORLD);
        check_handler(MPI_COMM_SELF);
        if (rank == 1 && access(stop_file, F_OK) == 0)
            MPI_Send(NULL, 0, MPI_BYTE, ranks + 3, TAG, i % 2 ? copy : MPI_COMM_SELF);
        sleep_ms(1);
    }
    return 0;
}

static int aborts(long iterations)
{
    char at_once[4096];
    long i = 0;
    snprintf(at_once, sizeof at_once, "%s.at-once", stop_file);
    if (zcm_resumed() && access(at_once, F_OK) == 0)
        MPI_Abort(MPI_COMM_WORLD, 8);
    for (zcm_register("i", &i, 1, MPI_LONG); i < iterations; i++) {
        zcm_safe_point();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && access(stop_file, F_OK) == 0)
            MPI_Abort(MPI_COMM_WORLD, 7);
        sleep_ms(1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "run";
    const long iterations = argc > 2 ? strtol(argv[2], NULL, 10) : 500;
    stop_file = argc > 3 ? argv[3] : NULL;
    int threads = MPI_THREAD_SINGLE;
    if (!strcmp(mode, "wrong") && argc > 4) /* MPI has locks then, and may hold one at an error */
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    else
        MPI_Init(&argc, &argv);
    if (zcm_safe_point() != -EINVAL || zcm_register("x", &rank, 1, MPI_INT) != -EINVAL)
        return 1;
    if (zcm_init(&argc, &argv) != 0)
        return 1;
    MPI_Comm_rank(zcm_world(), &rank);
    MPI_Comm_size(zcm_world(), &ranks);
    int status = 0;
    long i = 0;
    if (!strcmp(mode, "run"))
        status = run(iterations);
    else if (!strcmp(mode, "uneven"))
        status = uneven(iterations);
    else if (!strcmp(mode, "crossing"))
        status = crossing(iterations);
    else if (!strcmp(mode, "lost"))
        status = lost(iterations, 4000);
    else if (!strcmp(mode, "talk"))
        status = talk(iterations);
    else if (!strcmp(mode, "room"))
        status = room(iterations);
    else if (!strcmp(mode, "wrong"))
        status = wrong(iterations);
    else if (!strcmp(mode, "abort"))
        status = aborts(iterations);
    else if (!strcmp(mode, "bad"))
        status = bad();
    else if (!strcmp(mode, "quick"))
        for (zcm_register("i", &i, 1, MPI_LONG); i < iterations; i++)
            zcm_safe_point();
    else if (!strcmp(mode, "exit"))
        for (zcm_register("i", &i, 1, MPI_LONG); i < iterations; i++) {
            zcm_safe_point();
            MPI_Barrier(zcm_world());
            if (i >= 20 && rank == (ranks > 1) && (!stop_file || !access(stop_file, F_OK)))
                exit(5);
            sleep_ms(1);
        }
    else
        status = mismatch(mode, iterations);
    if (rank == 0) {
        printf("all right, rank 0 of %d\n", ranks);
        fflush(stdout);
    }
    CHECK(zcm_finalize() == 0, "zcm_finalize");
    MPI_Finalize();
    return status;
}
