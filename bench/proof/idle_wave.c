/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An idle wave: all ranks of a ring do the same, step by step,
 *
 *     work  ->  MPI_Irecv (from below), MPI_Isend (to above)  ->  MPI_Waitall
 *
 * and one of them is late once, by the length of some steps. The ranks above it wait for their
 * data, one after the other; the ranks below it wait for it to receive, if their MPI holds senders
 * until then. (Afzal, Hager, Wellein, "Propagation and decay of injected one-off delays on
 * clusters", 2019.)
 *
 * Rank 0 prints how long each rank waited in each step, in ms, and what becomes of the wave in both
 * directions: *reach* is the number of ranks to which it came (those that waited for a quarter of
 * the delay in one step), *speed* so many of them in a step, *damping* the share of the delay that
 * is gone with every rank.
 *
 * -k wave    as above (default)
 * -k calm    without the delay
 */
#include "proof.h"

/* The delay, in steps; the first delayed step; the delayed rank is in the middle. */
enum { DELAY = 6, FIRST = 3 };

struct front {
    int reach;
    double speed, damping;
};

/* Away from the middle, in @direction: in which step does each rank wait longest, and how long? */
static struct front front_of(const float *waits, const struct proof *p, int direction,
                             double delay_ms)
{
    const int steps = p->options.repetitions;
    struct front f = {0, 0, 1};
    double last_ms = 0;
    int last_step = FIRST;
    for (int away = 1; away <= p->ranks / 2; away++) {
        const int rank = (p->ranks / 2 + direction * away + p->ranks) % p->ranks;
        int longest = FIRST;
        for (int step = FIRST; step < steps; step++)
            if (waits[rank * steps + step] > waits[rank * steps + longest])
                longest = step;
        const double ms = (double)waits[rank * steps + longest];
        if (ms < delay_ms / 4)
            break;
        f.reach = away;
        last_ms = ms;
        last_step = longest;
    }
    if (f.reach) {
        f.speed = (double)f.reach / (last_step - FIRST + 1);
        f.damping = (1 - last_ms / delay_ms) / f.reach;
    }
    return f;
}

static void print(const struct proof *p, const float *waits, double delay_ms)
{
    const struct front above = front_of(waits, p, 1, delay_ms);
    const struct front below = front_of(waits, p, -1, delay_ms);
    printf("{\"wave\":{\"delay_ms\":%g,\"delayed\":%d,\"step\":%d,\"waits_ms\":[", delay_ms,
           p->ranks / 2, FIRST);
    for (int rank = 0; rank < p->ranks; rank++) {
        printf("%s[", rank ? "," : "");
        for (int step = 0; step < p->options.repetitions; step++)
            printf("%s%.1f", step ? "," : "", (double)waits[rank * p->options.repetitions + step]);
        printf("]");
    }
    printf("]},\"bytes\":%zu,\"reach_above\":%d,\"speed_above\":%.3f,\"damping_above\":%.4f,"
           "\"reach_below\":%d,\"speed_below\":%.3f,\"damping_below\":%.4f}\n",
           p->options.sizes[0], above.reach, above.speed, above.damping, below.reach, below.speed,
           below.damping);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"wave", "calm", NULL};
    struct proof p =
        proof_begin(&argc, &argv, "idle-wave", 4,
                    (struct bench_options){
                        .repetitions = 30, .compute_ms = 50, .sizes = {256 << 10}, .nr_sizes = 1});
    const int calm = bench_kind(&p.options, kinds);
    const size_t bytes = p.options.sizes[0];
    const int steps = p.options.repetitions;
    const int above = (p.rank + 1) % p.ranks, below = (p.rank + p.ranks - 1) % p.ranks;
    const double delay_ms = calm ? 0 : DELAY * p.options.compute_ms;
    unsigned char *in = proof_buffer(bytes), *out = proof_buffer(bytes);
    float *own = bench_malloc((size_t)steps * sizeof *own);
    float *waits = p.rank ? NULL : bench_malloc((size_t)(steps * p.ranks) * sizeof *waits);

    for (int step = 0; step < steps; step++) {
        MPI_Request requests[2];
        pattern_fill(out, bytes, proof_seed(p.rank, step));
        proof_rest(&p,
                   p.options.compute_ms + (step == FIRST && p.rank == p.ranks / 2 ? delay_ms : 0));
        const double begin_us = bench_now_us();
        MPI_Irecv(in, (int)bytes, MPI_BYTE, below, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, (int)bytes, MPI_BYTE, above, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        own[step] = (float)((bench_now_us() - begin_us) / 1e3);
        bench_verify(in, bytes, proof_seed(below, step));
    }
    MPI_Gather(own, steps, MPI_FLOAT, waits, steps, MPI_FLOAT, 0, MPI_COMM_WORLD);
    if (p.rank == 0 && !calm)
        print(&p, waits, delay_ms);
    free(in);
    free(out);
    free(own);
    free(waits);
    return proof_end(&p);
}
