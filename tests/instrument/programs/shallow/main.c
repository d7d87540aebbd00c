/* SPDX-License-Identifier: BSD-3-Clause */
/* Shallow-water waves around an island on an unstructured mesh, with any number of processes.
 * Build with "mpicc -std=c11 -O2 *.c -lm -o shallow" and run with "mpiexec -n 4 ./shallow". */
#include "solver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gathers the cells in rank order and digests them in global order; rank 0 has the result. */
static uint64_t digest_state(const struct solver *s, int rank, int size)
{
    const struct mesh *m = s->mesh;
    int *count = SW_NEW(int, size), *offset = SW_NEW(int, size);
    int n_root = rank == 0 ? m->n_global : 0;
    int *gid = SW_NEW(int, n_root);
    double *gathered = SW_NEW(double, N_VAR *n_root), *ordered = SW_NEW(double, N_VAR *n_root);
    uint64_t hash = FNV_SEED;
    SW_MPI(MPI_Gather(&m->n_owned, 1, MPI_INT, count, 1, MPI_INT, 0, s->comm));
    for (int r = 1; r < size; r++)
        offset[r] = offset[r - 1] + count[r - 1];
    SW_MPI(MPI_Gatherv(m->gid, m->n_owned, MPI_INT, gid, count, offset, MPI_INT, 0, s->comm));
    for (int r = 0; r < size; r++) {
        count[r] *= N_VAR;
        offset[r] *= N_VAR;
    }
    SW_MPI(MPI_Gatherv(s->q, N_VAR * m->n_owned, MPI_DOUBLE, gathered, count, offset, MPI_DOUBLE, 0,
                       s->comm));
    for (int i = 0; i < n_root; i++)
        memcpy(&ordered[N_VAR * gid[i]], &gathered[N_VAR * i], N_VAR * sizeof *ordered);
    hash = fnv1a(hash, ordered, N_VAR * (size_t)n_root * sizeof *ordered);
    hash = gauges_digest(s->gauges, hash);
    free(count);
    free(offset);
    free(gid);
    free(gathered);
    free(ordered);
    return hash;
}

int main(int argc, char **argv)
{
    struct config cfg;
    struct solver *solver;
    MPI_Comm comm;
    uint64_t hash;
    double mass = 0.0;
    int rank, size;
    SW_MPI(MPI_Init(&argc, &argv));
    SW_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SW_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SW_MPI(MPI_Comm_rank(comm, &rank));
    SW_MPI(MPI_Comm_size(comm, &size));
    config_load(&cfg, argc, argv, comm);
    log_open(rank, cfg.run.log_level);
    solver = solver_create(&cfg, comm);
    for (int i = 1; i <= cfg.run.n_outputs; i++) {
        advance_until(solver, cfg.run.t_end * i / cfg.run.n_outputs);
        mass = check_mass(solver);
    }
    hash = digest_state(solver, rank, size);
    if (rank == 0)
        printf("%s: %d steps, %d cells, mass %.9g, checksum %016" PRIx64 "\n", cfg.run.title,
               solver->step, solver->mesh->n_global, mass, hash);
    solver_destroy(solver);
    SW_MPI(MPI_Comm_free(&comm));
    SW_MPI(MPI_Finalize());
    return EXIT_SUCCESS;
}
