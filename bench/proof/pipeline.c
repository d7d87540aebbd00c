/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wavefront: the ranks are a row, and each takes a block from the rank before it, works on it,
 * and hands it on,
 *
 *     MPI_Recv (from before)  ->  work  ->  MPI_Send (to behind)
 *
 * Blocks are of different work: half of them, drawn by rank and step, take four times as long as
 * the others. A rank that is held in MPI_Send, because the one behind it works on a long block,
 * cannot begin with its next one, although that is there.
 */
#include "proof.h"

int main(int argc, char **argv)
{
    struct proof p =
        proof_begin(&argc, &argv, "pipeline", 2,
                    (struct bench_options){
                        .repetitions = 40, .compute_ms = 30, .sizes = {2 << 20}, .nr_sizes = 1});
    const size_t bytes = p.options.sizes[0];
    unsigned char *block = proof_buffer(bytes);

    for (int step = 0; step < p.options.repetitions; step++) {
        if (p.rank > 0) {
            MPI_Recv(block, (int)bytes, MPI_BYTE, p.rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bench_verify(block, bytes, proof_seed(p.rank - 1, step));
        }
        proof_rest(&p, p.options.compute_ms * (proof_draw(p.rank, step) < 0.5 ? 0.4 : 1.6));
        if (p.rank + 1 < p.ranks) {
            pattern_fill(block, bytes, proof_seed(p.rank, step));
            MPI_Send(block, (int)bytes, MPI_BYTE, p.rank + 1, 0, MPI_COMM_WORLD);
        }
    }
    free(block);
    return proof_end(&p);
}
