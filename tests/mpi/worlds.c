/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to processes of another MPI_COMM_WORLD are made when they are first used, end and
 * begin anew as often as one likes, and a message costs the same however many there are.
 *
 *   worlds used          each of two parents and two children has connections to those that it has
 *                        exchanged a message with, in either direction, and to no others
 *   worlds listens       a process that only ever receives answers what needs an answer: credit,
 *                        synchronous sends, large messages
 *   worlds churn N       two worlds part and meet again, N times, with a message each way: on one
 *                        host each connection goes over shared memory, and nothing grows
 *   worlds silent N      the same without a message: nothing is connected but what the port needs
 *   worlds vcis N        as churn, and each time they also exchange messages on communicators of
 *                        the other VCIs, of which there are four
 *   worlds late N        two worlds meet again, N times, while one of them has given up their last
 *                        connection and the other has not: all messages arrive
 *   worlds late-vcis N   the same on communicators of four VCIs
 *   worlds finalizes     a process finalizes that has just sent 64 MiB: all of it arrives, although
 *                        the end of the connection may overtake it
 *   worlds died          a process dies that has sent what its parent, which has never sent it
 *                        anything, has received: sends to it end with an error, and so does a
 *                        receive of what has not all come, each of class MPIX_ERR_PROC_FAILED
 *   worlds died-vcis     so do receives on communicators of other VCIs, over which no message has
 *                        gone
 *   worlds came-back     so do those that name a process which has given its first connection up,
 *                        made a second one, and died, while its parent has both
 *   worlds leaders       of two processes whose child has died both get an error of
 *                        MPI_Intercomm_merge, for which their leaders exchange something
 *   worlds ended         a process has finalized without parting from its parent: that is no
 *                        death, a receive that names it goes on waiting and can be cancelled, and
 *                        a probe finds nothing
 *   worlds ended-vcis    the same of other VCIs, on which messages are to be received before that
 *   worlds left-alone    a collective operation that ended as a process had died does not write to
 *                        its buffer when another process sends what belongs there; one that is not
 *                        blocking ends with an error, too
 *   worlds part N        a parent and N children part from all but one of each other: the others
 *                        are known no more, neither where they had a connection nor where they had
 *                        none
 *   worlds many N        with N connections a message takes as long as with one, and each of the N
 *                        senders has credit
 *   worlds credited N    a parent and each of N children have credit for each other on all VCIs,
 *                        however many: both send a byte before they receive the other's
 */
#include "check.h"
#include "counter.h"
#include "lost.h"
#include "status.h"
#include <signal.h>
#include <string.h>

enum { TAG = 5, LARGE = 4 << 20, LARGEST = 64 << 20 };

