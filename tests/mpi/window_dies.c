/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of the three processes of a window one dies, which is a world of its own: what it was asked for
 * ends with an error of class MPIX_ERR_PROC_FAILED, and the other two go on in that window.
 *
 *     window_dies WHAT
 *
 * With two ranks these are one world, else a world each. They are ranks 0 and 1 of the window; the
 * one that dies is rank 2. Rank 1 kills it when rank 0 says so, which then waits for it. WHAT:
 *     operations   operations of all kinds and sizes have been begun, with requests and without
 *     local        MPI_Win_flush_local waits for results
 *     fetching     it dies somewhere in the middle of answering gets
 *     fetched      it dies somewhere in the middle of puts and accumulates
 *     locks        MPI_Win_lock and MPI_Win_unlock wait for it
 *     lock-alls    MPI_Win_lock_all and MPI_Win_unlock_all do
 *     holds        it has a lock that another process waits for
 *     queues       it waits for a lock itself
 *     starts       MPI_Win_start and MPI_Win_complete wait for it
 *     posts        MPI_Win_wait does
 *     tests        MPI_Win_test does
 *     completes    MPI_Win_complete does, for an operation
 *     fences       MPI_Win_fence does
 *     natives      puts and gets by UCX have been begun, and MPI_Win_flush waits for them
 *     atomics      accumulates by UCX have been begun, with requests and without
 *     asks         it has asked for many small results, which cannot be sent to it any more
 *     threads      several threads have begun operations of all kinds
 *     creating     MPI_Win_create waits for it
 *     freeing      MPI_Win_free does
 *     twice        when it has died, rank 1, which is a world of its own, dies as well
 */
#include "lost.h"
#include <pthread.h>
#include <signal.h>

enum {
    TAG = 1,
    NEVER,
    VICTIM = 2,
    BLOCKS = 1 << 18, /* of a datatype of 4 MiB: */
    BLOCK = 2,        /* elements of each */
    ELEMENTS = BLOCKS * BLOCK,
    UNEVEN = 1 << 14,    /* blocks of one whose description is long */
    CELL = 2 * ELEMENTS, /* where the processes that are left have something of their own */
    CELLS = CELL + 8,
    KINDS = 14,
    QUESTIONS = 200, /* of each kind, of one that asks */
    PIECES = 500,
    THREADS = 4
};

static const char *what;
static MPI_Comm pair, all;
static int rank, other; /* in them */
static int victim;      /* its process */
static MPI_Win win;
static MPI_Win counters;          /* of which accumulates are done by UCX */
static int64_t *memory;           /* in the window */
static int64_t *buffer, *results; /* each of CELLS */
static MPI_Datatype even, uneven; /* of ELEMENTS with gaps */
static MPI_Datatype pieces;       /* of PIECES, for an answer in one packet */

static int is(const char *which)
{
    return !strcmp(what, which);
}

static void expect_done(int error, const char *call)
{
    if (error)
        expect_failed(error, call);
    CHECK(!error, "%s: error %d", call, error);
}

/* ---- the one that dies ---- */

