/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An imbalanced stencil: the ranks are a row, and exchange halos with both neighbours,
 *
 *     MPI_Irecv (both)  ->  work  ->  MPI_Send (to before, to behind)  ->  MPI_Waitall
 *
 * How long the work of a step takes is drawn by rank and step, from half of the average to one and
 * a half. A receive is always posted in time. But a rank that is held in its first MPI_Send by a
 * neighbour that still works makes its other neighbour wait, too.
 */
#include "proof.h"

enum { BOTH = 2 };

int main(int argc, char **argv)
{
    struct proof p =
        proof_begin(&argc, &argv, "stencil", 2,
                    (struct bench_options){
                        .repetitions = 30, .compute_ms = 30, .sizes = {1 << 20}, .nr_sizes = 1});
    const size_t bytes = p.options.sizes[0];
    /* MPI_PROC_NULL at the ends. */
    const int beside[BOTH] = {p.rank ? p.rank - 1 : MPI_PROC_NULL,
                              p.rank + 1 < p.ranks ? p.rank + 1 : MPI_PROC_NULL};
    unsigned char *in[BOTH], *out[BOTH];
    for (int i = 0; i < BOTH; i++) {
        in[i] = proof_buffer(bytes);
        out[i] = proof_buffer(bytes);
    }

    for (int step = 0; step < p.options.repetitions; step++) {
        MPI_Request requests[BOTH];
        for (int i = 0; i < BOTH; i++)
            MPI_Irecv(in[i], (int)bytes, MPI_BYTE, beside[i], !i, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < BOTH; i++)
            pattern_fill(out[i], bytes, proof_seed(2 * p.rank + i, step));
        proof_rest(&p, p.options.compute_ms * (0.5 + proof_draw(p.rank, step)));
        for (int i = 0; i < BOTH; i++)
            MPI_Send(out[i], (int)bytes, MPI_BYTE, beside[i], i, MPI_COMM_WORLD);
        MPI_Waitall(BOTH, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < BOTH; i++)
            if (beside[i] != MPI_PROC_NULL)
                bench_verify(in[i], bytes, proof_seed(2 * beside[i] + !i, step));
    }
    for (int i = 0; i < BOTH; i++) {
        free(in[i]);
        free(out[i]);
    }
    return proof_end(&p);
}
