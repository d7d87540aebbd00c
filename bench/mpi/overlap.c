/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a transfer hides behind computation. Rank 0 starts it, works
 * without entering MPI, and waits; rank 1 only serves it.
 *
 *   receiver   MPI_Irecv, go-ahead to the sender, work, MPI_Wait
 *   sender     MPI_Isend to a receive that is posted, work, MPI_Wait
 *
 * The work takes WORK_FACTOR times the bare transfer. Each repetition measures
 * the transfer alone, the work alone and both, and the share that hid is
 *
 *   100 % * (work + transfer - both) / transfer       (transfer, work: medians)
 *
 * 100 (the most there can be; above is noise and cut off): it cost nothing;
 * 0: it only began in MPI_Wait; below: it cost extra.
 * A size and side that is slow gets fewer repetitions, at least LEAST.
 * Every byte is verified. One JSON line per repetition and side on rank 0.
 */
#include "bench.h"

enum { GO = 1, DATA = 2, NEXT = 3, WORK_FACTOR = 2, LEAST = 3 };
enum side { RECEIVER, SENDER };

static const double kPatienceUs = 2e6;
static const char *const side_names[] = {"receiver", "sender"};

static uint64_t seed_of(size_t bytes, unsigned count)
{
    return bytes * 1000003u + count;
}

/* Rank 0 says whether rank 1 shall serve another transfer. */
static void announce(int another)
{
    MPI_Send(&another, 1, MPI_INT, 1, NEXT, MPI_COMM_WORLD);
}

static int another_announced(void)
{
    int another;
    MPI_Recv(&another, 1, MPI_INT, 0, NEXT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return another;
}

static void serve(enum side side, size_t bytes, char *buf, unsigned count)
{
    MPI_Request request;
    if (side == RECEIVER) {
        pattern_fill(buf, bytes, seed_of(bytes, count));
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        bench_verify(buf, bytes, seed_of(bytes, count));
    }
}

/* µs of a transfer with @rounds of work behind it */
static double transfer(enum side side, size_t bytes, char *buf, unsigned count, uint64_t rounds)
{
    MPI_Request request;
    double begin;
    announce(1);
    if (side == RECEIVER) {
        begin = bench_now_us();
        MPI_Irecv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    } else {
        pattern_fill(buf, bytes, seed_of(bytes, count));
        MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        begin = bench_now_us();
        MPI_Isend(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
    }
    bench_work(rounds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double took_us = bench_now_us() - begin;
    if (side == RECEIVER)
        bench_verify(buf, bytes, seed_of(bytes, count));
    return took_us;
}

static void measure(const struct bench_options *o, enum side side, size_t bytes, char *buf,
                    double rounds_per_us)
{
    double *transfer_us = bench_malloc((size_t)(o->warmup + o->repetitions) * sizeof(double));
    double *work_us = bench_malloc((size_t)o->repetitions * sizeof(double));
    double *both_us = bench_malloc((size_t)o->repetitions * sizeof(double));
    unsigned count = 0;
    for (int rep = 0; rep < o->warmup; rep++)
        transfer_us[rep] = transfer(side, bytes, buf, count++, 0);
    const uint64_t rounds =
        (uint64_t)(WORK_FACTOR * bench_median(transfer_us, o->warmup) * rounds_per_us);
    const double begin = bench_now_us();
    int done = 0;
    while (done < o->repetitions && (done < LEAST || bench_now_us() - begin < kPatienceUs)) {
        transfer_us[done] = transfer(side, bytes, buf, count++, 0);
        work_us[done] = bench_work_us(rounds);
        both_us[done] = transfer(side, bytes, buf, count++, rounds);
        done++;
    }
    announce(0);
    const double transfer_typical = bench_median(transfer_us, done);
    const double work_typical = bench_median(work_us, done);
    for (int rep = 0; rep < done; rep++) {
        double hidden_us = work_typical + transfer_typical - both_us[rep];
        double share = hidden_us < transfer_typical ? hidden_us / transfer_typical : 1;
        printf("{\"bench\":\"overlap\",\"bytes\":%zu,\"rep\":%d,\"%s\":%.1f}\n", bytes, rep,
               side_names[side], 100 * share);
    }
    fflush(stdout);
    free(both_us);
    free(work_us);
    free(transfer_us);
}

int main(int argc, char **argv)
{
    struct bench_options o = {.repetitions = 15,
                              .warmup = 5,
                              .sizes = {65536, 262144, 1048576, 4194304, 16777216},
                              .nr_sizes = 5};
    bench_parse(argc, argv, "communication hidden behind computation, per cent", &o);
    bench_want_warmup(&o, argv[0], "the amount of work");
    MPI_Init(&argc, &argv);
    const int rank = bench_ranks(2);
    const double rounds_per_us = rank == 0 ? bench_rounds_per_us() : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < o.nr_sizes; i++) {
        char *buf = bench_malloc(o.sizes[i]);
        for (enum side side = RECEIVER; side <= SENDER; side++) {
            if (rank == 0)
                measure(&o, side, o.sizes[i], buf, rounds_per_us);
            else
                for (unsigned n = 0; another_announced(); n++)
                    serve(side, o.sizes[i], buf, n);
        }
        free(buf);
    }
    return bench_finish(rank);
}
