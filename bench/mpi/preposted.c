/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receivers that are ready. Windows of receives are posted first, then the
 * partner is told to send; every byte is verified afterwards.
 *
 *   bandwidth     rank 1 sends to rank 0: from the go-ahead to the last byte
 *   bibandwidth   both send at once: until both have everything; bytes of both directions
 *
 * -k chooses. One JSON line per repetition on rank 0.
 */
#include "bench.h"

enum { GO = 1, DATA = 2, DONE = 3, WINDOW = 4 };

struct window {
    size_t bytes;
    char *buf[WINDOW];
    MPI_Request request[WINDOW];
};

static void window_allocate(struct window *w, size_t bytes)
{
    w->bytes = bytes;
    for (int i = 0; i < WINDOW; i++)
        w->buf[i] = bench_malloc(bytes);
}

static void window_free(struct window *w)
{
    for (int i = 0; i < WINDOW; i++)
        free(w->buf[i]);
}

static uint64_t seed_of(size_t bytes, int sender, int rep, int slot)
{
    return bytes * 1000003u + (uint64_t)((rep * WINDOW + slot) * 2 + sender);
}

static void window_fill(struct window *w, int sender, int rep)
{
    for (int i = 0; i < WINDOW; i++)
        pattern_fill(w->buf[i], w->bytes, seed_of(w->bytes, sender, rep, i));
}

static void window_verify(struct window *w, int sender, int rep)
{
    for (int i = 0; i < WINDOW; i++)
        bench_verify(w->buf[i], w->bytes, seed_of(w->bytes, sender, rep, i));
}

static void window_post(struct window *w, int partner)
{
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(w->buf[i], (int)w->bytes, MPI_BYTE, partner, DATA, MPI_COMM_WORLD,
                  &w->request[i]);
}

static void window_send(struct window *w, int partner)
{
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(w->buf[i], (int)w->bytes, MPI_BYTE, partner, DATA, MPI_COMM_WORLD,
                  &w->request[i]);
}

static void window_wait(struct window *w)
{
    MPI_Waitall(WINDOW, w->request, MPI_STATUSES_IGNORE);
}

static void tell(int partner, int tag)
{
    MPI_Send(NULL, 0, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
}

static void hear(int partner, int tag)
{
    MPI_Recv(NULL, 0, MPI_BYTE, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* µs on rank 0 */
static double one_way(struct window *w, int rank, int rep)
{
    double begin = 0;
    if (rank == 0) {
        window_post(w, 1);
        begin = bench_now_us();
        tell(1, GO);
    } else {
        window_fill(w, 1, rep);
        hear(0, GO);
        window_send(w, 0);
    }
    window_wait(w);
    double took_us = bench_now_us() - begin;
    if (rank == 0)
        window_verify(w, 1, rep);
    return took_us;
}

/* µs on rank 0. A send may complete before its message arrived: hence DONE. */
static double both_ways(struct window *in, struct window *out, int rank, int rep)
{
    const int partner = 1 - rank;
    double begin = 0;
    window_fill(out, rank, rep);
    window_post(in, partner);
    if (rank == 0) {
        hear(1, GO);
        begin = bench_now_us();
        tell(1, GO);
    } else {
        tell(0, GO);
        hear(0, GO);
    }
    window_send(out, partner);
    window_wait(in);
    window_wait(out);
    if (rank == 0)
        hear(1, DONE);
    else
        tell(0, DONE);
    double took_us = bench_now_us() - begin;
    window_verify(in, partner, rep);
    return took_us;
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 20,
                              .warmup = 3,
                              .sizes = {65536, 262144, 1048576, 4194304, 16777216, 67108864},
                              .nr_sizes = 6};
    bench_parse(argc, argv, "large messages whose receives are posted first", &o);
    const char *const kinds[] = {"bandwidth", "bibandwidth", NULL};
    const int both = bench_kind(&o, kinds);
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    const char *name = both ? "bibandwidth" : "preposted", *metric = kinds[both];
    for (int i = 0; i < o.nr_sizes; i++) {
        const size_t bytes = o.sizes[i];
        struct window in, out;
        window_allocate(&in, bytes);
        if (both)
            window_allocate(&out, bytes);
        const double start = bench_now_us();
        for (int rep = 0; bench_again(&o, rep, start); rep++) {
            double took_us = both ? both_ways(&in, &out, rank, rep) : one_way(&in, rank, rep);
            if (rank == 0 && rep >= o.warmup)
                printf("{\"bench\":\"%s\",\"bytes\":%zu,\"rep\":%d,\"%s\":%.2f}\n", name, bytes,
                       rep - o.warmup, metric, (double)bytes * WINDOW * (both ? 2 : 1) / took_us);
        }
        fflush(stdout);
        if (both)
            window_free(&out);
        window_free(&in);
    }
    return bench_finish(rank);
}
