/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of work that ranks steal from each other, as libcircle has it. A rank whose queue runs
 * low asks another one for half of its items, and goes on with what it has; the other sends them
 * with MPI_Send, between two items of its own:
 *
 *     thief    ...last items... |work         |MPI_Recv
 *     victim   |work |MPI_Send..................| work     held, and with it all that ask it
 *
 * MPI_Iprobe of MPICH makes progress after it has looked, and does not look again: what comes by
 * that is seen by the next one, an item later. With -k twice, a rank that finds nothing looks
 * again.
 *
 * In the beginning every fourth rank has all items. An item is a number and a block of bytes that
 * belongs to it. Rank 0 counts the items done, and tells all when it was the last. It is an error
 * if an item is done twice or not at all.
 *
 * Prints the longest time that a rank was held in one MPI_Send of items, too.
 */
#include "proof.h"

enum { REQUEST = 1, ITEMS, DONE, STOP };
enum { ONCE = 1, TWICE };
enum { SHARE = 4, LOW = 1, AT_ONCE = 4, TURN_DOWN_MS = 5 };

struct queue {
    struct proof *p;
    int *items, length;
    unsigned char *batch;
    int victim; /* asked, or to be asked next */
    int asked, refusals, stopped;
    int looks;           /* for a message, before it is said that there is none */
    int nr_items, done;  /* rank 0: of all */
    unsigned char *seen; /* rank 0: items done */
    double held_us;
};

static size_t record_bytes(const struct queue *q)
{
    return q->p->options.sizes[0];
}

/* Half of what there is, at most AT_ONCE; none if this rank needs it itself. */
static void donate(struct queue *q, int thief)
{
    const int half = q->length / 2, count = half < AT_ONCE ? half : AT_ONCE;
    for (int i = 0; i < count; i++) {
        const int item = q->items[--q->length];
        unsigned char *record = q->batch + (size_t)i * record_bytes(q);
        memcpy(record, &item, sizeof item);
        pattern_fill(record + 8, record_bytes(q) - 8, (uint64_t)item);
    }
    const double begin_us = bench_now_us();
    MPI_Send(q->batch, (int)((size_t)count * record_bytes(q)), MPI_BYTE, thief, ITEMS,
             MPI_COMM_WORLD);
    const double held_us = bench_now_us() - begin_us;
    q->held_us = held_us > q->held_us ? held_us : q->held_us;
}

static void take(struct queue *q, int source)
{
    MPI_Status status;
    int bytes;
    MPI_Recv(q->batch, (int)(AT_ONCE * record_bytes(q)), MPI_BYTE, source, ITEMS, MPI_COMM_WORLD,
             &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    const int count = (int)((size_t)bytes / record_bytes(q));
    for (int i = 0; i < count; i++) {
        const unsigned char *record = q->batch + (size_t)i * record_bytes(q);
        int item;
        memcpy(&item, record, sizeof item);
        bench_verify(record + 8, record_bytes(q) - 8, (uint64_t)item);
        q->items[q->length++] = item;
    }
    q->asked = 0;
    q->refusals = count ? 0 : q->refusals + 1;
}

/* Rank 0: ends the job with the last item. */
static void count_done(struct queue *q, int item)
{
    if (item < 0 || item >= q->nr_items || q->seen[item]++) {
        fprintf(stderr, "item %d is done twice, or is none\n", item);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (++q->done < q->nr_items)
        return;
    for (int rank = 1; rank < q->p->ranks; rank++)
        MPI_Send(NULL, 0, MPI_BYTE, rank, STOP, MPI_COMM_WORLD);
    q->stopped = 1;
}

static void answer(struct queue *q, const MPI_Status *status)
{
    int item;
    switch (status->MPI_TAG) {
    case REQUEST:
        MPI_Recv(NULL, 0, MPI_BYTE, status->MPI_SOURCE, REQUEST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        donate(q, status->MPI_SOURCE);
        break;
    case ITEMS:
        take(q, status->MPI_SOURCE);
        break;
    case DONE:
        MPI_Recv(&item, 1, MPI_INT, status->MPI_SOURCE, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        count_done(q, item);
        break;
    default:
        MPI_Recv(NULL, 0, MPI_BYTE, 0, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        q->stopped = 1;
    }
}

/* All that is there. */
static void answer_all(struct queue *q)
{
    for (;;) {
        MPI_Status status;
        int there = 0;
        for (int i = 0; i < q->looks && !there; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
        if (!there)
            return;
        answer(q, &status);
    }
}

static void ask(struct queue *q)
{
    do {
        q->victim = (q->victim + 1) % q->p->ranks;
    } while (q->victim == q->p->rank);
    MPI_Send(NULL, 0, MPI_BYTE, q->victim, REQUEST, MPI_COMM_WORLD);
    q->asked = 1;
}

static void work(struct queue *q)
{
    const int item = q->items[--q->length];
    proof_rest(q->p, q->p->options.compute_ms * (0.5 + proof_draw(0, item)));
    if (q->p->rank == 0)
        count_done(q, item);
    else
        MPI_Send(&item, 1, MPI_INT, 0, DONE, MPI_COMM_WORLD);
}

/* Nothing to do: the next message, or, after refusals by all, a little rest. */
static void idle(struct queue *q)
{
    MPI_Status status;
    if (q->refusals && q->refusals % (q->p->ranks - 1) == 0) {
        const struct timespec t = {0, TURN_DOWN_MS * 1000000};
        nanosleep(&t, NULL);
        q->refusals++;
        return;
    }
    if (!q->asked)
        return;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    answer(q, &status);
}

/* Answers until all are through: nothing is left on its way. */
static void end(struct queue *q)
{
    while (q->asked)
        answer_all(q);
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        answer_all(q);
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"once", "twice", NULL};
    struct proof p =
        proof_begin(&argc, &argv, "stealing", 2,
                    (struct bench_options){
                        .repetitions = 20, .compute_ms = 60, .sizes = {512 << 10}, .nr_sizes = 1});
    struct queue q = {.p = &p,
                      .victim = p.rank,
                      .looks = bench_kind(&p.options, kinds) ? TWICE : ONCE,
                      .nr_items = p.options.repetitions * p.ranks};
    q.items = bench_malloc((size_t)q.nr_items * sizeof *q.items);
    q.batch = proof_buffer(AT_ONCE * record_bytes(&q));
    q.seen = proof_buffer((size_t)q.nr_items);
    for (int item = 0, owners = (p.ranks + SHARE - 1) / SHARE; item < q.nr_items; item++)
        if (p.rank == item % owners * SHARE)
            q.items[q.length++] = item;

    while (!q.stopped) {
        answer_all(&q);
        if (!q.stopped && q.length <= LOW && !q.asked)
            ask(&q);
        if (q.stopped)
            break;
        if (q.length)
            work(&q);
        else
            idle(&q);
    }
    end(&q);
    double longest_us;
    MPI_Reduce(&q.held_us, &longest_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (p.rank == 0)
        printf("{\"bytes\":%zu,\"longest_held\":%.3f}\n", p.options.sizes[0], longest_us / 1e3);
    free(q.items);
    free(q.batch);
    free(q.seen);
    return proof_end(&p);
}