static void spawn(const char *program, const char *role, int count, MPI_Comm over, MPI_Comm *out)
{
    char *arguments[] = {(char *)"child", (char *)role, NULL};
    CHECK(MPI_Comm_spawn(program, arguments, count, MPI_INFO_NULL, 0, over, out,
                         MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
          "spawn");
}

static void send_to(MPI_Comm comm, int to, int bytes, uint64_t content)
{
    char *buf = check_malloc((size_t)bytes);
    pattern_fill(buf, (size_t)bytes, content);
    MPI_Send(buf, bytes, MPI_BYTE, to, TAG, comm);
    free(buf);
}

static void receive_from(MPI_Comm comm, int from, int bytes, uint64_t content)
{
    char *buf = check_malloc((size_t)bytes);
    MPI_Recv(buf, bytes, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
    check_content(buf, (size_t)bytes, content, "message between worlds");
    free(buf);
}

/* ---- used ---- */

static struct counter endpoints;

/* A peer may have to be answered a little later. */
static void expect_endpoints(unsigned long long expected, const char *when)
{
    int flag;
    for (int i = 0; i < 1000 && counter_read(&endpoints) < expected; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        check_sleep_ms(1);
    }
    CHECK(counter_read(&endpoints) == expected, "%llu connections %s, not %llu",
          counter_read(&endpoints), when, expected);
}

/* The roots connect to spawn. Then rank 1 here and there exchange a message, and rank 0 of the
 * parents sends to rank 1 of the children. Between the worlds a barrier connects none but the
 * roots; without it a message could come before what was before it has been counted. */
static void used(MPI_Comm across, int is_child)
{
    expect_endpoints(check_rank == 0, "at first");
    MPI_Barrier(across);
    if (check_rank == 1 && !is_child)
        send_to(across, 1, 100, 1);
    else if (check_rank == 1)
        receive_from(across, 1, 100, 1);
    expect_endpoints(1, "after the first message");
    MPI_Barrier(across);
    if (check_rank == 0 && !is_child)
        send_to(across, 1, LARGE, 2);
    else if (check_rank == 1 && is_child)
        receive_from(across, 0, LARGE, 2);
    expect_endpoints(1 + (is_child ? check_rank == 1 : check_rank == 0), "after all");
    MPI_Comm_disconnect(&across);
}

/* ---- listens ---- */

enum { WORDS = 20000 };

static void send_words(MPI_Comm across)
{
    for (int i = 0; i < WORDS; i++)
        MPI_Send(&i, 1, MPI_INT, 0, TAG, across);
    for (int i = 0; i < 20; i++)
        MPI_Ssend(&i, 1, MPI_INT, 0, TAG, across);
    for (uint64_t i = 0; i < 6; i++)
        send_to(across, 0, LARGE, i);
}

static void receive_words(MPI_Comm across)
{
    for (int i = 0; i < WORDS + 20; i++) {
        int word = -1;
        if (i % 1000 == 0)
            check_sleep_ms(2);
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
        CHECK(word == i % WORDS, "%d instead of %d", word, i % WORDS);
    }
    for (uint64_t i = 0; i < 6; i++) {
        check_sleep_ms(i % 2 ? 20 : 0);
        receive_from(across, 0, LARGE, i);
    }
}

static void be_listener(MPI_Comm across)
{
    receive_words(across);
    MPI_Comm_disconnect(&across);
}

/* ---- part ---- */

static void expect_known(unsigned long long expected, const char *when)
{
    struct counter known = counter_open_class("foreign_known", MPI_T_PVAR_CLASS_LEVEL);
    CHECK(counter_read(&known) == expected, "%llu processes of other worlds are known %s, not %llu",
          counter_read(&known), when, expected);
    counter_close(&known);
}

/* The parent has a connection to the first child, and stays together with the last. */
static void part_from_most(MPI_Comm across, int is_child, int children)
{
    MPI_Comm all, rest;
    int rank;
    MPI_Intercomm_merge(across, is_child, &all);
    MPI_Comm_rank(all, &rank);
    if (rank == 0)
        send_to(all, 1, 100, 1);
    else if (rank == 1)
        receive_from(all, 0, 100, 1);
    expect_known(is_child ? 1 : (unsigned)children, "when all have met");
    const int stays = rank == 0 || rank == children;
    MPI_Comm_split(all, stays ? 0 : MPI_UNDEFINED, rank, &rest);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&across);
    expect_known(stays, "when most have parted");
    if (stays) {
        MPI_Comm_rank(rest, &rank);
        if (rank == 0)
            send_to(rest, 1, 100, 2);
        else
            receive_from(rest, 0, 100, 2);
        MPI_Comm_disconnect(&rest);
    }
    expect_known(0, "when all have parted");
}

/* ---- churn ---- */

static void meet(MPI_Comm across, int round, int first)
{
    for (int turn = 0; turn < 2; turn++) {
        const int bytes = round % 50 == 7 ? LARGE : 8 << round % 12;
        if (turn == first)
            send_to(across, 0, bytes, (uint64_t)round);
        else
            receive_from(across, 0, bytes, (uint64_t)round);
    }
}

/* The host's processes of both worlds are one each. */
static int is_one_host(MPI_Comm across)
{
    char own[256] = "", other[256] = "";
    gethostname(own, sizeof own - 1);
    MPI_Sendrecv(own, sizeof own, MPI_CHAR, 0, TAG, other, sizeof other, MPI_CHAR, 0, TAG, across,
                 MPI_STATUS_IGNORE);
    return !strcmp(own, other) && !getenv("UCX_TLS");
}

/* Returns the port at which the parent can be met from now on. */
static const char *agree_on_port(MPI_Comm across, int is_child)
{
    static char port[MPI_MAX_PORT_NAME];
    if (!is_child) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across);
    } else {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across, MPI_STATUS_IGNORE);
    }
    return port;
}

static void meet_at(const char *port, int is_child, MPI_Comm *across)
{
    if (is_child)
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, across);
    else
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, across);
}

enum { VCIS = 4 };