/** stay - makes progress until it is killed */
static void stay(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, NEVER, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void tell(int to)
{
    MPI_Send(NULL, 0, MPI_BYTE, to, TAG, all);
}

static void hear(int from)
{
    MPI_Recv(NULL, 0, MPI_BYTE, from, TAG, all, MPI_STATUS_IGNORE);
}

static void put_all_the_time(void)
{
    MPI_Win_lock_all(0, win);
    for (int i = 0;; i++) {
        for (int to = 0; to < VICTIM; to++) {
            MPI_Accumulate(buffer, ELEMENTS, MPI_INT64_T, to, 0, 1, i % 2 ? even : uneven, MPI_SUM,
                           win);
            MPI_Put(buffer, 1, i % 2 ? uneven : even, to, 0, 1, uneven, win);
            MPI_Get_accumulate(buffer, ELEMENTS, MPI_INT64_T, results, ELEMENTS, MPI_INT64_T, to, 0,
                               1, uneven, MPI_SUM, win);
        }
        if (i == 0)
            tell(0);
        MPI_Win_flush_all(win);
    }
}

/** ask_for_much - and end, for the others, before any answer is read */
static void ask_for_much(void)
{
    static int64_t one = 1, got[PIECES], swapped;
    MPI_Win_lock_all(0, win);
    tell(0);
    tell(1);
    for (int i = 0; i < QUESTIONS; i++) {
        for (int to = 0; to < VICTIM; to++) {
            MPI_Get(got, PIECES, MPI_INT64_T, to, 0, 1, pieces, win);
            MPI_Fetch_and_op(&one, got, MPI_INT64_T, to, 0, MPI_SUM, win);
            MPI_Compare_and_swap(&one, &one, &swapped, MPI_INT64_T, to, 1, win);
            MPI_Get_accumulate(&one, 1, MPI_INT64_T, got, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T,
                               MPI_SUM, win);
        }
    }
    raise(SIGSTOP);
}

static MPI_Group group_of(int a, int b)
{
    const int ranks[] = {a, b};
    MPI_Group members, group;
    MPI_Comm_group(all, &members);
    MPI_Group_incl(members, b < 0 ? 1 : 2, ranks, &group);
    MPI_Group_free(&members);
    return group;
}

static int post(int a, int b)
{
    MPI_Group group = group_of(a, b);
    const int error = MPI_Win_post(group, 0, win);
    MPI_Group_free(&group);
    return error;
}

static int start(int a, int b)
{
    MPI_Group group = group_of(a, b);
    const int error = MPI_Win_start(group, 0, win);
    MPI_Group_free(&group);
    return error;
}

static void be_victim(void)
{
    if (is("fetched"))
        put_all_the_time();
    else if (is("holds"))
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    else if (is("completes"))
        post(0, -1);
    else if (is("fences"))
        MPI_Win_fence(0, win);
    else if (is("asks"))
        ask_for_much();
    if (is("queues")) {
        hear(1);
        tell(0);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    }
    tell(0);
    stay();
}

/* ---- the others ---- */

/** await_state - until @process is in one of @states, or has ended; outside MPI */
static void await_state(int process, const char *states)
{
    char name[64], state = ' ';
    snprintf(name, sizeof name, "/proc/%d/stat", process);
    while (!strchr(states, state) && !strchr("ZX", state)) {
        FILE *file = fopen(name, "r");
        if (!file || fscanf(file, "%*d %*s %c", &state) != 1)
            state = 'X';
        if (file)
            fclose(file);
    }
}

/** stop - @process answers nothing any more */
static void stop_process(int process)
{
    CHECK(kill(process, SIGSTOP) == 0, "process %d is not there", process);
    await_state(process, "T");
}

static void stop(void)
{
    stop_process(victim);
}

static void end(void)
{
    CHECK(kill(victim, SIGKILL) == 0, "process %d is not there", victim);
}

/** notice - waits until this process knows that it has died */
static void notice(void)
{
    expect_failed(MPI_Recv(NULL, 0, MPI_BYTE, VICTIM, NEVER, all, MPI_STATUS_IGNORE), "MPI_Recv");
}

/** kill_when_told - rank 1; rank 0 is about to wait for the victim, or does */
static void kill_when_told(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, pair, MPI_STATUS_IGNORE);
    end();
}

static void tell_to_kill(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, pair);
}

/** begin - an operation of a kind on @to, with a request */
static int begin(int kind, int to, int64_t *out, int64_t *in, MPI_Request *request)
{
    const MPI_Datatype type = kind % 2 ? uneven : even;
    switch (kind) {
    case 0:
        return MPI_Rput(out, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, request);
    case 1:
        return MPI_Rget(in, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, request);
    case 2:
        return MPI_Rput(out, ELEMENTS, MPI_INT64_T, to, 0, ELEMENTS, MPI_INT64_T, win, request);
    case 3:
        return MPI_Rget(in, ELEMENTS, MPI_INT64_T, to, 0, ELEMENTS, MPI_INT64_T, win, request);
    case 4:
    case 5:
        return MPI_Rput(out, 1, type, to, 0, 1, type, win, request);
    case 6:
    case 7:
        return MPI_Rget(in, 1, type, to, 0, 1, type, win, request);
    case 8:
    case 9:
        return MPI_Raccumulate(out, 1, type, to, 0, 1, type, MPI_SUM, win, request);
    case 10:
    case 11:
        return MPI_Rget_accumulate(out, 1, type, in, 1, type, to, 0, 1, type, MPI_SUM, win,
                                   request);
    case 12:
        return MPI_Raccumulate(out, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, win, request);
    default:
        return MPI_Rget_accumulate(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T,
                                   MPI_SUM, win, request);
    }
}

