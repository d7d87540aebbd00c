/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication between processes of two worlds.
 *
 *   partitioned_worlds exchange   partitions go both ways, over the intercommunicator and over one
 *                                 that has been merged: all arrive
 *   partitioned_worlds died       the other process dies: what waits for it ends with an error, of
 *                                 class MPIX_ERR_PROC_FAILED, and so does what is started after
 * that partitioned_worlds replaced   a process dies whose partitions no receive was made for; its
 *                                 successor's come to a communicator that may have the same number
 */
#include "check.h"
#include "lost.h"
#include <signal.h>
#include <stdbool.h>

enum { PARTITIONS = 8, STARTS = 6, TAG = 5 };

static void send_init(char *buf, size_t bytes, int tag, MPI_Comm comm, int to, MPI_Request *out)
{
    CHECK(MPI_Psend_init(buf, PARTITIONS, (MPI_Count)bytes, MPI_BYTE, to, tag, comm, MPI_INFO_NULL,
                         out) == MPI_SUCCESS,
          "MPI_Psend_init of tag %d", tag);
}

static void receive_init(char *buf, size_t bytes, int tag, MPI_Comm comm, int from,
                         MPI_Request *out)
{
    CHECK(MPI_Precv_init(buf, PARTITIONS, (MPI_Count)bytes, MPI_BYTE, from, tag, comm,
                         MPI_INFO_NULL, out) == MPI_SUCCESS,
          "MPI_Precv_init of tag %d", tag);
}

/* ---- exchange ---- */

static uint64_t content_of(int start, int sender)
{
    return (uint64_t)(2 * start + sender);
}

/* Both are started late now and then. */
static void exchange(MPI_Comm comm, int peer, int is_child, size_t bytes)
{
    const size_t all = PARTITIONS * bytes;
    char *out = memset(check_malloc(all), 0, all), *in = check_malloc(all);
    MPI_Request requests[2];
    if (is_child) {
        check_sleep_ms(20);
        receive_init(in, bytes, TAG, comm, peer, &requests[1]);
        send_init(out, bytes, TAG, comm, peer, &requests[0]);
    } else {
        send_init(out, bytes, TAG, comm, peer, &requests[0]);
        receive_init(in, bytes, TAG, comm, peer, &requests[1]);
    }
    for (int start = 0; start < STARTS; start++) {
        if (start % 2 == is_child)
            check_sleep_ms(5);
        pattern_fill(out, all, content_of(start, is_child));
        memset(in, 0, all);
        MPI_Startall(2, requests);
        for (int i = PARTITIONS; i-- > 0;)
            MPI_Pready(i, requests[0]);
        CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS, "start %d", start);
        check_content(in, all, content_of(start, !is_child), "partitions of another world");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(in);
    free(out);
}

static void exchange_both(MPI_Comm across, int is_child)
{
    static const size_t sizes[] = {100, 256 * 1024 + 8};
    MPI_Comm all;
    MPI_Intercomm_merge(across, is_child, &all);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        exchange(across, 0, is_child, sizes[i]);
        exchange(all, !is_child, is_child, sizes[i]);
    }
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&across);
}

/* ---- died ---- */

enum { FEW = 100, MUCH = 8 << 20, CONTENT = 7 };

/* What the parent does has these names. The child does the opposite of those that are matched. */
enum {
    RECEIVE,         /* started; nothing is sent */
    MATCHED_RECEIVE, /* started; the child has not started it */
    SEND,            /* started, ready; nothing is received */
    ASKED_SEND,      /* started, ready but for one partition; the child waits for it */
    LATER_RECEIVE,   /* started after the death */
    LATER_MATCHED_RECEIVE,
    LATER_SEND,
    LATER_ASKED_SEND,
    LARGE_SEND,    /* begins while the child is stopped */
    LARGE_RECEIVE, /* the child dies meanwhile */
    NR_OPERATIONS
};

struct operation {
    bool is_send, is_matched, is_large;
};