/* As many communicators as there are VCIs, one after the other, have all. */
static void meet_on_all(MPI_Comm across, int round, int is_child)
{
    MPI_Comm all, each[VCIS];
    MPI_Intercomm_merge(across, is_child, &all);
    for (int i = 0; i < VCIS; i++) {
        MPI_Comm_dup(all, &each[i]);
    }
    for (int i = 0; i < VCIS; i++) {
        const int bytes = (round + i) % 50 == 7 ? LARGE : 8 << (round + i) % 12;
        if (is_child) {
            send_to(each[i], 0, bytes, (uint64_t)(round + i));
            receive_from(each[i], 0, bytes, (uint64_t)(round - i));
        } else {
            receive_from(each[i], 1, bytes, (uint64_t)(round + i));
            send_to(each[i], 1, bytes, (uint64_t)(round - i));
        }
        MPI_Comm_free(&each[i]);
    }
    MPI_Comm_disconnect(&all);
}

/* Rounds before it is measured what a process has: at first each makes that a little more. */
enum { WARM_UP = 120 };

static void churn(MPI_Comm across, int rounds, const char *what, int is_child)
{
    const int sends = !strncmp(what, "churn", 5), vcis = !strncmp(what, "vcis", 4);
    const int shares = is_one_host(across);
    const char *port = agree_on_port(across, is_child);
    long kib = 0;
    MPI_Comm_disconnect(&across);
    struct counter shared = counter_open("foreign_shared");
    const unsigned long long before = counter_read(&shared);
    for (int i = 0; i < WARM_UP + rounds; i++) {
        if (i == WARM_UP)
            kib = (long)status_private_kib();
        meet_at(port, is_child, &across);
        if (sends)
            meet(across, i, is_child);
        if (vcis)
            meet_on_all(across, i, is_child);
        MPI_Comm_disconnect(&across);
    }
    const unsigned long long more = counter_read(&shared) - before;
    const long grown = (long)status_private_kib() - kib;
    printf("# %s: %d rounds: %llu connections, %llu over shared memory, %ld KiB more\n",
           is_child ? "child" : "parent", rounds, counter_read(&endpoints), more, grown);
    const unsigned long long least = (unsigned)((vcis ? VCIS : 1) * (WARM_UP + rounds));
    CHECK(counter_read(&endpoints) >= least, "%llu connections, not %llu", counter_read(&endpoints),
          least);
    CHECK(!sends || more >= (shares ? (unsigned)rounds : 0), "%llu of %d over shared memory", more,
          rounds);
    CHECK(grown <= 1024 + rounds / 2, "memory has grown by %ld KiB", grown);
    if (!is_child)
        MPI_Close_port(port);
    counter_close(&shared);
}

/* ---- late ---- */

/* Large messages whose receives are posted before and after, and synchronous ones, in both
 * directions. */
static void exchange(MPI_Comm across, int is_child)
{
    for (int i = 0; i < 8; i++) {
        const uint64_t content = (uint64_t)i;
        if (i % 2 == is_child) {
            send_to(across, 0, LARGE, content);
            MPI_Ssend(&i, 1, MPI_INT, 0, TAG, across);
        } else {
            int word = -1;
            check_sleep_ms(i % 4 < 2 ? 20 : 0);
            receive_from(across, 0, LARGE, content);
            MPI_Recv(&word, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
            CHECK(word == i, "%d instead of %d", word, i);
        }
    }
}

static void late(MPI_Comm across, int rounds, int is_child)
{
    const char *port = agree_on_port(across, is_child);
    exchange(across, is_child);
    for (int i = 0; i < rounds; i++) {
        const int gives_up = i % 2 == is_child;
        MPI_Comm next;
        if (gives_up)
            MPI_Comm_free(&across);
        meet_at(port, is_child, &next);
        exchange(next, is_child);
        if (!gives_up)
            MPI_Comm_free(&across);
        exchange(next, is_child);
        across = next;
    }
    MPI_Comm_disconnect(&across);
    if (!is_child)
        MPI_Close_port(port);
}

struct meeting {
    MPI_Comm across, all, each[VCIS];
};

static struct meeting meet_on_vcis(const char *port, int is_child)
{
    struct meeting m;
    meet_at(port, is_child, &m.across);
    MPI_Intercomm_merge(m.across, is_child, &m.all);
    for (int i = 0; i < VCIS; i++)
        MPI_Comm_dup(m.all, &m.each[i]);
    return m;
}

static void give_up(struct meeting *m)
{
    for (int i = 0; i < VCIS; i++)
        MPI_Comm_free(&m->each[i]);
    MPI_Comm_free(&m->all);
    MPI_Comm_free(&m->across);
}

static void exchange_on_vcis(const struct meeting *m, int is_child)
{
    for (int i = 0; i < VCIS; i++) {
        const uint64_t content = (uint64_t)i;
        int word = -1;
        if (is_child) {
            MPI_Ssend(&i, 1, MPI_INT, 0, TAG, m->each[i]);
            receive_from(m->each[i], 0, LARGE, content);
        } else {
            MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG, m->each[i], MPI_STATUS_IGNORE);
            CHECK(word == i, "%d instead of %d", word, i);
            send_to(m->each[i], 1, LARGE, content);
        }
    }
}