/** begin_plain - some more on the victim, without a request */
static void begin_plain(void)
{
    static int64_t one = 1, got[2];
    MPI_Put(buffer, 1, even, VICTIM, 0, 1, uneven, win);
    MPI_Get(results, 1, uneven, VICTIM, 0, 1, even, win);
    MPI_Fetch_and_op(&one, &got[0], MPI_INT64_T, VICTIM, 0, MPI_SUM, win);
    MPI_Compare_and_swap(&one, &got[1], &got[1], MPI_INT64_T, VICTIM, 0, win);
}

static void operate(void)
{
    MPI_Request with_victim[KINDS], with_other[KINDS], request;
    int64_t *lost = check_malloc(CELLS * sizeof *lost);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(pair);
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    for (int kind = 0; kind < KINDS; kind++) {
        expect_done(begin(kind, VICTIM, buffer, lost, &with_victim[kind]), "an operation");
        expect_done(begin(kind, other, buffer, results, &with_other[kind]), "an operation");
    }
    begin_plain();
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    for (int kind = 0; kind < KINDS; kind++) {
        expect_done(MPI_Wait(&with_other[kind], MPI_STATUS_IGNORE), "MPI_Wait");
        const int error = MPI_Wait(&with_victim[kind], MPI_STATUS_IGNORE);
        /* UCX may have taken what is put. */
        if (error || (kind != 0 && kind != 2))
            expect_failed(error, "MPI_Wait");
    }
    expect_done(MPI_Win_flush(other, win), "MPI_Win_flush");
    expect_failed(MPI_Win_flush(VICTIM, win), "MPI_Win_flush");
    expect_done(MPI_Win_flush_all(win), "MPI_Win_flush_all, where all has ended,");
    for (int kind = 0; kind < KINDS; kind++) {
        int error = begin(kind, VICTIM, buffer, lost, &request);
        if (!error)
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_failed(error, "an operation on it");
    }
    MPI_Win_flush_all(win);
    expect_done(MPI_Win_flush_local_all(win), "MPI_Win_flush_local_all");
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
    free(lost);
}

static void await_results(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, 0, win);
    MPI_Barrier(pair);
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    MPI_Get(results, 1, even, VICTIM, 0, 1, uneven, win);
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    if (rank == 0)
        expect_failed(MPI_Win_flush_local(VICTIM, win), "MPI_Win_flush_local");
    else
        expect_failed(MPI_Win_flush_local_all(win), "MPI_Win_flush_local_all");
    expect_done(MPI_Win_flush_local(VICTIM, win), "MPI_Win_flush_local, where all has ended,");
    expect_failed(MPI_Win_unlock(VICTIM, win), "MPI_Win_unlock");
}

static void die_in_the_middle(void)
{
    check_sleep_ms((int)check_random(&check_seed, 20));
    end();
}

static void fetch(void)
{
    int error = MPI_SUCCESS;
    MPI_Win_lock_all(0, win);
    for (int i = 0; !error; i++) {
        MPI_Request requests[KINDS];
        int begun = 0;
        for (int kind = 3; !error && kind < 12; kind++) {
            error = begin(kind, VICTIM, buffer, results, &requests[begun]);
            begun += !error;
        }
        for (int k = 0; k < begun; k++) {
            const int one = MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
            error = one ? one : error;
        }
        if (i == 0)
            MPI_Barrier(pair);
        if (i == 0 && rank == 1)
            die_in_the_middle();
    }
    expect_failed(error, "operations");
    MPI_Win_flush_all(win);
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
}

static void be_used(void)
{
    if (rank == 0) {
        hear(VICTIM);
        die_in_the_middle();
    }
    notice();
}

/** put - one number of this process's, into a cell of @to */
static int put(int to, int64_t number)
{
    static int64_t sent;
    sent = number;
    return MPI_Put(&sent, 1, MPI_INT64_T, to, CELL + rank, 1, MPI_INT64_T, win);
}

static void lock(void)
{
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    if (rank == 0) {
        tell_to_kill();
        expect_failed(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, VICTIM, 0, win), "MPI_Win_lock");
    } else {
        kill_when_told();
        notice();
    }
    expect_failed(MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, 0, win), "MPI_Win_lock");
    expect_done(MPI_Win_lock(MPI_LOCK_SHARED, VICTIM, MPI_MODE_NOCHECK, win), "MPI_Win_lock");
    expect_failed(put(VICTIM, 1), "MPI_Put");
    MPI_Win_unlock(VICTIM, win);
}