static const struct operation operations[NR_OPERATIONS] = {
    [RECEIVE] = {false, false, false},       [MATCHED_RECEIVE] = {false, true, false},
    [SEND] = {true, false, false},           [ASKED_SEND] = {true, true, false},
    [LATER_RECEIVE] = {false, false, false}, [LATER_MATCHED_RECEIVE] = {false, true, false},
    [LATER_SEND] = {true, false, false},     [LATER_ASKED_SEND] = {true, true, false},
    [LARGE_SEND] = {true, true, true},       [LARGE_RECEIVE] = {false, true, true},
};

/* Makes request @which, or the one that it is matched with. */
static void make(int which, bool is_send, char *buf, MPI_Comm comm, MPI_Request *out)
{
    const size_t bytes = operations[which].is_large ? MUCH : FEW;
    if (is_send)
        send_init(buf, bytes, which, comm, 0, out);
    else
        receive_init(buf, bytes, which, comm, 0, out);
}

static void make_all_ready(MPI_Request request)
{
    CHECK(MPI_Pready_range(0, PARTITIONS - 1, request) == MPI_SUCCESS, "MPI_Pready_range");
}

static void die(MPI_Comm parent)
{
    const int pid = getpid();
    static MPI_Request requests[NR_OPERATIONS];
    for (int i = 0; i < NR_OPERATIONS; i++) {
        char *buf = check_malloc((size_t)PARTITIONS * MUCH);
        pattern_fill(buf, (size_t)PARTITIONS * MUCH, CONTENT);
        if (!operations[i].is_matched)
            continue;
        make(i, !operations[i].is_send, buf, parent, &requests[i]);
        if (operations[i].is_send || i == LARGE_RECEIVE)
            MPI_Start(&requests[i]);
    }
    make_all_ready(requests[LARGE_RECEIVE]);
    MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, parent);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void kill_it(int pid)
{
    CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
}

/* Begins what the child dies in: over a network when some of its data is here and most is not. The
 * child's CTS came before its answer. */
static void kill_in_the_middle(MPI_Comm child, int pid, MPI_Request requests[], const char *buf)
{
    uint64_t first = 0;
    int arrived = 0;
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, child);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, child, MPI_STATUS_IGNORE);
    MPI_Start(&requests[LARGE_RECEIVE]);
    while (!arrived && first == 0) {
        MPI_Parrived(requests[LARGE_RECEIVE], 0, &arrived);
        memcpy(&first, buf, sizeof first);
    }
    printf("# the large receive %s\n", arrived ? "was complete" : "had begun");
    CHECK(kill(pid, SIGSTOP) == 0, "process %d is not there", pid);
    make_all_ready(requests[LARGE_SEND]);
    kill_it(pid);
}

static void expect_no_arrival(MPI_Request request)
{
    int error, arrived = 0;
    do {
        error = MPI_Parrived(request, 0, &arrived);
        CHECK(!arrived, "a partition of a dead process has arrived");
    } while (!error);
    expect_failed(error, "MPI_Parrived");
}

/* Starts what has not been started, or has ended. */
static void start_in_vain(MPI_Request *request, bool is_send)
{
    CHECK(MPI_Start(request) == MPI_SUCCESS, "MPI_Start");
    if (is_send)
        make_all_ready(*request);
    else
        expect_no_arrival(*request);
    expect_failed(MPI_Wait(request, MPI_STATUS_IGNORE), "MPI_Wait for what begins later");
}

static void check_large_receive(MPI_Request *request, const char *buf)
{
    MPI_Status status;
    const int error = MPI_Wait(request, &status);
    if (error)
        expect_failed(error, "MPI_Wait for a large receive");
    else
        check_content(buf, (size_t)PARTITIONS * MUCH, CONTENT, "what a process sent that died");
}

