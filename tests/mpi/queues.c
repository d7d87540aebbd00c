/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queues [N]: long queues match like short ones. N messages with random envelopes wait
 * for receives in random order and with random wildcards, then N such receives wait for
 * messages; every match is compared with MPI's rules. At last many messages pass through a
 * queue that stays long, most from its head, and memory does not grow. Three ranks; rank 0
 * receives.
 */
#include "check.h"
#include <malloc.h>
#include <stdbool.h>

enum { TAGS = 40, SENDERS = 2, BATCH = 300, BATCHES = 400, WARM_UP = 20, END = BATCH * BATCHES };

static int nr;
static MPI_Comm comms[2];

/* One message of a sender, in order of sending. Its content is its index. */
struct message {
    int comm, tag;
    bool gone;
};

/* Message number @i of @sender: the same at both ends. */
static struct message message_of(int sender, int i)
{
    uint64_t state = check_seed + (uint64_t)sender * 7919 + (uint64_t)i * 104729;
    return (struct message){.comm = (int)check_random(&state, 2),
                            .tag = (int)check_random(&state, TAGS)};
}

static struct message *messages_of(int sender)
{
    struct message *all = check_malloc((size_t)nr * sizeof *all);
    for (int i = 0; i < nr; i++)
        all[i] = message_of(sender, i);
    return all;
}

static void send_all(int sender)
{
    for (int i = 0; i < nr; i++) {
        const struct message m = message_of(sender, i);
        MPI_Send(&i, 1, MPI_INT, 0, m.tag, comms[m.comm]);
    }
}

/* The first message still there that a receive of @tag on @comm may take. */
static int first_fit(const struct message *all, int comm, int tag)
{
    for (int i = 0; i < nr; i++)
        if (!all[i].gone && all[i].comm == comm && (tag == MPI_ANY_TAG || all[i].tag == tag))
            return i;
    return -1;
}

/* Messages of one sender arrive in order; those of two in any. */
static void receive_unexpected(void)
{
    struct message *sent[SENDERS + 1];
    uint64_t state = check_seed;
    for (int s = 1; s <= SENDERS; s++)
        sent[s] = messages_of(s);
    for (int left = SENDERS * nr; left > 0;) {
        const int comm = (int)check_random(&state, 2);
        int source = 1 + (int)check_random(&state, SENDERS);
        int tag = (int)check_random(&state, TAGS), present, index = -1;
        MPI_Status status;
        if (check_random(&state, 8) == 0)
            tag = MPI_ANY_TAG;
        bool expected = first_fit(sent[source], comm, tag) >= 0;
        if (check_random(&state, 8) == 0) {
            expected = expected || first_fit(sent[SENDERS + 1 - source], comm, tag) >= 0;
            source = MPI_ANY_SOURCE;
        }
        MPI_Iprobe(source, tag, comms[comm], &present, &status);
        CHECK(present == expected, "source %d, tag %d: %s there", source, tag,
              present ? "unexpectedly" : "not");
        if (!present)
            continue;
        MPI_Recv(&index, 1, MPI_INT, source, tag, comms[comm], &status);
        const int wanted = first_fit(sent[status.MPI_SOURCE], comm, tag);
        CHECK(index == wanted && status.MPI_TAG == sent[status.MPI_SOURCE][index].tag,
              "source %d, tag %d: message %d instead of %d", source, tag, index, wanted);
        sent[status.MPI_SOURCE][index].gone = true;
        left--;
    }
    for (int s = 1; s <= SENDERS; s++)
        free(sent[s]);
}

struct receive {
    int comm, source, tag, index, taken_by;
    MPI_Request request;
};

static bool accepts(const struct receive *r, const struct message *m)
{
    return r->comm == m->comm && (r->tag == MPI_ANY_TAG || r->tag == m->tag);
}

/* Only rank 1 sends, so the outcome is certain. */
static void post_receives(struct receive *posted)
{
    uint64_t state = check_seed + 1;
    for (int i = 0; i < nr; i++) {
        struct receive *r = &posted[i];
        *r = (struct receive){.comm = (int)check_random(&state, 2),
                              .source = check_random(&state, 4) ? 1 : MPI_ANY_SOURCE,
                              .tag = (int)check_random(&state, TAGS),
                              .index = -1,
                              .taken_by = -1};
        if (check_random(&state, 10) == 0)
            r->tag = MPI_ANY_TAG;
        MPI_Irecv(&r->index, 1, MPI_INT, r->source, r->tag, comms[r->comm], &r->request);
    }
    struct message *sent = messages_of(1);
    for (int i = 0; i < nr; i++) {
        int p = 0;
        while (p < nr && (posted[p].taken_by >= 0 || !accepts(&posted[p], &sent[i])))
            p++;
        if (p < nr)
            posted[p].taken_by = i;
    }
    free(sent);
}

