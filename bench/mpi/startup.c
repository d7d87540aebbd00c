/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shortest MPI program. The driver times mpiexec from start to end; this
 * adds how long rank 0 was in MPI_Init and in MPI_Finalize (ms).
 */
#include "bench.h"

int main(int argc, char **argv)
{
    double begin = bench_now_us();
    MPI_Init(&argc, &argv);
    double init_ms = (bench_now_us() - begin) / 1000;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("{\"bench\":\"startup\",\"bytes\":0,\"init\":%.2f}\n# finalizing\n", init_ms);
        fflush(stdout);
    }
    begin = bench_now_us();
    MPI_Finalize();
    double finalize_ms = (bench_now_us() - begin) / 1000;
    if (rank == 0)
        printf("{\"bench\":\"startup\",\"bytes\":0,\"finalize\":%.2f}\n", finalize_ms);
    return 0;
}