static void survive(MPI_Comm child)
{
    int pid;
    char *buf[NR_OPERATIONS];
    MPI_Request requests[NR_OPERATIONS], late;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    for (int i = 0; i < NR_OPERATIONS; i++) {
        const size_t bytes = (size_t)PARTITIONS * (operations[i].is_large ? MUCH : FEW);
        buf[i] = memset(check_malloc(bytes), 0, bytes);
        make(i, operations[i].is_send, buf[i], child, &requests[i]);
    }
    for (int i = RECEIVE; i <= ASKED_SEND; i++)
        MPI_Start(&requests[i]);
    MPI_Start(&requests[LARGE_SEND]);
    make_all_ready(requests[SEND]);
    MPI_Pready_range(0, PARTITIONS - 2, requests[ASKED_SEND]);
    kill_in_the_middle(child, pid, requests, buf[LARGE_RECEIVE]);

    expect_no_arrival(requests[RECEIVE]);
    expect_failed(MPI_Wait(&requests[RECEIVE], MPI_STATUS_IGNORE), "MPI_Wait for a receive");
    expect_failed(MPI_Wait(&requests[MATCHED_RECEIVE], MPI_STATUS_IGNORE),
                  "MPI_Wait for a matched receive");
    expect_failed(MPI_Wait(&requests[SEND], MPI_STATUS_IGNORE), "MPI_Wait for a send");
    expect_failed(MPI_Pready(PARTITIONS - 1, requests[ASKED_SEND]), "MPI_Pready");
    expect_failed(MPI_Wait(&requests[ASKED_SEND], MPI_STATUS_IGNORE),
                  "MPI_Wait for a send that was asked for");
    expect_failed(MPI_Wait(&requests[LARGE_SEND], MPI_STATUS_IGNORE), "MPI_Wait for a large send");
    check_large_receive(&requests[LARGE_RECEIVE], buf[LARGE_RECEIVE]);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < NR_OPERATIONS; i++)
            start_in_vain(&requests[i], operations[i].is_send);
    for (int i = 0; i < NR_OPERATIONS; i++) {
        MPI_Request_free(&requests[i]);
        free(buf[i]);
    }
    expect_failed(
        MPI_Psend_init(NULL, PARTITIONS, 0, MPI_BYTE, 0, TAG, child, MPI_INFO_NULL, &late),
        "MPI_Psend_init");
    receive_init(NULL, 0, TAG, child, 0, &late);
    start_in_vain(&late, false);
    MPI_Request_free(&late);
    MPI_Comm_disconnect(&child);
    printf("the parent has survived\n");
}

/* ---- replaced ---- */

static void vanish(MPI_Comm parent)
{
    static char buf[PARTITIONS * FEW];
    const int pid = getpid();
    MPI_Request request;
    send_init(buf, FEW, TAG, parent, 0, &request);
    MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* The two sides of the intercommunicator have different numbers, since the parent has used some. */
static void spawn(const char *program, const char *role, MPI_Comm *child)
{
    char *arguments[] = {(char *)role, NULL};
    MPI_Comm another;
    MPI_Comm_dup(MPI_COMM_WORLD, &another);
    CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, child,
                         MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
          "spawn");
    MPI_Comm_free(&another);
}

static void lose(MPI_Comm child)
{
    int pid, error = MPI_SUCCESS;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    kill_it(pid);
    while (!error)
        error = MPI_Ssend(NULL, 0, MPI_BYTE, 0, TAG, child);
    MPI_Comm_disconnect(&child);
}

static void replace(const char *program)
{
    enum { TIMES = 4 };
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm child;
        spawn(program, "vanish", &child);
        lose(child);
        spawn(program, "exchange", &child);
        exchange_both(child, 0);
    }
    printf("the parent has survived\n");
}

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc > 1, "partitioned_worlds WHAT");
    const char *what = argv[1];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (!strcmp(what, "died"))
            die(parent);
        else if (!strcmp(what, "vanish"))
            vanish(parent);
        else
            exchange_both(parent, 1);
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(what, "replaced")) {
        replace(argv[0]);
        return check_finish();
    }
    spawn(argv[0], what, &child);
    if (!strcmp(what, "died"))
        survive(child);
    else
        exchange_both(child, 0);
    return check_finish();
}
