/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A particle code whose load migrates: the ranks are a ring of cells, and a crowd of particles goes
 * round. Those that leave a cell are more the more there are, so their number is not known to the
 * cell that they come to,
 *
 *     MPI_Isend (leaving, both ways)  ->  work on those that stay
 *         ->  MPI_Probe, MPI_Recv (both)  ->  MPI_Waitall
 *
 * and no receive can be posted before its message is there.
 */
#include "proof.h"

enum { BOTH = 2, STEPS_IN_CELL = 4 };

/* Of a cell, by the average. */
static double load(const struct proof *p, int rank, int step)
{
    const int crowd = step / STEPS_IN_CELL % p->ranks;
    const int away = (rank - crowd + p->ranks) % p->ranks;
    return away == 0 ? 1.75 : away == 1 || away == p->ranks - 1 ? 1.25 : 0.75;
}

/* Whole words. */
static size_t leaving(const struct proof *p, int rank, int step)
{
    return (size_t)((double)p->options.sizes[0] * load(p, rank, step)) / 64 * 64;
}

static void receive(struct proof *p, unsigned char *in, int source, int tag, int step)
{
    MPI_Status status;
    int bytes;
    MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if ((size_t)bytes != leaving(p, source, step)) {
        fprintf(stderr, "step %d: %d bytes from rank %d\n", step, bytes, source);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Recv(in, bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bench_verify(in, (size_t)bytes, proof_seed(2 * source + tag, step));
}

int main(int argc, char **argv)
{
    struct proof p =
        proof_begin(&argc, &argv, "particles", 3,
                    (struct bench_options){
                        .repetitions = 36, .compute_ms = 15, .sizes = {2 << 20}, .nr_sizes = 1});
    const int beside[BOTH] = {(p.rank + p.ranks - 1) % p.ranks, (p.rank + 1) % p.ranks};
    unsigned char *in = proof_buffer(2 * p.options.sizes[0]), *out[BOTH];
    for (int i = 0; i < BOTH; i++)
        out[i] = proof_buffer(2 * p.options.sizes[0]);

    for (int step = 0; step < p.options.repetitions; step++) {
        const size_t bytes = leaving(&p, p.rank, step);
        MPI_Request requests[BOTH];
        for (int i = 0; i < BOTH; i++)
            pattern_fill(out[i], bytes, proof_seed(2 * p.rank + i, step));
        for (int i = 0; i < BOTH; i++)
            MPI_Isend(out[i], (int)bytes, MPI_BYTE, beside[i], i, MPI_COMM_WORLD, &requests[i]);
        proof_rest(&p, p.options.compute_ms * load(&p, p.rank, step));
        for (int i = 0; i < BOTH; i++)
            receive(&p, in, beside[i], !i, step);
        MPI_Waitall(BOTH, requests, MPI_STATUSES_IGNORE);
    }
    free(in);
    for (int i = 0; i < BOTH; i++)
        free(out[i]);
    return proof_end(&p);
}
