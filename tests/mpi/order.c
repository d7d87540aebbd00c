/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one source, tag and communicator are received in the order sent,
 * whatever has landed and what has not: sizes on both sides of every threshold,
 * several communicators, receives posted in batches, by tag out of order, with
 * wildcards, early and late at random.
 *
 * The model: in posting order, each receive takes the first message left of its
 * source and communicator that fits its tag. With messages and receives both
 * ordered this is the only outcome MPI allows.
 */
#include "check.h"

enum { COMMS = 4, TAGS = 3, MESSAGES = 40, BATCH = 8, MAX_RANKS = 8 };

struct message {
    int comm, tag, taken;
    size_t bytes;
    uint64_t seed;
};

static MPI_Comm comms[COMMS];

/* 1 B to 2 MiB, every order of magnitude equally likely. */
static size_t random_size(uint64_t *state)
{
    size_t top = (size_t)1 << (1 + check_random(state, 21));
    return 1 + check_random(state, top);
}

/* What @source sends in this round; every rank computes the same. */
static void plan(struct message *messages, int round, int source)
{
    uint64_t state = check_seed + (uint64_t)(round * MAX_RANKS + source) * 7919;
    for (int i = 0; i < MESSAGES; i++) {
        messages[i] = (struct message){.comm = (int)check_random(&state, COMMS),
                                       .tag = (int)check_random(&state, TAGS),
                                       .bytes = random_size(&state)};
        messages[i].seed = state;
    }
}

static void send_all(const struct message *messages)
{
    char *buf[MESSAGES];
    MPI_Request request[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        const struct message *m = &messages[i];
        buf[i] = check_malloc(m->bytes);
        pattern_fill(buf[i], m->bytes, m->seed);
        MPI_Isend(buf[i], (int)m->bytes, MPI_BYTE, 0, m->tag, comms[m->comm], &request[i]);
    }
    MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        free(buf[i]);
}

static struct message *first_left(struct message *messages, int comm, int tag)
{
    for (int i = 0; i < MESSAGES; i++)
        if (!messages[i].taken && messages[i].comm == comm &&
            (tag == MPI_ANY_TAG || messages[i].tag == tag))
            return &messages[i];
    return NULL;
}

struct receive {
    int comm, source, tag;
    struct guarded buf;
};

static void verify(struct message (*messages)[MESSAGES], const struct receive *r,
                   const MPI_Status *status, int round)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    int source = status->MPI_SOURCE;
    CHECK(source > 0 && source < check_ranks, "round %d: source %d", round, source);
    struct message *m = first_left(messages[source], r->comm, r->tag);
    CHECK(m, "round %d: a message that was not sent (source %d, tag %d)", round, source,
          status->MPI_TAG);
    CHECK(status->MPI_TAG == m->tag, "round %d: tag %d instead of %d", round, status->MPI_TAG,
          m->tag);
    CHECK((size_t)count == m->bytes, "round %d: %d bytes instead of %zu: overtaken?", round, count,
          m->bytes);
    check_content(r->buf.at, m->bytes, m->seed, "message in order");
    for (size_t i = m->bytes; i < r->buf.bytes; i++)
        CHECK(r->buf.at[i] == 0xa5, "round %d: byte %zu past the message changed", round,
              i - m->bytes);
    guarded_check(&r->buf, "message in order");
    m->taken = 1;
}

/* A receive that some message not yet spoken for will surely fit. */
static int choose(struct message (*left)[MESSAGES], uint64_t *state, struct receive *r)
{
    int source = 1 + (int)check_random(state, (uint64_t)check_ranks - 1);
    struct message *m = NULL;
    for (int tries = 0; tries < check_ranks && !m; tries++) {
        for (int i = 0; i < MESSAGES && !m; i++)
            if (!left[source][i].taken)
                m = &left[source][i];
        if (!m)
            source = source % (check_ranks - 1) + 1;
    }
    if (!m)
        return 0;
    int any = (int)check_random(state, 4);
    r->comm = m->comm;
    /* Out of order by tag: any tag that this communicator still has a message of. */
    r->tag = (int)check_random(state, TAGS);
    if (!first_left(left[source], r->comm, r->tag))
        r->tag = m->tag;
    if (any == 1)
        r->tag = MPI_ANY_TAG;
    /* With several sources a wildcard could starve a named receive posted later;
     * then it is used with all receives of the batch or none. */
    r->source = source;
    if (check_ranks == 2 && check_random(state, 3) == 0)
        r->source = MPI_ANY_SOURCE;
    first_left(left[source], r->comm, r->tag)->taken = 1;
    return 1;
}

static void receive_all(struct message (*messages)[MESSAGES], int round, uint64_t *state)
{
    static struct message left[MAX_RANKS][MESSAGES];
    memcpy(left, messages, sizeof left);
    for (;;) {
        struct receive batch[BATCH];
        MPI_Request request[BATCH];
        MPI_Status status[BATCH];
        int nr = 0, wanted = 1 + (int)check_random(state, BATCH);
        if (check_random(state, 2))
            check_sleep_ms((int)check_random(state, 10));
        while (nr < wanted && choose(left, state, &batch[nr])) {
            struct receive *r = &batch[nr];
            r->buf = guarded_make(2 * MIB, 16);
            MPI_Irecv(r->buf.at, (int)(2 * MIB), MPI_BYTE, r->source, r->tag, comms[r->comm],
                      &request[nr++]);
        }
        if (nr == 0)
            return;
        if (check_random(state, 2))
            MPI_Waitall(nr, request, status);
        else
            for (int i = nr - 1; i >= 0; i--)
                MPI_Wait(&request[i], &status[i]);
        for (int i = 0; i < nr; i++) {
            verify(messages, &batch[i], &status[i], round);
            guarded_free(&batch[i].buf);
        }
    }
}

/* Several senders at once, every receive a wildcard: each source's messages stay in order. */
static void receive_from_any(struct message (*messages)[MESSAGES], int round, uint64_t *state)
{
    int left[COMMS] = {0};
    for (int source = 1; source < check_ranks; source++)
        for (int i = 0; i < MESSAGES; i++)
            left[messages[source][i].comm]++;
    for (int comm = 0; comm < COMMS; comm++) {
        for (; left[comm]; left[comm]--) {
            struct receive r = {comm, MPI_ANY_SOURCE, MPI_ANY_TAG, guarded_make(2 * MIB, 16)};
            MPI_Status status;
            if (check_random(state, 8) == 0)
                check_sleep_ms(5);
            MPI_Recv(r.buf.at, (int)(2 * MIB), MPI_BYTE, r.source, r.tag, comms[comm], &status);
            verify(messages, &r, &status, round);
            guarded_free(&r.buf);
        }
    }
}

int main(int argc, char **argv)
{
    static struct message messages[MAX_RANKS][MESSAGES];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks >= 2 && check_ranks <= MAX_RANKS, "2 to 8 ranks, not %d", check_ranks);
    const int rounds = argc > 1 ? atoi(argv[1]) : 12;

    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, check_rank, &comms[2]);
    MPI_Comm_dup(comms[2], &comms[3]);

    uint64_t state = check_seed;
    for (int round = 0; round < rounds; round++) {
        for (int source = 1; source < check_ranks; source++)
            plan(messages[source], round, source);
        if (check_rank != 0)
            send_all(messages[check_rank]);
        else if (check_ranks > 2 && round % 2)
            receive_from_any(messages, round, &state);
        else
            receive_all(messages, round, &state);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 1; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    return check_finish();
}
