/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages that are sent in bursts come as they were sent: whole, in order, each with its
 * own tag, communicator and length, and complete, whatever call waits for them, and whatever is
 * sent in between.
 *
 *   bursts       to receives posted before, after and by tag, with other sends in between
 *   bursts stay  a sender that does not come back to MPI holds back nothing for ever; its
 *                receiver tells it by a file named by the second argument. With a third one, it
 *                calls functions of MPI's all the time, but none that communicates
 *   bursts stopped
 *                the receiver's process is stopped until the network takes nothing more
 */
#include "check.h"
#include "used_to.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WINDOW = 150, LONGEST = 2200, TAGS = 5, READY = 99, DONE = 98, ROUNDS = 60 };

static MPI_Comm comms[2];

struct message {
    int bytes, tag, comm;
    uint64_t seed;
};

/* What rank 0 sends in @round: often one length for all, as in a window of a benchmark. */
static void plan(struct message *messages, int round)
{
    uint64_t state = check_seed + (uint64_t)round * 7919;
    const int same = (int)check_random(&state, 3);
    for (int i = 0; i < WINDOW; i++)
        messages[i] =
            (struct message){.bytes = same ? round % 40 : (int)check_random(&state, LONGEST),
                             .tag = (int)check_random(&state, TAGS),
                             .comm = (int)check_random(&state, 2),
                             .seed = check_random(&state, UINT64_MAX)};
}

/* Sends that may not wait, and must not overtake those that do. */
static void send_otherwise(const struct message *m, const char *buf, int way, MPI_Request *request)
{
    const MPI_Comm comm = comms[m->comm];
    *request = MPI_REQUEST_NULL;
    if (way == 0) {
        MPI_Send(buf, m->bytes, MPI_BYTE, 1, m->tag, comm);
    } else if (way == 1) {
        MPI_Issend(buf, m->bytes, MPI_BYTE, 1, m->tag, comm, request);
    } else if (way == 2) {
        MPI_Isend(buf, m->bytes, MPI_BYTE, 1, m->tag, comm, request);
        MPI_Request_free(request);
    } else if (way == 3) {
        MPI_Send_init(buf, m->bytes, MPI_BYTE, 1, m->tag, comm, request);
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
        MPI_Request_free(request);
    } else {
        MPI_Datatype pieces;
        MPI_Type_create_hvector(m->bytes, 1, 2, MPI_BYTE, &pieces);
        MPI_Type_commit(&pieces);
        char *spread = check_malloc(2 * (size_t)m->bytes);
        for (int i = 0; i < m->bytes; i++)
            spread[2 * i] = buf[i];
        MPI_Send(spread, 1, pieces, 1, m->tag, comm);
        free(spread);
        MPI_Type_free(&pieces);
    }
}

static void wait_for(MPI_Request *request, int way, uint64_t *state)
{
    int left = WINDOW, flag = 0, which[WINDOW], nr;
    if (way == 0) {
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    } else if (way == 1) {
        for (int i = WINDOW - 1; i >= 0; i--)
            MPI_Wait(&request[i], MPI_STATUS_IGNORE);
    } else if (way == 2) {
        while (!flag)
            MPI_Testall(WINDOW, request, &flag, MPI_STATUSES_IGNORE);
    } else {
        while (left > 0) {
            MPI_Waitsome(WINDOW, request, &nr, which, MPI_STATUSES_IGNORE);
            left = nr == MPI_UNDEFINED ? 0 : left - nr;
        }
    }
    if (check_random(state, 4) == 0)
        check_sleep_ms(1);
}

/* By requests that are started together. */
static void send_persistent(const struct message *messages, char (*buf)[LONGEST], uint64_t *state)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        const struct message *m = &messages[i];
        pattern_fill(buf[i], (size_t)m->bytes, m->seed);
        MPI_Send_init(buf[i], m->bytes, MPI_BYTE, 1, m->tag, comms[m->comm], &request[i]);
    }
    MPI_Startall(WINDOW, request);
    wait_for(request, (int)check_random(state, 4), state);
    for (int i = 0; i < WINDOW; i++)
        MPI_Request_free(&request[i]);
}

static void send_one_by_one(const struct message *messages, char (*buf)[LONGEST], uint64_t *state)
{
    MPI_Request request[WINDOW];
    const int otherwise = (int)check_random(state, 3) ? 0 : 10;
    for (int i = 0; i < WINDOW; i++) {
        const struct message *m = &messages[i];
        pattern_fill(buf[i], (size_t)m->bytes, m->seed);
        if (otherwise && check_random(state, (uint64_t)otherwise) == 0)
            send_otherwise(m, buf[i], (int)check_random(state, 5), &request[i]);
        else
            MPI_Isend(buf[i], m->bytes, MPI_BYTE, 1, m->tag, comms[m->comm], &request[i]);
    }
    wait_for(request, (int)check_random(state, 4), state);
    for (int i = 0; i < WINDOW; i++)
        CHECK(request[i] == MPI_REQUEST_NULL, "request %d is left", i);
}