static void lock_all(void)
{
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    if (rank == 0) {
        tell_to_kill();
        expect_done(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
        put(other, 5);
        expect_done(MPI_Win_flush(other, win), "MPI_Win_flush");
        expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
    } else {
        kill_when_told();
        notice();
    }
    expect_done(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
    expect_done(MPI_Win_flush_all(win), "MPI_Win_flush_all");
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
}

/** get_lock - which the victim has, or waits for */
static void get_lock(void)
{
    if (is("queues") && rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        tell(VICTIM);
    }
    if (rank == 0)
        hear(VICTIM);
    MPI_Barrier(pair);
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);
        end();
        if (is("queues")) {
            notice();
            MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, pair);
        }
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, pair);
    if (is("queues")) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, pair, MPI_STATUS_IGNORE);
        expect_done(MPI_Win_unlock(0, win), "MPI_Win_unlock");
    }
    expect_done(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), "MPI_Win_lock");
    put(0, 3);
    expect_done(MPI_Win_unlock(0, win), "MPI_Win_unlock");
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, pair);
    notice();
}

static void start_with_it(void)
{
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    if (rank == 0) {
        tell_to_kill();
        expect_done(start(1, VICTIM), "MPI_Win_start");
        expect_done(put(1, 7), "MPI_Put");
        expect_failed(put(VICTIM, 7), "MPI_Put");
        expect_failed(MPI_Win_complete(win), "MPI_Win_complete");
        return;
    }
    expect_done(post(0, -1), "MPI_Win_post");
    kill_when_told();
    expect_done(MPI_Win_wait(win), "MPI_Win_wait");
    CHECK(memory[CELL] == 7, "%lld", (long long)memory[CELL]);
    notice();
}

static int test_until_done(void)
{
    int done = 0, error = MPI_SUCCESS;
    while (!done && !error)
        error = MPI_Win_test(win, &done);
    return error;
}

static void post_for_it(void)
{
    if (rank == 0) {
        expect_done(start(1, -1), "MPI_Win_start");
        put(1, 9);
        expect_done(MPI_Win_complete(win), "MPI_Win_complete");
        tell_to_kill();
        notice();
    } else {
        expect_done(post(0, VICTIM), "MPI_Win_post");
        kill_when_told();
        expect_failed(is("tests") ? test_until_done() : MPI_Win_wait(win), "MPI_Win_wait");
        CHECK(memory[CELL] == 9, "%lld", (long long)memory[CELL]);
    }
}

static void complete_with_it(void)
{
    if (rank == 0) {
        expect_done(start(VICTIM, -1), "MPI_Win_start");
        stop();
        expect_done(MPI_Put(buffer, 1, even, VICTIM, 0, 1, uneven, win), "MPI_Put");
        tell_to_kill();
        expect_failed(MPI_Win_complete(win), "MPI_Win_complete");
    } else {
        kill_when_told();
        notice();
    }
}

static void fence(void)
{
    MPI_Win_fence(0, win);
    MPI_Barrier(pair);
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    MPI_Put(buffer, 1, even, VICTIM, 0, 1, even, win);
    MPI_Accumulate(buffer, 1, even, VICTIM, 0, 1, uneven, MPI_SUM, win);
    put(other, 11);
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    expect_failed(MPI_Win_fence(0, win), "MPI_Win_fence");
    MPI_Barrier(pair);
    CHECK(memory[CELL + other] == 11, "%lld", (long long)memory[CELL + other]);
    expect_failed(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), "MPI_Win_fence");
}

static void use_natives(void)
{
    MPI_Win_lock_all(0, win);
    MPI_Barrier(pair);
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    for (int i = 0; i < 4; i++) {
        MPI_Put(buffer, ELEMENTS, MPI_INT64_T, VICTIM, 0, ELEMENTS, MPI_INT64_T, win);
        MPI_Get(results, ELEMENTS, MPI_INT64_T, VICTIM, 0, ELEMENTS, MPI_INT64_T, win);
        put(other, i);
    }
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    expect_failed(rank == 0 ? MPI_Win_flush(VICTIM, win) : MPI_Win_flush_all(win), "a flush");
    expect_done(MPI_Win_flush(other, win), "MPI_Win_flush");
    expect_done(MPI_Win_flush_all(win), "MPI_Win_flush_all, where all has ended,");
    expect_failed(put(VICTIM, 1), "MPI_Put");
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
}

