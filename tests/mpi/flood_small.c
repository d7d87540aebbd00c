/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood_small WHAT [MESSAGES [LIMIT_MIB [MORE]]]: many short messages come before their receives.
 * All arrive, right and in order; the receiver's memory grows by less than LIMIT_MIB, where
 * that is given. Rank 0 receives. WHAT:
 *
 *   send       blocking sends of 8 bytes, in tags by turns; probes for a tag that never comes
 *   isend      the same, nonblocking, in windows of 1,000
 *   late       as send; the receiver is first outside of MPI, for two thirds of MORE seconds,
 *              then probes in vain for the rest
 *   queued     10,000 messages wait, then 100,000, and so on up to MESSAGES: each takes no more
 *              than 128 bytes of memory
 *   reverse    the last tag first; only where all of them may be queued
 *   wild       all other ranks send; received with wildcards, of each in order
 *   sizes      0 to 100 KiB, contiguous and not, standard and synchronous; some truncated
 *   unequal    the same, nonblocking, where the sender's rendezvous threshold is a tenth of the
 *              receiver's
 *   overtake   what is sent last is received first: by receive, probe, mprobe, of another
 *              communicator, by a barrier
 *   both       two ranks flood each other, and only one of them receives at first
 *   control    one-sided operations, and acknowledgements, while a flood stands still
 *   die        rank 1 sends without end, rank 0 does not receive; the one that $DIES names is
 * killed. MORE is "unnoticed": the launcher does not see it
 */
#include "counter.h"
#include "hide.h"
#include "status.h"
#include <signal.h>
#include <sys/param.h>

enum { TAGS = 1000, WINDOW = 1000, NEVER = TAGS, GO = TAGS + 1, LAST = TAGS + 2 };
static long messages;
static size_t limit_mib;

static size_t before_kib;

static void check_memory(void)
{
    /* The kernel counts some pages late, by processor: the mark may seem to fall. */
    const size_t now_kib = status_kib("VmHWM"), grown_kib = now_kib - MIN(now_kib, before_kib);
    printf("peak memory grew by %zu KiB\n", grown_kib);
    CHECK(limit_mib == 0 || grown_kib >> 10 < limit_mib, "memory grew by %zu MiB, limit %zu MiB",
          grown_kib >> 10, limit_mib);
}

/* Probes for what never comes, until nothing more seems to come. */
static void probe_in_vain(int ms)
{
    check_nothing_comes(MPI_COMM_WORLD, NEVER, ms);
}