static void check_receives(struct receive *posted)
{
    int matched = 0;
    for (int i = 0; i < nr; i++) {
        struct receive *r = &posted[i];
        int cancelled = 0;
        MPI_Status status;
        if (r->taken_by < 0)
            MPI_Cancel(&r->request);
        MPI_Wait(&r->request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == (r->taken_by < 0), "receive %d: cancelled %d", i, cancelled);
        CHECK(r->index == r->taken_by, "receive %d took message %d instead of %d", i, r->index,
              r->taken_by);
        matched += !cancelled;
    }
    CHECK(matched > nr / 2, "only %d of %d receives matched", matched, nr);
    for (; matched < nr; matched++) {
        MPI_Status status;
        int here = 0, index;
        for (int c = 0; !here; c = 1 - c) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &here, &status);
            if (here)
                MPI_Recv(&index, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comms[c], &status);
        }
    }
}

static size_t allocated_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* At the beginning the first of every other batch are taken last; searches would tidy up
 * what the others leave. Each message is its own tag. */
static void receive_of_batch(int batch, int i)
{
    const int tag = batch * BATCH + (batch < WARM_UP && batch % 2 ? (i + 7) % BATCH : i);
    int content = -1;
    MPI_Recv(&content, 1, MPI_INT, i % 5 ? 1 : MPI_ANY_SOURCE, tag, comms[0], MPI_STATUS_IGNORE);
    CHECK(content == tag, "message %d instead of %d", content, tag);
}

/* Two batches wait at all times but the last, and nothing else, which would be the head. */
static void pass_through(void)
{
    size_t before = 0, after = 0;
    for (int batch = 0; batch <= BATCHES; batch++) {
        if (check_rank == 1 && batch < BATCHES) {
            for (int tag = batch * BATCH; tag < (batch + 1) * BATCH; tag++)
                MPI_Send(&tag, 1, MPI_INT, 0, tag, comms[0]);
            MPI_Send(NULL, 0, MPI_INT, 0, END, comms[0]);
            MPI_Recv(NULL, 0, MPI_INT, 0, END, comms[0], MPI_STATUS_IGNORE);
        } else if (check_rank == 0) {
            if (batch < BATCHES) {
                MPI_Recv(NULL, 0, MPI_INT, 1, END, comms[0], MPI_STATUS_IGNORE);
                MPI_Send(NULL, 0, MPI_INT, 1, END, comms[0]);
            }
            for (int i = 0; batch > 0 && i < BATCH; i++)
                receive_of_batch(batch - 1, i);
            if (batch == WARM_UP)
                before = allocated_bytes();
            if (batch == BATCHES - 1)
                after = allocated_bytes();
        }
    }
    if (check_rank == 0) {
        CHECK(after < before + MIB / 2, "%d messages later %zu KiB instead of %zu",
              (BATCHES - WARM_UP) * BATCH, after / KIB, before / KIB);
        MPI_Send(NULL, 0, MPI_INT, 2, END, comms[0]);
    } else if (check_rank == 2) {
        MPI_Recv(NULL, 0, MPI_INT, 0, END, comms[0], MPI_STATUS_IGNORE);
    }
}

/* A barrier's messages come after those of its communicator, and wait with them; where each
 * communicator has a VCI of its own, not after those of the other. */
static void await_all(void)
{
    MPI_Barrier(comms[0]);
    MPI_Barrier(comms[1]);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    nr = argc > 1 ? atoi(argv[1]) : 1000;
    CHECK(check_ranks == SENDERS + 1, "%d ranks", check_ranks);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);

    if (check_rank > 0)
        send_all(check_rank);
    await_all();
    if (check_rank == 0)
        receive_unexpected();

    struct receive *posted = check_malloc((size_t)nr * sizeof *posted);
    if (check_rank == 0)
        post_receives(posted);
    MPI_Barrier(comms[1]);
    if (check_rank == 1)
        send_all(1);
    await_all();
    if (check_rank == 0)
        check_receives(posted);
    free(posted);
    MPI_Barrier(comms[1]);
    pass_through();
    MPI_Comm_free(&comms[1]);
    return check_finish();
}