/** count - an accumulate, and one that returns something */
static int count(int to, int64_t *got, MPI_Request requests[2])
{
    static const int64_t one = 1;
    const int error = MPI_Raccumulate(&one, 1, MPI_INT64_T, to, rank, 1, MPI_INT64_T, MPI_SUM,
                                      counters, &requests[0]);
    if (error)
        return error;
    return MPI_Rget_accumulate(&one, 1, MPI_INT64_T, got, 1, MPI_INT64_T, to, rank, 1, MPI_INT64_T,
                               MPI_SUM, counters, &requests[1]);
}

static void use_atomics(void)
{
    static const int64_t one = 1;
    static int64_t got, got_of_other;
    MPI_Request with_victim[2], with_other[2];
    MPI_Win_lock_all(0, counters);
    MPI_Barrier(pair);
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    expect_done(count(VICTIM, &got, with_victim), "an accumulate");
    expect_done(count(other, &got_of_other, with_other), "an accumulate");
    MPI_Fetch_and_op(&one, &got, MPI_INT64_T, VICTIM, 0, MPI_SUM, counters);
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    for (int i = 0; i < 2; i++)
        expect_done(MPI_Wait(&with_other[i], MPI_STATUS_IGNORE), "MPI_Wait");
    /* UCX may have taken what returns nothing. */
    const int error = MPI_Wait(&with_victim[0], MPI_STATUS_IGNORE);
    if (error)
        expect_failed(error, "MPI_Wait");
    expect_failed(MPI_Wait(&with_victim[1], MPI_STATUS_IGNORE), "MPI_Wait");
    expect_failed(MPI_Win_flush(VICTIM, counters), "MPI_Win_flush");
    expect_done(MPI_Win_flush_all(counters), "MPI_Win_flush_all");
    CHECK(got_of_other == 1, "%lld", (long long)got_of_other);
    expect_failed(count(VICTIM, &got, with_victim), "an accumulate on it");
    expect_failed(MPI_Win_unlock_all(counters), "MPI_Win_unlock_all");
}

/** answer_nobody - all that it has asked for is read when it has died */
static void answer_nobody(void)
{
    hear(VICTIM);
    if (rank == 0) {
        await_state(victim, "T");
        end();
    }
    await_state(victim, "");
    notice();
}

/** use_as_thread - until the victim has died, or often; *@to: the process */
static void *use_as_thread(void *to)
{
    int error = MPI_SUCCESS;
    int64_t *own = check_malloc(CELLS * sizeof *own);
    for (int i = 0; !error && (*(int *)to == VICTIM || i < 3); i++) {
        for (int kind = 0; !error && kind < KINDS; kind++) {
            MPI_Request request;
            error = begin(kind, *(int *)to, buffer, own, &request);
            if (!error)
                error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (!error)
            error = MPI_Win_flush(*(int *)to, win);
    }
    if (*(int *)to == VICTIM)
        expect_failed(error, "operations of a thread");
    else
        expect_done(error, "operations of a thread");
    free(own);
    return NULL;
}

static void use_by_threads(void)
{
    static int to[THREADS];
    pthread_t threads[THREADS];
    MPI_Win_lock_all(0, win);
    MPI_Barrier(pair);
    for (int i = 0; i < THREADS; i++) {
        to[i] = i % 2 ? other : VICTIM;
        CHECK(pthread_create(&threads[i], NULL, use_as_thread, &to[i]) == 0, "%m");
    }
    if (rank == 0)
        die_in_the_middle();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_flush_all(win);
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
}

/** wait_together - for the victim, in a collective operation, which fails */
static void wait_together(void)
{
    MPI_Win another;
    if (rank == 1)
        stop();
    MPI_Barrier(pair);
    if (rank == 0)
        tell_to_kill();
    else
        kill_when_told();
    if (is("freeing"))
        expect_failed(MPI_Win_free(&win), "MPI_Win_free");
    else
        expect_failed(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, all, &another), "MPI_Win_create");
}

/* ---- two that die ---- */