static void late_on_vcis(MPI_Comm across, int rounds, int is_child)
{
    const char *port = agree_on_port(across, is_child);
    struct meeting m = meet_on_vcis(port, is_child);
    MPI_Comm_free(&across);
    exchange_on_vcis(&m, is_child);
    for (int i = 0; i < rounds; i++) {
        const int gives_up = i % 2 == is_child;
        if (gives_up)
            give_up(&m);
        struct meeting next = meet_on_vcis(port, is_child);
        exchange_on_vcis(&next, is_child);
        if (!gives_up)
            give_up(&m);
        exchange_on_vcis(&next, is_child);
        m = next;
    }
    give_up(&m);
    if (!is_child)
        MPI_Close_port(port);
}

/* ---- finalizes ---- */

/* The channel is open before, so that the last message takes it. */
static void send_and_finalize(MPI_Comm parent)
{
    exchange(parent, 1);
    send_to(parent, 0, LARGEST, 5);
}

static void receive_from_finalizing(MPI_Comm child)
{
    exchange(child, 0);
    receive_from(child, 0, LARGEST, 5);
}

/* ---- died ---- */

static void die(MPI_Comm parent)
{
    MPI_Request request;
    char *buf = check_malloc(LARGE);
    send_to(parent, 0, 1000, 3);
    send_to(parent, 0, LARGE, 4);
    pattern_fill(buf, LARGE, 5);
    MPI_Isend(buf, LARGE, MPI_BYTE, 0, TAG, parent, &request);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

enum {
    NEVER = 1 << 10,
    WAITING = 300
}; /* tags that are never sent from here on; so many receives */

/* Receives that were posted before the process has died, and those of any source do not end. */
static void check_receives(MPI_Request receives[], MPI_Request *any)
{
    int found = 0;
    for (int i = 0; i < WAITING; i++)
        if (i == 0 || i == WAITING - 1)
            expect_failed(MPI_Wait(&receives[i], MPI_STATUS_IGNORE), "MPI_Wait for a receive");
        else
            CHECK(MPI_Wait(&receives[i], MPI_STATUS_IGNORE), "receive %d has gone well", i);
    MPI_Test(any, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "a receive of any source has ended");
    MPI_Cancel(any);
    CHECK(MPI_Wait(any, MPI_STATUS_IGNORE) == MPI_SUCCESS, "it cannot be cancelled");
}

static void survive(MPI_Comm child)
{
    int pid = 0, error = MPI_SUCCESS, found = 0;
    char *buf = check_malloc(LARGE);
    MPI_Message message;
    MPI_Request requests[3], receives[WAITING], any;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    receive_from(child, 0, 1000, 3);
    receive_from(child, 0, LARGE, 4);
    for (int i = 0; i < 2; i++)
        MPI_Issend(NULL, 0, MPI_BYTE, 0, TAG, child, &requests[i]);
    MPI_Issend(buf, LARGE, MPI_BYTE, 0, TAG, child, &requests[2]);
    for (int i = 0; i < WAITING; i++)
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, NEVER + i, child, &receives[i]);
    MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, NEVER, child, &any);
    CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
    check_receives(receives, &any);
    for (int i = 0; i < 3; i++)
        expect_failed(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), "MPI_Wait");
    for (const double end = MPI_Wtime() + 20; !error && MPI_Wtime() < end;) {
        error = MPI_Ssend(NULL, 0, MPI_BYTE, 0, TAG, child);
        check_sleep_ms(10);
    }
    CHECK(error, "a message to a dead process has been received");
    expect_failed(error, "MPI_Ssend");
    expect_failed(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, child), "MPI_Send");
    expect_failed(MPI_Send(buf, LARGE, MPI_BYTE, 0, TAG, child), "MPI_Send of much");
    /* It may be here. */
    error = MPI_Recv(buf, LARGE, MPI_BYTE, 0, TAG, child, MPI_STATUS_IGNORE);
    if (error)
        expect_failed(error, "MPI_Recv");
    else
        check_content(buf, LARGE, 5, "last message");
    expect_failed(MPI_Recv(NULL, 0, MPI_BYTE, 0, NEVER, child, MPI_STATUS_IGNORE), "MPI_Recv");
    expect_failed(MPI_Probe(0, NEVER, child, MPI_STATUS_IGNORE), "MPI_Probe");
    expect_failed(MPI_Iprobe(0, NEVER, child, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
    expect_failed(MPI_Improbe(0, NEVER, child, &found, &message, MPI_STATUS_IGNORE), "MPI_Improbe");
    CHECK(MPI_Iprobe(MPI_ANY_SOURCE, NEVER, child, &found, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
              !found,
          "a message of any source");
    free(buf);
    MPI_Comm_disconnect(&child);
    printf("the parent has survived\n");
    fflush(stdout);
}

/* Communicators of all VCIs, on which nothing is sent. */
static void make_several(MPI_Comm across, int is_child, MPI_Comm made[VCIS])
{
    MPI_Comm all;
    MPI_Intercomm_merge(across, is_child, &all);
    for (int i = 0; i < VCIS; i++) {
        MPI_Comm_dup(all, &made[i]);
        MPI_Comm_set_errhandler(made[i], MPI_ERRORS_RETURN);
    }
    MPI_Comm_free(&all);
}

static void die_on_vcis(MPI_Comm parent)
{
    MPI_Comm made[VCIS];
    make_several(parent, 1, made);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void survive_on_vcis(MPI_Comm child)
{
    int pid;
    MPI_Comm made[VCIS];
    MPI_Request receives[VCIS];
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    make_several(child, 0, made);
    for (int i = 0; i < VCIS; i++)
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, TAG, made[i], &receives[i]);
    CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
    for (int i = 0; i < VCIS; i++) {
        expect_failed(MPI_Wait(&receives[i], MPI_STATUS_IGNORE), "MPI_Wait");
        expect_failed(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, made[i], MPI_STATUS_IGNORE), "MPI_Recv");
        MPI_Comm_free(&made[i]);
    }
    MPI_Comm_disconnect(&child);
    printf("the parent has survived\n");
}

static void come_back(MPI_Comm across, int is_child)
{
    int pid = getpid();
    MPI_Comm next;
    MPI_Request request;
    if (is_child)
        MPI_Send(&pid, 1, MPI_INT, 0, TAG, across);
    else
        MPI_Recv(&pid, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
    const char *port = agree_on_port(across, is_child);
    exchange(across, is_child);
    if (is_child)
        MPI_Comm_free(&across);
    meet_at(port, is_child, &next);
    exchange(next, is_child);
    if (is_child)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Irecv(NULL, 0, MPI_BYTE, 0, NEVER, next, &request);
    CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
    expect_failed(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    expect_failed(MPI_Recv(NULL, 0, MPI_BYTE, 0, NEVER, next, MPI_STATUS_IGNORE), "MPI_Recv");
    MPI_Comm_free(&next);
    MPI_Comm_free(&across);
    MPI_Close_port(port);
    printf("the parent has survived\n");
}

/* ---- leaders ---- */

/* Its leader is connected with it. */
static void die_connected(MPI_Comm parent)
{
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void lead(MPI_Comm child)
{
    MPI_Comm all;
    int pid;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    if (check_rank == 0) {
        MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, child);
        CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
    }
    CHECK(MPI_Intercomm_merge(child, 0, &all) != MPI_SUCCESS, "it is merged with a dead process");
    MPI_Comm_free(&child);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("the parents have survived\n");
}

/* ---- ended ---- */

static void end_attached(MPI_Comm parent)
{
    for (int i = 0; i < WAITING; i++)
        MPI_Send(&i, 1, MPI_INT, 0, TAG, parent);
}

static void end_attached_on_vcis(MPI_Comm parent)
{
    MPI_Comm made[VCIS];
    make_several(parent, 1, made);
    for (int i = 0; i < VCIS; i++)
        end_attached(made[i]);
}

/* Until it has. Progress is made on VCI 0. */
static void await_end(MPI_Comm child, int pid)
{
    const double end = MPI_Wtime() + 30;
    int found = 0;
    while (kill(pid, 0) == 0 && MPI_Wtime() < end)
        MPI_Iprobe(0, NEVER, child, &found, MPI_STATUS_IGNORE);
    CHECK(kill(pid, 0) != 0, "process %d does not end", pid);
}

static void see_end_on_vcis(MPI_Comm child)
{
    static int got[VCIS][WAITING];
    static MPI_Request requests[VCIS][WAITING];
    MPI_Comm made[VCIS];
    int pid;
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    make_several(child, 0, made);
    for (int v = 0; v < VCIS; v++)
        for (int i = 0; i < WAITING; i++)
            MPI_Irecv(&got[v][i], 1, MPI_INT, 1, TAG, made[v], &requests[v][i]);
    await_end(child, pid);
    for (int v = VCIS; v-- > 0;) {
        CHECK(MPI_Waitall(WAITING, requests[v], MPI_STATUSES_IGNORE) == MPI_SUCCESS,
              "receives of communicator %d have failed", v);
        for (int i = 0; i < WAITING; i++)
            CHECK(got[v][i] == i, "%d instead of %d", got[v][i], i);
        MPI_Comm_free(&made[v]);
    }
    MPI_Comm_free(&child);
    printf("it has ended well\n");
}

static void see_end(MPI_Comm child)
{
    int pid, found = 0;
    MPI_Request request;
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    MPI_Irecv(NULL, 0, MPI_BYTE, 0, NEVER, child, &request);
    await_end(child, pid);
    for (int i = 0; i < WAITING; i++) {
        int got = -1;
        MPI_Recv(&got, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
        CHECK(got == i, "%d instead of %d", got, i);
    }
    for (int i = 0; i < 1000 && !found; i++)
        MPI_Iprobe(0, NEVER, child, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "a message that was not sent");
    MPI_Test(&request, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "a receive has ended");
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&child);
    printf("it has ended well\n");
}

/* ---- left-alone ---- */

/* In the first step of pairwise exchanges of three processes, of which rank 2 is dead, rank 1 sends
 * to that and receives from rank 0. */
static void be_left_alone(MPI_Comm child)
{
    enum { COUNT = 1000, DEAD = 2 };
    static int sent[3 * COUNT], buf[3 * COUNT];
    MPI_Comm all;
    MPI_Request request;
    int pid, error = MPI_SUCCESS;
    MPI_Intercomm_merge(child, 0, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (check_rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(MPI_Alltoall(sent, COUNT, MPI_INT, buf, COUNT, MPI_INT, all) != MPI_SUCCESS,
              "rank 0 has got all");
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&pid, 1, MPI_INT, DEAD, TAG, all, MPI_STATUS_IGNORE);
        CHECK(kill(pid, SIGKILL) == 0, "process %d is not there", pid);
        while (!error)
            error = MPI_Ssend(NULL, 0, MPI_BYTE, DEAD, TAG, all);
        CHECK(MPI_Alltoall(sent, COUNT, MPI_INT, buf, COUNT, MPI_INT, all) != MPI_SUCCESS,
              "rank 1 has got all");
        memset(buf, -1, sizeof buf);
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3 * COUNT; i++)
            CHECK(buf[i] == -1, "number %d has been written", i);
    }
    /* Rank 1 sends to both others, and is refused by the dead one. */
    MPI_Ibcast(buf, COUNT, MPI_INT, 1, all, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(check_rank == 0 || error, "a dead process has received");
    MPI_Comm_free(&all);
    MPI_Comm_free(&child);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("the buffer is left alone\n");
}

static void die_merged(MPI_Comm parent)
{
    const int pid = getpid();
    MPI_Comm all;
    MPI_Intercomm_merge(parent, 1, &all);
    MPI_Send(&pid, 1, MPI_INT, 1, TAG, all);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* ---- credited ---- */

enum { MOST_VCIS = 16 };

static void send_byte(int to, MPI_Comm comm)
{
    const char byte = 0;
    MPI_Send(&byte, 1, MPI_BYTE, to, TAG, comm);
}

static void receive_byte(int from, MPI_Comm comm)
{
    char byte;
    MPI_Recv(&byte, 1, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
}

/* The first message has no credit, and those that follow it open the connection, return credit and
 * may replace the one over the network. */
static void open_connection(MPI_Comm comm, int peer, int is_child)
{
    for (int i = 0; i < 4; i++) {
        if (is_child)
            send_byte(peer, comm);
        receive_byte(peer, comm);
        if (!is_child)
            send_byte(peer, comm);
    }
}

static void be_credited(MPI_Comm across, int is_child, int children)
{
    MPI_Comm all, each[MOST_VCIS];
    const int first = is_child ? 0 : 1, end = is_child ? 1 : children + 1;
    MPI_Intercomm_merge(across, is_child, &all);
    for (int i = 0; i < MOST_VCIS; i++)
        MPI_Comm_dup(all, &each[i]);
    for (int i = 0; i < MOST_VCIS; i++)
        for (int peer = first; peer < end; peer++)
            open_connection(each[i], peer, is_child);
    MPI_Barrier(all);
    for (int i = 0; i < MOST_VCIS; i++)
        for (int peer = first; peer < end; peer++)
            send_byte(peer, each[i]);
    for (int i = 0; i < MOST_VCIS; i++)
        for (int peer = first; peer < end; peer++)
            receive_byte(peer, each[i]);
    for (int i = 0; i < MOST_VCIS; i++)
        MPI_Comm_free(&each[i]);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&across);
}

/* ---- many ---- */

enum { PINGS = 50, SETS = 54, TRY_S = 60, CREDITED = 20, CREDITED_BYTES = 1000 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The least of some means, each of so few that no other process need run meanwhile: those only make
 * it longer. */
static double ping(MPI_Comm across)
{
    double us[SETS];
    for (int set = 0; set < SETS; set++) {
        const double start = MPI_Wtime();
        for (int i = 0; i < PINGS; i++) {
            int word = i;
            MPI_Send(&word, 1, MPI_INT, 0, TAG, across);
            MPI_Recv(&word, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
        }
        us[set] = 1e6 * (MPI_Wtime() - start) / PINGS;
    }
    qsort(us, SETS, sizeof *us, compare);
    return us[0];
}

/* Until a word below zero comes. */
static void pong(MPI_Comm across)
{
    for (;;) {
        int word;
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
        if (word < 0)
            return;
        MPI_Send(&word, 1, MPI_INT, 0, TAG, across);
    }
}

/* All children but the first sleep outside MPI, where they take no processor. */
static void be_one_of_many(MPI_Comm parent)
{
    sigset_t usr1;
    const int pid = getpid();
    int signal;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    if (check_rank == 0) {
        pong(parent);
    } else {
        pthread_sigmask(SIG_BLOCK, &usr1, NULL);
        MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, parent, MPI_STATUS_IGNORE);
        for (uint64_t i = 0; i < CREDITED; i++)
            send_to(parent, 0, CREDITED_BYTES, i);
        sigwait(&usr1, &signal);
    }
    MPI_Comm_disconnect(&parent);
}

/* The first message of each has been announced, since its sender had no credit yet. */
static void expect_credit(MPI_Comm children, int count)
{
    struct counter held = counter_open("senders_held");
    const unsigned long long before = counter_read(&held);
    for (int i = 1; i < count; i++)
        MPI_Send(NULL, 0, MPI_BYTE, i, TAG, children);
    for (int i = 1; i < count; i++)
        for (uint64_t n = 0; n < CREDITED; n++)
            receive_from(children, i, CREDITED_BYTES, n);
    CHECK(counter_read(&held) == before, "%llu messages of %d senders lacked credit",
          counter_read(&held) - before, count);
    counter_close(&held);
}

static void many(MPI_Comm children, int count)
{
    int *pids = check_malloc((size_t)count * sizeof *pids);
    const double few_us = ping(children);
    for (int i = 1; i < count; i++)
        MPI_Recv(&pids[i], 1, MPI_INT, i, TAG, children, MPI_STATUS_IGNORE);
    expect_endpoints((unsigned)count, "to many");
    expect_credit(children, count);
    /* What other processes take of the processors for a while is no cost of a connection. */
    double many_us = ping(children);
    for (const double end = MPI_Wtime() + TRY_S; many_us >= 1.5 * few_us && MPI_Wtime() < end;)
        many_us = ping(children);
    MPI_Send(&(int){-1}, 1, MPI_INT, 0, TAG, children);
    printf("# a message there and back: %.2f us with one connection, %.2f us with %d\n", few_us,
           many_us, count);
    CHECK(many_us < 1.5 * few_us, "%.2f us with one connection, %.2f us with %d", few_us, many_us,
          count);
    for (int i = 1; i < count; i++)
        CHECK(kill(pids[i], SIGUSR1) == 0, "process %d is not there", pids[i]);
    MPI_Comm_disconnect(&children);
    free(pids);
}

static void be_child(MPI_Comm parent, const char *role)
{
    const int pid = getpid();
    if (!strcmp(role, "used"))
        used(parent, 1);
    else if (!strcmp(role, "many"))
        be_one_of_many(parent);
    else if (!strncmp(role, "late ", 5))
        late(parent, atoi(strchr(role, ' ')), 1);
    else if (!strncmp(role, "late-vcis ", 10))
        late_on_vcis(parent, atoi(strchr(role, ' ')), 1);
    else if (!strncmp(role, "credited ", 9))
        be_credited(parent, 1, atoi(strchr(role, ' ')));
    else if (!strcmp(role, "finalizes"))
        send_and_finalize(parent);
    else if (!strcmp(role, "listens"))
        be_listener(parent);
    else if (!strncmp(role, "part ", 5))
        part_from_most(parent, 1, atoi(role + 5));
    else if (!strcmp(role, "left-alone"))
        die_merged(parent);
    else if (!strcmp(role, "came-back"))
        come_back(parent, 1);
    else if (!strcmp(role, "ended") || !strcmp(role, "ended-vcis")) {
        MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
        if (!strcmp(role, "ended"))
            end_attached(parent);
        else
            end_attached_on_vcis(parent);
    } else if (!strcmp(role, "died") || !strcmp(role, "died-vcis") || !strcmp(role, "leaders")) {
        MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
        if (!strcmp(role, "died"))
            die(parent);
        else if (!strcmp(role, "died-vcis"))
            die_on_vcis(parent);
        else
            die_connected(parent);
    } else
        churn(parent, atoi(strchr(role, ' ')), role, 1);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc > 1, "worlds WHAT [N]");
    const char *what = argv[1];
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    char role[64];
    endpoints = counter_open("foreign_endpoints");
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        be_child(parent, argv[2]);
        MPI_Finalize();
        return 0;
    }
    if (count > 0 && strcmp(what, "many") != 0)
        snprintf(role, sizeof role, "%s %d", what, count);
    else
        snprintf(role, sizeof role, "%s", what);
    spawn(argv[0], role,
          !strcmp(what, "many") || !strcmp(what, "part") || !strcmp(what, "credited") ? count
          : !strcmp(what, "used")                                                     ? 2
                                                                                      : 1,
          !strcmp(what, "used") || !strcmp(what, "leaders") || !strcmp(what, "left-alone")
              ? MPI_COMM_WORLD
              : MPI_COMM_SELF,
          &child);
    if (!strcmp(what, "used"))
        used(child, 0);
    else if (!strcmp(what, "many"))
        many(child, count);
    else if (!strcmp(what, "part"))
        part_from_most(child, 0, count);
    else if (!strcmp(what, "credited"))
        be_credited(child, 0, count);
    else if (!strcmp(what, "died"))
        survive(child);
    else if (!strcmp(what, "died-vcis"))
        survive_on_vcis(child);
    else if (!strcmp(what, "leaders"))
        lead(child);
    else if (!strcmp(what, "left-alone"))
        be_left_alone(child);
    else if (!strcmp(what, "came-back"))
        come_back(child, 0);
    else if (!strcmp(what, "ended"))
        see_end(child);
    else if (!strcmp(what, "ended-vcis"))
        see_end_on_vcis(child);
    else if (!strcmp(what, "late"))
        late(child, count, 0);
    else if (!strcmp(what, "late-vcis"))
        late_on_vcis(child, count, 0);
    else if (!strcmp(what, "finalizes"))
        receive_from_finalizing(child);
    else if (!strcmp(what, "listens")) {
        send_words(child);
        MPI_Comm_disconnect(&child);
    } else
        churn(child, count, what, 0);
    return check_finish();
}
