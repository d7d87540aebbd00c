/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A master with bursts of results: the workers work for the same time and send their results, all
 * at once, with MPI_Send. The master takes them as they come and works on each for a while,
 *
 *     master:   MPI_Recv (from any rank)  ->  work on the result  ->  ...
 *     workers:  work  ->  MPI_Send  ->  work  ->  ...
 *
 * The work of the master on the results of all workers takes as long as that of a worker on one. A
 * worker whose result the master has not come to is held in MPI_Send meanwhile.
 */
#include "proof.h"

enum { RESULT = 1 };

static void master(struct proof *p, unsigned char *result)
{
    const int workers = p->ranks - 1;
    const size_t bytes = p->options.sizes[0];
    int *steps = bench_malloc((size_t)p->ranks * sizeof *steps);
    memset(steps, 0, (size_t)p->ranks * sizeof *steps);
    for (int i = 0; i < workers * p->options.repetitions; i++) {
        MPI_Status status;
        MPI_Recv(result, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
        bench_verify(result, bytes, proof_seed(status.MPI_SOURCE, steps[status.MPI_SOURCE]++));
        proof_rest(p, p->options.compute_ms / workers);
    }
    free(steps);
}

static void worker(struct proof *p, unsigned char *result)
{
    const size_t bytes = p->options.sizes[0];
    for (int step = 0; step < p->options.repetitions; step++) {
        pattern_fill(result, bytes, proof_seed(p->rank, step));
        proof_rest(p, p->options.compute_ms);
        MPI_Send(result, (int)bytes, MPI_BYTE, 0, RESULT, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    struct proof p =
        proof_begin(&argc, &argv, "master", 3,
                    (struct bench_options){
                        .repetitions = 15, .compute_ms = 100, .sizes = {1 << 20}, .nr_sizes = 1});
    unsigned char *result = proof_buffer(p.options.sizes[0]);
    if (p.rank == 0)
        master(&p, result);
    else
        worker(&p, result);
    free(result);
    return proof_end(&p);
}