static void begin_some(int to, MPI_Request requests[KINDS])
{
    for (int kind = 0; kind < KINDS; kind++)
        expect_done(begin(kind, to, buffer, results, &requests[kind]), "an operation");
}

/** lose - what has been begun on @process, which is @to, and which dies */
static void lose(int to, int process)
{
    MPI_Request requests[KINDS];
    stop_process(process);
    begin_some(to, requests);
    CHECK(kill(process, SIGKILL) == 0, "process %d is not there", process);
    for (int kind = 0; kind < KINDS; kind++) {
        const int error = MPI_Wait(&requests[kind], MPI_STATUS_IGNORE);
        if (error || (kind != 0 && kind != 2))
            expect_failed(error, "MPI_Wait");
    }
    expect_failed(MPI_Win_flush(to, win), "MPI_Win_flush");
}

/** survive_two - rank 0; @next: the process of rank 1 */
static void survive_two(int next)
{
    MPI_Request requests[KINDS];
    expect_done(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
    lose(VICTIM, victim);
    begin_some(1, requests);
    for (int kind = 0; kind < KINDS; kind++)
        expect_done(MPI_Wait(&requests[kind], MPI_STATUS_IGNORE), "MPI_Wait");
    lose(1, next);
    expect_done(MPI_Win_flush_all(win), "MPI_Win_flush_all");
    expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
    for (int to = 0; to <= VICTIM; to++) {
        const int error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        if (to == 0)
            expect_done(error ? error : MPI_Win_unlock(to, win), "MPI_Win_lock");
        else
            expect_failed(error, "MPI_Win_lock");
    }
    expect_failed(MPI_Win_free(&win), "MPI_Win_free");
}

/** die_second - rank 1 */
static void die_second(void)
{
    notice();
    stay();
}

/* ---- afterwards ---- */

static void lock_each_other(int64_t round)
{
    int64_t got = 0, swapped = 0;
    const int64_t number = 100 * round + rank;
    expect_done(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win), "MPI_Win_lock");
    put(other, number);
    expect_done(MPI_Win_flush(other, win), "MPI_Win_flush");
    MPI_Get(&got, 1, MPI_INT64_T, other, CELL + rank, 1, MPI_INT64_T, win);
    expect_done(MPI_Win_flush_local(other, win), "MPI_Win_flush_local");
    CHECK(got == number, "%lld", (long long)got);
    MPI_Compare_and_swap(&number, &number, &swapped, MPI_INT64_T, other, CELL + rank, win);
    MPI_Accumulate(buffer, 1, even, other, 0, 1, uneven, MPI_SUM, win);
    MPI_Get_accumulate(buffer, 1, uneven, results, 1, even, other, 0, 1, even, MPI_SUM, win);
    expect_done(MPI_Win_unlock(other, win), "MPI_Win_unlock");
    CHECK(swapped == number, "%lld", (long long)swapped);
}

static void expose_to_each_other(int64_t round)
{
    expect_done(post(other, -1), "MPI_Win_post");
    expect_done(start(other, -1), "MPI_Win_start");
    put(other, round);
    MPI_Put(buffer, 1, uneven, other, 0, 1, even, win);
    expect_done(MPI_Win_complete(win), "MPI_Win_complete");
    expect_done(MPI_Win_wait(win), "MPI_Win_wait");
    CHECK(memory[CELL + other] == round, "%lld", (long long)memory[CELL + other]);
}

/** go_on - the two that are left use the window */
static void go_on(void)
{
    MPI_Barrier(pair);
    for (int round = 0; round < 3; round++) {
        MPI_Request requests[KINDS];
        lock_each_other(round);
        MPI_Barrier(pair);
        expose_to_each_other(round);
        MPI_Win_lock_all(0, win);
        for (int kind = 0; kind < KINDS; kind++)
            begin(kind, other, buffer, results, &requests[kind]);
        for (int kind = 0; kind < KINDS; kind++)
            expect_done(MPI_Wait(&requests[kind], MPI_STATUS_IGNORE), "MPI_Wait");
        expect_done(MPI_Win_flush_all(win), "MPI_Win_flush_all");
        expect_failed(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
        MPI_Barrier(pair);
    }
}

static void survive(void)
{
    static const struct {
        const char *name;
        void (*does)(void);
    } kinds[] = {
        {"operations", operate},
        {"local", await_results},
        {"fetching", fetch},
        {"fetched", be_used},
        {"locks", lock},
        {"lock-alls", lock_all},
        {"holds", get_lock},
        {"queues", get_lock},
        {"starts", start_with_it},
        {"posts", post_for_it},
        {"tests", post_for_it},
        {"completes", complete_with_it},
        {"fences", fence},
        {"natives", use_natives},
        {"atomics", use_atomics},
        {"asks", answer_nobody},
        {"threads", use_by_threads},
        {"creating", wait_together},
        {"freeing", wait_together},
    };
    /* It is where it stays; but for those that wait for it in their own way. */
    if (rank == 0 && !is("fetched") && !is("holds") && !is("queues") && !is("fences") &&
        !is("asks"))
        hear(VICTIM);
    MPI_Barrier(pair);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is(kinds[i].name))
            kinds[i].does();
    go_on();
    expect_failed(MPI_Win_free(&win), "MPI_Win_free");
    CHECK(win != MPI_WIN_NULL, "the window has gone");
    lock_each_other(5);
    MPI_Barrier(pair);
}

