/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong of 8 bytes while a message of SIZE travels from rank 1 to rank 0 on another
 * communicator.
 *
 *   rank 1   MPI_Isend ══ bulk ══════════════════▶ MPI_Irecv   rank 0
 *            pong ───────────────────────────────▶
 *                 ◀─────────────────────────────── ping
 *
 * A round trip counts if the bulk was not known to have arrived when it began. Everything is
 * verified. One JSON line per bulk message on rank 0: the median of half a round trip, and the
 * longest, µs.
 */
#include "bench.h"

enum { BULK = 1, PING = 2, MOST = 1 << 16 };
/* What a ping asks for; the rest of its 8 bytes is a count. */
enum order { START, GO_ON, END, ORDERS };

struct bulk {
    MPI_Comm comm;
    size_t bytes;
    char *buf;
    MPI_Request request;
};

static uint64_t seed_of(const struct bulk *b, int rep)
{
    return b->bytes * 1000003u + (uint64_t)rep;
}

static void wrong(const char *what, uint64_t word)
{
    fprintf(stderr, "wrong %s: %llu\n", what, (unsigned long long)word);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* µs of half a round trip */
static double ping(enum order order, uint64_t count)
{
    uint64_t word = count * ORDERS + order, answer = 0;
    const double begin = bench_now_us();
    MPI_Send(&word, 1, MPI_UINT64_T, 1, PING, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_UINT64_T, 1, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double took_us = bench_now_us() - begin;
    if (answer != pattern_mix(word))
        wrong("pong", answer);
    return took_us / 2;
}

static void receive_bulk(struct bulk *b, int rep, int warmup, double *half_us)
{
    int arrived = 0, trips = 0;
    uint64_t count = 0;
    memset(b->buf, 0, b->bytes);
    MPI_Irecv(b->buf, (int)b->bytes, MPI_BYTE, 1, BULK, b->comm, &b->request);
    ping(START, count++);
    while (!arrived) {
        const double took_us = ping(GO_ON, count++);
        if (trips < MOST)
            half_us[trips++] = took_us;
        MPI_Test(&b->request, &arrived, MPI_STATUS_IGNORE);
    }
    ping(END, count++);
    bench_verify(b->buf, b->bytes, seed_of(b, rep));
    const double median_us = bench_median(half_us, trips);
    if (rep >= warmup)
        printf("{\"bench\":\"pingpong-beside-bulk\",\"bytes\":%zu,\"rep\":%d,\"latency\":%.3f,"
               "\"longest\":%.3f}\n",
               b->bytes, rep - warmup, median_us, half_us[trips - 1]);
}

static void send_bulk(struct bulk *b, int rep)
{
    uint64_t word, count = 0;
    enum order order;
    pattern_fill(b->buf, b->bytes, seed_of(b, rep));
    do {
        MPI_Recv(&word, 1, MPI_UINT64_T, 0, PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        order = (enum order)(word % ORDERS);
        if (word / ORDERS != count++)
            wrong("ping", word);
        if (order == START)
            MPI_Isend(b->buf, (int)b->bytes, MPI_BYTE, 0, BULK, b->comm, &b->request);
        if (order == END)
            MPI_Wait(&b->request, MPI_STATUS_IGNORE);
        word = pattern_mix(word);
        MPI_Send(&word, 1, MPI_UINT64_T, 0, PING, MPI_COMM_WORLD);
    } while (order != END);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 10, .warmup = 2, .sizes = {67108864}, .nr_sizes = 1};
    bench_parse(argc, argv, "small messages beside a large one", &o);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    struct bulk b;
    double *half_us = bench_malloc(MOST * sizeof *half_us);
    MPI_Comm_dup(MPI_COMM_WORLD, &b.comm);
    for (int i = 0; i < o.nr_sizes; i++) {
        b.bytes = o.sizes[i];
        b.buf = bench_malloc(b.bytes);
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&o, rep, start); rep++) {
            if (rank == 0)
                receive_bulk(&b, rep, o.warmup, half_us);
            else
                send_bulk(&b, rep);
        }
        fflush(stdout);
        free(b.buf);
    }
    free(half_us);
    MPI_Comm_free(&b.comm);
    return bench_finish(rank);
}
