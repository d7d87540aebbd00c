/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks leave and come back while all of them send to each other, and the program does not notice:
 * the contents, the order and the envelopes of all messages are as ever. It knows nothing of it;
 * holder.c tells the ranks to. Messages have 0 bytes to 4 MiB.
 *
 *     leaves FILE NUMBER WHAT...   makes FILE.ready, and goes on until there are NUMBER files
 *                                  FILE.<rank>
 *
 * WHAT: window, port, world, ended, died, or all others, or some of pairs, wildcards, synchronous,
 * probes, collectives, cancellations, computing, itself. Of port to died rank 0 has one: a port
 * that is open, a child that it talks to, one that has finalized, one that was killed. It keeps the
 * communicator to it.
 */
#include "marks.h"
#include "sizes.h"
#include <signal.h>
#include <stddef.h>

enum { TAGS = 10000, NEVER = 20000, ITSELF, TO_CHILD, FEW = 6, END = -1, DIE = -2 };

static uint64_t state;

/** send_all - FEW messages to every other rank, the buffers of which are in @out */
static int send_all(int round, int kind, void **out, MPI_Request *requests)
{
    /* A rank may be in the next round already, and no wildcard may match what it sends. */
    const int tag = round % TAGS;
    int n = 0;
    for (int i = 0; i < FEW; i++) {
        for (int to = 0; to < check_ranks; to++) {
            if (to == check_rank)
                continue;
            const size_t bytes = size_of(round, check_rank, to, i);
            out[n] = check_malloc(bytes);
            pattern_fill(out[n], bytes, content_of(round, check_rank, to, i));
            if (kind == 1 && i % 2)
                MPI_Issend(out[n], bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[n]);
            else
                MPI_Isend(out[n], bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[n]);
            n++;
        }
    }
    return n;
}

static void end_sends(int n, void **out, MPI_Request *requests)
{
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        free(out[i]);
}

static void check_message(int round, const void *data, const MPI_Status *status, int *seen)
{
    const int from = status->MPI_SOURCE, i = seen[from]++;
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    CHECK(status->MPI_TAG == round % TAGS, "tag %d", status->MPI_TAG);
    CHECK((size_t)bytes == size_of(round, from, check_rank, i), "%d bytes, message %d of rank %d",
          bytes, i, from);
    check_content(data, bytes, content_of(round, from, check_rank, i), "message");
}

/** exchange - @kind: 0 from each rank in order, 1 some synchronous, 2 wildcards, 3 probed */
static void exchange(int round, int kind)
{
    const int each = FEW * (check_ranks - 1);
    void **out = check_malloc(each * sizeof *out);
    MPI_Request *requests = check_malloc(each * sizeof *requests);
    int *seen = calloc(check_ranks, sizeof *seen);
    const int n = send_all(round, kind, out, requests);
    MPI_Status status;

    if (check_random(&state, 4) == 0)
        check_sleep_ms((int)check_random(&state, 8));
    for (int i = 0; i < FEW; i++) {
        for (int other = 0; other < check_ranks; other++) {
            if (other == check_rank)
                continue;
            int from = kind >= 2 ? MPI_ANY_SOURCE : other;
            size_t room = LARGEST;
            if (kind == 3) {
                MPI_Message message;
                int bytes;
                MPI_Mprobe(from, round % TAGS, MPI_COMM_WORLD, &message, &status);
                MPI_Get_count(&status, MPI_BYTE, &bytes);
                void *data = check_malloc(bytes);
                MPI_Mrecv(data, bytes, MPI_BYTE, &message, &status);
                check_message(round, data, &status, seen);
                free(data);
                continue;
            }
            void *data = check_malloc(room);
            MPI_Recv(data, room, MPI_BYTE, from, round % TAGS, MPI_COMM_WORLD, &status);
            check_message(round, data, &status, seen);
            free(data);
        }
    }
    end_sends(n, out, requests);
    free(out);
    free(requests);
    free(seen);
}