/* ---- the job ---- */

static MPI_Comm merged(MPI_Comm across, int is_child)
{
    MPI_Comm comm;
    MPI_Intercomm_merge(across, is_child, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_free(&across);
    return comm;
}

static MPI_Comm spawn(char *program, const char *role, MPI_Comm by)
{
    MPI_Comm comm;
    char *arguments[] = {(char *)what, (char *)role, NULL};
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, by, &comm, MPI_ERRCODES_IGNORE);
    return merged(comm, 0);
}

static void make_window(void)
{
    static int at[UNEVEN];
    const int length = ELEMENTS / UNEVEN;
    for (int i = 0; i < UNEVEN; i++)
        at[i] = 2 * length * i + (i % 3 ? i % length : 0);
    MPI_Type_vector(BLOCKS, BLOCK, 2 * BLOCK, MPI_INT64_T, &even);
    MPI_Type_create_indexed_block(UNEVEN, length, at, MPI_INT64_T, &uneven);
    MPI_Type_vector(PIECES, 1, 2, MPI_INT64_T, &pieces);
    MPI_Type_commit(&pieces);
    MPI_Type_commit(&even);
    MPI_Type_commit(&uneven);
    memory = check_malloc(CELLS * sizeof *memory);
    buffer = check_malloc(CELLS * sizeof *buffer);
    results = check_malloc(CELLS * sizeof *results);
    memset(memory, 0, CELLS * sizeof *memory);
    memset(buffer, 0, CELLS * sizeof *buffer);
    MPI_Win_create(memory, CELLS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, all, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
}

static void make_counters(void)
{
    int64_t *place;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "which_accumulate_ops", "sum,no_op");
    MPI_Info_set(info, "accumulate_noncontig_dtype", "false");
    MPI_Info_set(info, "accumulate_max_bytes", "8");
    MPI_Win_allocate(3 * sizeof *place, sizeof *place, info, all, &place, &counters);
    memset(place, 0, 3 * sizeof *place);
    MPI_Win_set_errhandler(counters, MPI_ERRORS_RETURN);
    MPI_Barrier(all);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    what = argc > 1 ? argv[1] : "";
    check_init(&argc, &argv, is("threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    CHECK(*what, "window_dies WHAT");
    const char *role = argc > 2 ? argv[2] : "first";
    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* for MPI_Wait() */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!strcmp(role, "victim")) {
        all = merged(parent, 1);
    } else {
        if (!strcmp(role, "second"))
            pair = merged(parent, 1);
        else if (check_ranks == 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &pair);
        else
            pair = spawn(argv[0], "second", MPI_COMM_SELF);
        all = spawn(argv[0], "victim", pair);
    }
    victim = getpid();
    MPI_Bcast(&victim, 1, MPI_INT, VICTIM, all);
    MPI_Comm_rank(all, &rank);
    other = 1 - rank;
    int next = getpid(); /* the process of rank 1 */
    MPI_Bcast(&next, 1, MPI_INT, 1, all);
    make_window();
    if (is("atomics"))
        make_counters();
    if (rank == VICTIM)
        be_victim();
    if (!is("twice"))
        survive();
    else if (rank == 0)
        survive_two(next);
    else
        die_second();
    MPI_Comm_free(&all);
    MPI_Comm_free(&pair);
    if (rank == 0)
        printf("%s survived\n", is("twice") ? "one has" : "two have");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