static void send_round(const struct message *messages, uint64_t *state)
{
    static char buf[WINDOW][LONGEST];
    MPI_Recv(NULL, 0, MPI_BYTE, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    (check_random(state, 4) ? send_one_by_one : send_persistent)(messages, buf, state);
    /* Also those whose requests were freed. */
    MPI_Recv(NULL, 0, MPI_BYTE, 1, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* In the order sent, or with all of one tag and communicator after the other. */
static void receive_round(const struct message *messages, uint64_t *state)
{
    static char buf[WINDOW][LONGEST];
    MPI_Request request[WINDOW];
    MPI_Status status[WINDOW];
    int order[WINDOW], nr = 0;
    const int by_tag = (int)check_random(state, 2), late = (int)check_random(state, 2);
    for (int kind = 0; kind < (by_tag ? 2 * TAGS : 1); kind++)
        for (int i = 0; i < WINDOW; i++)
            if (!by_tag || messages[i].tag * 2 + messages[i].comm == kind)
                order[nr++] = i;
    if (late) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, READY, MPI_COMM_WORLD);
        check_sleep_ms(2);
    }
    memset(buf, 0xa5, sizeof buf);
    for (int i = 0; i < WINDOW; i++) {
        const struct message *m = &messages[order[i]];
        MPI_Irecv(buf[i], LONGEST, MPI_BYTE, 0, m->tag, comms[m->comm], &request[i]);
    }
    if (!late)
        MPI_Send(NULL, 0, MPI_BYTE, 0, READY, MPI_COMM_WORLD);
    MPI_Waitall(WINDOW, request, status);
    for (int i = 0; i < WINDOW; i++) {
        const struct message *m = &messages[order[i]];
        int count;
        MPI_Get_count(&status[i], MPI_BYTE, &count);
        CHECK(count == m->bytes && status[i].MPI_TAG == m->tag && status[i].MPI_SOURCE == 0,
              "message %d: %d bytes, tag %d of %d instead of %d, %d of 0", order[i], count,
              status[i].MPI_TAG, status[i].MPI_SOURCE, m->bytes, m->tag);
        check_content(buf[i], (size_t)m->bytes, m->seed, "message of a burst");
        for (int past = m->bytes; past < LONGEST; past++)
            CHECK(buf[i][past] == (char)0xa5, "message %d: written past its end", order[i]);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, DONE, MPI_COMM_WORLD);
}

static void stay_away(const char *file, int busy)
{
    enum { FEW = 10, PATIENCE_MS = 20000 };
    int value[FEW];
    MPI_Request request[FEW];
    if (check_rank == 0)
        (void)unlink(file);
    send_windows(100, WINDOW, READY);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < FEW; i++)
        if (check_rank == 0) {
            value[i] = i;
            MPI_Isend(&value[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[i]);
        } else {
            MPI_Recv(&value[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(value[i] == i, "%d instead of %d", value[i], i);
        }
    if (check_rank == 0) {
        struct stat there;
        int waited = 0;
        for (; stat(file, &there) != 0; waited++) {
            CHECK(waited < PATIENCE_MS, "messages stayed until their sender waited for them");
            const double end = MPI_Wtime() + 1e-3;
            for (int *ub, flag; busy && MPI_Wtime() < end;)
                MPI_Comm_get_attr(comms[0], MPI_TAG_UB, &ub, &flag);
            if (!busy)
                check_sleep_ms(1);
        }
        MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
        (void)unlink(file);
    } else {
        FILE *f = fopen(file, "w");
        CHECK(f && fclose(f) == 0, "cannot make %s", file);
    }
}

/* Stops this process with all its threads for a while. */
static void stop_ms(int ms)
{
    const pid_t helper = fork();
    CHECK(helper >= 0, "no process");
    if (helper == 0) {
        check_sleep_ms(ms);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(helper, NULL, 0);
}

static void send_to_stopped(void)
{
    enum { MANY = 10000, BYTES = 2000 };
    char *buf = check_malloc((size_t)MANY * BYTES);
    MPI_Request *request = check_malloc(MANY * sizeof *request);
    send_windows(100, WINDOW, READY);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        check_sleep_ms(50);
        pattern_fill(buf, (size_t)MANY * BYTES, check_seed);
        for (int i = 0; i < MANY; i++)
            MPI_Isend(buf + (size_t)i * BYTES, BYTES, MPI_BYTE, 1, 0, comms[0], &request[i]);
        MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
    } else {
        stop_ms(500);
        for (int i = 0; i < MANY; i++)
            MPI_Recv(buf + (size_t)i * BYTES, BYTES, MPI_BYTE, 0, 0, comms[0], MPI_STATUS_IGNORE);
        check_content(buf, (size_t)MANY * BYTES, check_seed, "messages to a stopped process");
    }
    free(request);
    free(buf);
}

int main(int argc, char **argv)
{
    static struct message messages[WINDOW];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks == 2, "2 ranks, not %d", check_ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    if (argc > 2) {
        stay_away(argv[2], argc > 3);
    } else if (argc > 1) {
        send_to_stopped();
    } else {
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t state = check_seed + (uint64_t)(2 * round + check_rank) * 104729;
            plan(messages, round);
            send_windows(10, WINDOW, READY);
            if (check_rank == 0)
                send_round(messages, &state);
            else
                receive_round(messages, &state);
        }
    }
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    return check_finish();
}