static void collectives(int round)
{
    const int count = 1 + (int)check_random(&state, 200000), root = round % check_ranks;
    long *sums = check_malloc(count * sizeof *sums), *own = check_malloc(count * sizeof *own);
    for (int i = 0; i < count; i++)
        own[i] = (long)i * (check_rank + 1) + round;
    MPI_Allreduce(own, sums, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == (long)i * check_ranks * (check_ranks + 1) / 2 + (long)round * check_ranks,
              "element %d of a sum", i);
    if (check_rank == root)
        pattern_fill(sums, count * sizeof *sums, round);
    MPI_Request request;
    MPI_Ibcast(sums, count, MPI_LONG, root, MPI_COMM_WORLD, &request);
    if (check_random(&state, 2))
        check_sleep_ms(2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_content(sums, count * sizeof *sums, round, "broadcast");
    MPI_Barrier(MPI_COMM_WORLD);
    free(sums);
    free(own);
}

static void cancellations(void)
{
    char buffer[64];
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(buffer, sizeof buffer, MPI_BYTE, MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "a receive that nothing matches");
}

/** itself - messages of a rank to itself, the largest announced */
static void itself(int round)
{
    const size_t bytes = sizes[round % SIZES];
    void *out = check_malloc(bytes), *in = check_malloc(bytes);
    MPI_Request requests[2];
    pattern_fill(out, bytes, round);
    MPI_Isend(out, bytes, MPI_BYTE, check_rank, ITSELF, MPI_COMM_WORLD, &requests[0]);
    if (round % 2)
        check_sleep_ms(1);
    MPI_Irecv(in, bytes, MPI_BYTE, check_rank, ITSELF, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check_content(in, bytes, round, "to itself");
    free(out);
    free(in);
}

/* ---- a window ---- */

static MPI_Win window;
static struct {
    int round;
    int64_t drawn; /* at rank 0: by all */
    unsigned char bytes[300 * KIB];
} * memory;

static void open_window(void)
{
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory->drawn = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

static size_t bytes_put(int round, int from)
{
    const uint64_t x = pattern_mix(check_seed ^ pattern_mix((uint64_t)round << 20 | from));
    /* Of a line, or of more than one message of UCX carries. */
    return 1 + (x >> 8) % (x % 2 ? 64 : sizeof memory->bytes);
}

static void put_under_fence(int round, int to)
{
    MPI_Win_fence(0, window);
    MPI_Put(&round, 1, MPI_INT, to, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(memory->round == round, "a put: %d in round %d", memory->round, round);
}

/** put_under_lock - and get it back, from a target that does not take part, and may be away */
static void put_under_lock(int round, int to)
{
    const MPI_Aint place = offsetof(__typeof__(*memory), bytes);
    const int bytes = (int)bytes_put(round, check_rank);
    unsigned char *out = check_malloc(bytes), *in = check_malloc(bytes);
    pattern_fill(out, bytes, content_of(round, check_rank, to, FEW));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window);
    MPI_Put(out, bytes, MPI_BYTE, to, place, bytes, MPI_BYTE, window);
    MPI_Win_unlock(to, window);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
    MPI_Get(in, bytes, MPI_BYTE, to, place, bytes, MPI_BYTE, window);
    MPI_Win_unlock(to, window);
    check_content(in, bytes, content_of(round, check_rank, to, FEW), "got back");
    free(in);
    free(out);
}

/** draw - a number that no other rank draws, of those of this round */
static void draw(int round)
{
    const int64_t one = 1, least = (int64_t)round * check_ranks;
    int64_t drawn = -1, all = 0;
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, offsetof(__typeof__(*memory), drawn), MPI_SUM,
                     window);
    MPI_Win_unlock_all(window);
    CHECK(drawn >= least && drawn < least + check_ranks, "%lld drawn in round %d", (long long)drawn,
          round);
    MPI_Allreduce(&drawn, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == check_ranks * least + check_ranks * (check_ranks - 1) / 2,
          "a number was drawn twice in round %d", round);
}

static void use_window(int round)
{
    const int to = (check_rank + 1) % check_ranks;
    const int from = (check_rank + check_ranks - 1) % check_ranks;
    put_under_fence(round, to);
    put_under_lock(round, to);
    draw(round); /* all have put */
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
    check_content(memory->bytes, bytes_put(round, from), content_of(round, from, check_rank, FEW),
                  "put");
    MPI_Win_unlock(check_rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- other worlds ---- */

static MPI_Comm child = MPI_COMM_NULL;
static char port[MPI_MAX_PORT_NAME];

/** talk - to a child, until @round is negative */
static void talk(int round)
{
    MPI_Sendrecv_replace(&round, 1, MPI_INT, 0, TO_CHILD, 0, TO_CHILD, child, MPI_STATUS_IGNORE);
}

/** lose - the child, which dies */
static void lose_child(void)
{
    int word = DIE;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Send(&word, 1, MPI_INT, 0, TO_CHILD, child);
    MPI_Recv(&word, 1, MPI_INT, 0, TO_CHILD, child, MPI_STATUS_IGNORE);
}

static int be_child(MPI_Comm parent)
{
    for (int round = 0; round >= 0;) {
        MPI_Recv(&round, 1, MPI_INT, 0, TO_CHILD, parent, MPI_STATUS_IGNORE);
        if (round == DIE)
            raise(SIGKILL);
        MPI_Send(&round, 1, MPI_INT, 0, TO_CHILD, parent);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

/* ---- the job ---- */

static int wants(int argc, char **argv, const char *what)
{
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], what) ||
            (!strcmp(argv[i], "all") && strcmp(what, "window") && strcmp(what, "port") &&
             strcmp(what, "world") && strcmp(what, "ended") && strcmp(what, "died")))
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        return be_child(parent);
    CHECK(argc > 3, "usage: leaves FILE NUMBER WHAT...");
    int go_on = 1, rounds = 0;
    const int has_window = wants(argc, argv, "window");
    const int has_port = check_rank == 0 && wants(argc, argv, "port");
    const int has_child = check_rank == 0 && wants(argc, argv, "world");
    const int ended = check_rank == 0 && wants(argc, argv, "ended");
    const int died = check_rank == 0 && wants(argc, argv, "died");
    if (has_window)
        open_window();
    if (has_port)
        MPI_Open_port(MPI_INFO_NULL, port);
    if (has_child || ended || died) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                       MPI_ERRCODES_IGNORE);
        talk(0);
    }
    if (ended)
        talk(END);
    if (died)
        lose_child();
    if (check_rank == 0)
        mark(argv[1], ".ready");
    for (; go_on; rounds++) {
        state = pattern_mix(check_seed + rounds);
        if (wants(argc, argv, "pairs"))
            exchange(4 * rounds, 0);
        if (wants(argc, argv, "synchronous"))
            exchange(4 * rounds + 1, 1);
        if (wants(argc, argv, "wildcards"))
            exchange(4 * rounds + 2, 2);
        if (wants(argc, argv, "probes"))
            exchange(4 * rounds + 3, 3);
        if (wants(argc, argv, "cancellations"))
            cancellations();
        if (wants(argc, argv, "itself"))
            itself(rounds);
        if (has_window)
            use_window(rounds);
        if (has_child)
            talk(rounds);
        if (wants(argc, argv, "computing"))
            check_sleep_ms((int)check_random(&state, 20));
        if (wants(argc, argv, "collectives"))
            collectives(rounds);
        go_on = found(argv[1]) < atoi(argv[2]);
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (has_window)
        MPI_Win_free(&window);
    if (has_port)
        MPI_Close_port(port);
    if (has_child)
        talk(END);
    if (child != MPI_COMM_NULL)
        MPI_Comm_disconnect(&child);
    if (check_rank == 0)
        printf("# %d rounds\n", rounds);
    return check_finish();
}