static void receive_word(int source, int tag, uint64_t expected)
{
    uint64_t word = ~expected;
    MPI_Recv(&word, 8, MPI_BYTE, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(word == expected, "source %d, tag %d: %llu instead of %llu", source, tag,
          (unsigned long long)word, (unsigned long long)expected);
}

/* All of them, in the order of their numbers. */
static void receive_in_order(int source)
{
    for (long i = 0; i < messages; i++)
        receive_word(source, (int)(i % TAGS), (uint64_t)i);
}

/* ---- one sender ---- */

static void send_words(void)
{
    for (uint64_t i = 0; i < (uint64_t)messages; i++)
        MPI_Send(&i, 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD);
}

static void isend_words(void)
{
    static uint64_t words[WINDOW];
    static MPI_Request requests[WINDOW];
    for (uint64_t i = 0; i < (uint64_t)messages; i += WINDOW) {
        int n = 0;
        for (; n < WINDOW && i + (uint64_t)n < (uint64_t)messages; n++) {
            words[n] = i + (uint64_t)n;
            MPI_Isend(&words[n], 8, MPI_BYTE, 0, (int)(words[n] % TAGS), MPI_COMM_WORLD,
                      &requests[n]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

static void receive_words(int reverse, int outside_ms, int inside_ms)
{
    check_sleep_ms(outside_ms);
    probe_in_vain(inside_ms);
    /* The order within a tag is the sender's, whatever the order of tags. */
    for (int t = 0; reverse && t < TAGS; t++)
        for (uint64_t i = (uint64_t)(TAGS - 1 - t); i < (uint64_t)messages; i += TAGS)
            receive_word(1, TAGS - 1 - t, i);
    for (uint64_t i = 0; !reverse && i < (uint64_t)messages; i++)
        receive_word(1, (int)(i % TAGS), i);
    check_memory();
}

/* ---- how much memory one takes that waits ---- */

enum { LEAST_QUEUED = 10000, MOST_BYTES_EACH = 128 };

static void send_range(uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        MPI_Send(&i, 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD);
    MPI_Send(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_range(uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++)
        receive_word(1, (int)(i % TAGS), i);
}

static void queued(void)
{
    const struct counter came = counter_open("unexpected");
    unsigned long long before = 0;
    size_t without_kib = 0;
    /* What the first of all messages need is not what one needs. */
    for (int warm = 0; warm < 3; warm++) {
        if (check_rank == 1) {
            send_range(0, 1000);
        } else if (check_rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive_range(0, 1000);
            before = counter_read(&came);
            without_kib = status_private_kib();
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        }
    }
    uint64_t first = 0;
    for (uint64_t end = LEAST_QUEUED; end <= (uint64_t)messages; first = end, end *= 10) {
        if (check_rank == 1) {
            send_range(first, end);
        } else if (check_rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            const size_t with_kib = status_private_kib();
            CHECK(with_kib >= without_kib, "memory fell from %zu KiB to %zu KiB", without_kib,
                  with_kib);
            const size_t grown = (with_kib - without_kib) << 10;
            CHECK(counter_read(&came) - before >= end, "only %llu of %llu messages wait",
                  counter_read(&came) - before, (unsigned long long)end);
            printf("%llu messages: %.1f bytes each\n", (unsigned long long)end,
                   (double)grown / (double)end);
            CHECK(grown >= end * 8, "%zu bytes for %llu messages of 8", grown,
                  (unsigned long long)end);
            CHECK(grown <= end * MOST_BYTES_EACH, "%llu messages take %zu bytes, %zu each",
                  (unsigned long long)end, grown, grown / end);
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        }
    }
    if (check_rank == 0)
        receive_range(0, first);
}

/* ---- many senders ---- */

static void receive_wild(void)
{
    uint64_t *next = calloc((size_t)check_ranks, sizeof *next);
    CHECK(next, "no memory");
    probe_in_vain(2000);
    for (uint64_t n = 0; n < (uint64_t)messages * (uint64_t)(check_ranks - 1); n++) {
        uint64_t word = ~0ULL;
        MPI_Status status;
        MPI_Recv(&word, 8, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(word == next[status.MPI_SOURCE]++ && status.MPI_TAG == (int)(word % TAGS),
              "source %d: message %llu, tag %d", status.MPI_SOURCE, (unsigned long long)word,
              status.MPI_TAG);
    }
    check_memory();
    free(next);
}

/* ---- sizes ---- */

enum { LONGEST = 100 << 10, UNDER_WAY = 8000 };

static size_t size_of(long i)
{
    uint64_t state = check_seed + (uint64_t)i * 7919;
    const size_t limit = check_random(&state, 4) ? 300 : LONGEST;
    return check_random(&state, limit + 1);
}

/* Every second byte of a buffer. */
static MPI_Datatype comb(size_t bytes)
{
    MPI_Datatype type;
    MPI_Type_vector((int)bytes, 1, 2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* A message of its own memory, which is under way. */
struct sent {
    MPI_Request request;
    void *data;
};

static void finish(struct sent *sent)
{
    if (sent->data)
        MPI_Wait(&sent->request, MPI_STATUS_IGNORE);
    free(sent->data);
    sent->data = NULL;
}

/* @most_under_way: how many may be; synchronous ones besides, which complete only when they are
 * received. 0: blocking sends. */
static void send_sizes(int most_under_way)
{
    unsigned char *spread = check_malloc(2 * (size_t)LONGEST);
    const int nr_synchronous = (int)(messages / 53 + 1);
    struct sent *sent = calloc((size_t)(most_under_way + 1), sizeof *sent);
    struct sent *synchronous = calloc((size_t)nr_synchronous, sizeof *synchronous);
    CHECK(sent && synchronous, "no memory");
    for (long i = 0; i < messages; i++) {
        const size_t bytes = size_of(i);
        const int tag = (int)(i % TAGS);
        struct sent *s =
            i % 53 == 2 ? &synchronous[i / 53] : &sent[most_under_way ? i % most_under_way : 0];
        finish(s);
        unsigned char *buf = s->data = check_malloc(bytes);
        pattern_fill(buf, bytes, check_seed + (uint64_t)i);
        if (i % 53 == 2) {
            MPI_Issend(buf, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &s->request);
        } else if (i % 5 == 1 && bytes > 0) {
            MPI_Datatype type = comb(bytes);
            /* In the message's own memory for as long as it is under way. */
            unsigned char *own = most_under_way ? check_malloc(2 * bytes) : spread;
            for (size_t b = 0; b < bytes; b++)
                own[2 * b] = buf[b];
            MPI_Isend(own, 1, type, 0, tag, MPI_COMM_WORLD, &s->request);
            MPI_Type_free(&type);
            if (most_under_way) {
                free(buf);
                s->data = own;
            }
        } else {
            MPI_Isend(buf, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &s->request);
        }
        if (!most_under_way && i % 53 != 2)
            finish(s);
    }
    for (int i = 0; i <= most_under_way; i++)
        finish(&sent[i]);
    for (int i = 0; i < nr_synchronous; i++)
        finish(&synchronous[i]);
    free(synchronous);
    free(sent);
    free(spread);
}

static void receive_sizes(void)
{
    unsigned char *buf = check_malloc(LONGEST), *spread = check_malloc(2 * (size_t)LONGEST);
    probe_in_vain(1000);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (long i = 0; i < messages; i++) {
        const size_t bytes = size_of(i), cut = i % 7 == 3 ? bytes / 3 : 0;
        MPI_Status status;
        int count, class = MPI_SUCCESS, error;
        memset(buf, 0xa5, bytes);
        if (i % 11 == 4 && bytes > 0 && !cut) {
            MPI_Datatype type = comb(bytes);
            error = MPI_Recv(spread, 1, type, 1, (int)(i % TAGS), MPI_COMM_WORLD, &status);
            for (size_t b = 0; b < bytes; b++)
                buf[b] = spread[2 * b];
            MPI_Type_free(&type);
        } else {
            error = MPI_Recv(buf, (int)(bytes - cut), MPI_BYTE, 1, (int)(i % TAGS), MPI_COMM_WORLD,
                             &status);
        }
        if (error)
            MPI_Error_class(error, &class);
        CHECK(class == (cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "message %ld of %zu bytes: class %d",
              i, bytes, class);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(cut || (size_t)count == bytes, "message %ld: %d bytes of %zu", i, count, bytes);
        const size_t right = pattern_find_error(buf, bytes - cut, check_seed + (uint64_t)i);
        CHECK(right == bytes - cut, "message %ld of %zu bytes: wrong at %zu", i, bytes, right);
        for (size_t b = bytes - cut; b < bytes; b++)
            CHECK(buf[b] == 0xa5, "message %ld: byte %zu written, %zu asked for", i, b,
                  bytes - cut);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    check_memory();
    free(spread);
    free(buf);
}

/* ---- what comes last is received first ---- */

static void overtake(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    uint64_t *words = check_malloc((size_t)messages * sizeof *words);
    MPI_Request *requests = check_malloc((size_t)messages * sizeof *requests);
    if (check_rank == 1) {
        for (long i = 0; i < messages; i++) {
            words[i] = (uint64_t)i;
            MPI_Isend(&words[i], 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD, &requests[i]);
        }
        uint64_t last[4] = {1, 2, 3, 4};
        MPI_Send(&last[0], 8, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
        MPI_Send(&last[1], 8, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
        MPI_Send(&last[2], 8, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
        MPI_Ssend(&last[3], 8, MPI_BYTE, 0, 0, other);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    } else if (check_rank == 0) {
        MPI_Message message;
        MPI_Status status;
        uint64_t word = 0;
        int count;
        receive_word(1, LAST, 1);
        MPI_Probe(1, LAST, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == 8, "%d bytes probed", count);
        receive_word(1, LAST, 2);
        MPI_Mprobe(1, LAST, MPI_COMM_WORLD, &message, &status);
        check_sleep_ms(20);
        MPI_Mrecv(&word, 8, MPI_BYTE, &message, &status);
        CHECK(word == 3, "%llu by mprobe", (unsigned long long)word);
        MPI_Recv(&word, 8, MPI_BYTE, 1, 0, other, MPI_STATUS_IGNORE);
        CHECK(word == 4, "%llu of the other communicator", (unsigned long long)word);
        MPI_Barrier(MPI_COMM_WORLD);
        receive_in_order(1);
        check_memory();
    }
    free(requests);
    free(words);
    MPI_Comm_free(&other);
}

/* ---- both ---- */

static void both(void)
{
    const int peer = 1 - check_rank;
    uint64_t *words = check_malloc((size_t)messages * sizeof *words);
    MPI_Request *requests = check_malloc((size_t)messages * sizeof *requests);
    for (long i = 0; i < messages; i++) {
        words[i] = (uint64_t)i;
        MPI_Isend(&words[i], 8, MPI_BYTE, peer, (int)(i % TAGS), MPI_COMM_WORLD, &requests[i]);
    }
    if (check_rank == 1)
        MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    receive_in_order(peer);
    if (check_rank == 0)
        MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    check_memory();
    free(requests);
    free(words);
}

/* ---- what is not a send is never held ---- */

static void control(void)
{
    uint64_t *memory, sum = 0, one = 1, got = 0;
    MPI_Win win;
    MPI_Win_allocate(2 * sizeof *memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memory[0] = memory[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t *words = check_malloc((size_t)messages * sizeof *words);
    MPI_Request *requests = check_malloc((size_t)messages * sizeof *requests), ready;
    if (check_rank == 1) {
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, &ready);
        for (long i = 0; i < messages; i++) {
            words[i] = (uint64_t)i;
            MPI_Isend(&words[i], 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD, &requests[i]);
        }
        /* Rank 0 takes none of them before these have been done. */
        for (int i = 0; i < 100; i++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, win);
            MPI_Fetch_and_op(&one, &got, MPI_UINT64_T, 0, 1, MPI_SUM, win);
            MPI_Win_unlock(0, win);
            CHECK(got == (uint64_t)i, "fetched %llu instead of %d", (unsigned long long)got, i);
        }
        MPI_Wait(&ready, MPI_STATUS_IGNORE);
        MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    } else if (check_rank == 0) {
        do {
            probe_in_vain(10);
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Get(&sum, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win);
            MPI_Win_unlock(0, win);
        } while (sum < 100);
        /* The acknowledgement of a synchronous send comes through, too. */
        MPI_Ssend(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        receive_in_order(1);
        check_memory();
    }
    free(requests);
    free(words);
    MPI_Win_free(&win);
}

/* ---- death ---- */

static void die(void)
{
    const char *who = getenv("DIES");
    const int dies = who && strcmp(who, "sender") == 0;
    if (check_rank == 1) {
        for (uint64_t i = 0;; i++) {
            if (dies && i == (uint64_t)messages)
                raise(SIGKILL);
            MPI_Request request;
            MPI_Isend(&i, 8, MPI_BYTE, 0, (int)(i % TAGS), MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    const struct counter came = counter_open("unexpected");
    probe_in_vain(2000);
    CHECK(counter_read(&came) > 1000, "no flood: %llu messages", counter_read(&came));
    printf("the flood is here\n");
    fflush(stdout);
    /* The launcher needs to live until it has read that. */
    check_sleep_ms(200);
    if (!dies)
        raise(SIGKILL);
    /* All that was sent, and then no more. */
    for (uint64_t i = 0;; i++)
        receive_word(1, (int)(i % TAGS), i);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *rank = getenv("PMI_RANK");
    const char *more = argc > 4 ? argv[4] : "";
    if (strcmp(more, "unnoticed") == 0)
        hide_from_launcher();
    if (strcmp(what, "unequal") == 0 && rank && atoi(rank) == 1)
        setenv("MPIR_CVAR_CH4_ZC_RNDV_THRESHOLD", "800", 1);
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc > 1, "flood_small WHAT [MESSAGES [LIMIT_MIB [MORE]]]");
    messages = argc > 2 ? atol(argv[2]) : 100000;
    limit_mib = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    before_kib = status_kib("VmHWM");

    if (strcmp(what, "overtake") == 0)
        overtake();
    else if (strcmp(what, "both") == 0)
        both();
    else if (strcmp(what, "control") == 0)
        control();
    else if (strcmp(what, "die") == 0)
        die();
    else if ((strcmp(what, "sizes") == 0 || strcmp(what, "unequal") == 0) && check_rank < 2)
        check_rank ? send_sizes(strcmp(what, "unequal") ? 0 : UNDER_WAY) : receive_sizes();
    else if (strcmp(what, "wild") == 0)
        check_rank ? send_words() : receive_wild();
    else if (strcmp(what, "queued") == 0)
        queued();
    else if (check_rank == 0 && strcmp(what, "late") == 0)
        receive_words(0, atoi(more) * 1000 / 3 * 2, atoi(more) * 1000 / 3);
    else if (check_rank == 0)
        receive_words(strcmp(what, "reverse") == 0, 0, 3000);
    else if (check_rank == 1)
        strcmp(what, "isend") == 0 ? isend_words() : send_words();
    return check_finish();
}
