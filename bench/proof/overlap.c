/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * False overlap of communication and computation, after a pattern of the POP Centre of Excellence:
 *
 *     MPI_Irecv, MPI_Isend (both neighbours of a ring)  ->  compute  ->  MPI_Waitall
 *
 * The source says that the transfer goes on behind the work. With an MPI that makes progress in its
 * calls only, it begins in MPI_Waitall. Phases are imbalanced: in each step another rank has half
 * as much work again as the others.
 *
 * -k plain   as above (default)
 * -k edited  the published cure by hand: the work is cut, and MPI_Testall called between its parts
 */
#include "proof.h"

enum { PARTS = 10, BOTH = 2 };

static void work(struct proof *p, double ms, MPI_Request *requests, int edited)
{
    if (!edited) {
        proof_rest(p, ms);
        return;
    }
    for (int i = 0; i < PARTS; i++) {
        int done;
        proof_rest(p, ms / PARTS);
        MPI_Testall(2 * BOTH, requests, &done, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"plain", "edited", NULL};
    struct proof p =
        proof_begin(&argc, &argv, "overlap", 2,
                    (struct bench_options){
                        .repetitions = 40, .compute_ms = 10, .sizes = {2 << 20}, .nr_sizes = 1});
    const int edited = bench_kind(&p.options, kinds);
    const size_t bytes = p.options.sizes[0];
    const int beside[BOTH] = {(p.rank + p.ranks - 1) % p.ranks, (p.rank + 1) % p.ranks};
    unsigned char *in[BOTH], *out[BOTH];
    for (int i = 0; i < BOTH; i++) {
        in[i] = proof_buffer(bytes);
        out[i] = proof_buffer(bytes);
    }

    for (int step = 0; step < p.options.repetitions; step++) {
        MPI_Request requests[2 * BOTH];
        for (int i = 0; i < BOTH; i++)
            pattern_fill(out[i], bytes, proof_seed(2 * p.rank + i, step));
        for (int i = 0; i < BOTH; i++)
            MPI_Irecv(in[i], (int)bytes, MPI_BYTE, beside[i], !i, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < BOTH; i++)
            MPI_Isend(out[i], (int)bytes, MPI_BYTE, beside[i], i, MPI_COMM_WORLD,
                      &requests[BOTH + i]);
        work(&p, p.options.compute_ms * (step % p.ranks == p.rank ? 1.5 : 1), requests, edited);
        MPI_Waitall(2 * BOTH, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < BOTH; i++)
            bench_verify(in[i], bytes, proof_seed(2 * beside[i] + !i, step));
    }
    for (int i = 0; i < BOTH; i++) {
        free(in[i]);
        free(out[i]);
    }
    return proof_end(&p);
}
