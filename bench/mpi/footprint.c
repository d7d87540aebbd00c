/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job costs before it does anything: resident memory of a rank in KiB,
 * and the time in MPI_Init in ms.
 *
 *   init        after MPI_Init, the middle of all ranks
 *   touched     after a message to and from every other rank, the middle of all
 *   peak        the most it ever was, the largest of all
 *   init_time   the slowest of all
 *
 * What malloc keeps though it is free is given back first: nothing uses it.
 * One JSON line on rank 0.
 */
#include "bench.h"
#include <malloc.h>

enum { INIT, TOUCHED, PEAK, INIT_TIME, FIGURES };

static double resident_kib(void)
{
    malloc_trim(0);
    return (double)bench_status_kib("VmRSS:");
}

static void touch_all(int rank, int ranks)
{
    uint64_t *in = bench_malloc((size_t)ranks * 8), mine = pattern_mix((uint64_t)rank);
    MPI_Request *request = bench_malloc((size_t)ranks * 2 * sizeof *request);
    int nr_requests = 0;
    for (int peer = 0; peer < ranks; peer++) {
        if (peer == rank)
            continue;
        MPI_Irecv(&in[peer], 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request[nr_requests++]);
        MPI_Isend(&mine, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &request[nr_requests++]);
    }
    MPI_Waitall(nr_requests, request, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < ranks; peer++)
        if (peer != rank && in[peer] != pattern_mix((uint64_t)peer)) {
            fprintf(stderr, "wrong data from rank %d\n", peer);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    free(request);
    free(in);
}

int main(int argc, char **argv)
{
    double mine[FIGURES];
    double begin = bench_now_us();
    MPI_Init(&argc, &argv);
    mine[INIT_TIME] = (bench_now_us() - begin) / 1000;
    mine[INIT] = resident_kib();
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    touch_all(rank, ranks);
    mine[TOUCHED] = resident_kib();
    mine[PEAK] = (double)bench_status_kib("VmHWM:");

    double *all[FIGURES];
    for (int i = 0; i < FIGURES; i++) {
        all[i] = bench_malloc((size_t)ranks * sizeof(double));
        MPI_Gather(&mine[i], 1, MPI_DOUBLE, all[i], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        double init = bench_median(all[INIT], ranks), touched = bench_median(all[TOUCHED], ranks);
        /* Sorted, the largest is the last. */
        bench_median(all[PEAK], ranks);
        bench_median(all[INIT_TIME], ranks);
        printf("{\"bench\":\"memory\",\"bytes\":0,\"ranks\":%d,\"init\":%.0f,\"touched\":%.0f,"
               "\"peak\":%.0f,\"init_time\":%.2f}\n",
               ranks, init, touched, all[PEAK][ranks - 1], all[INIT_TIME][ranks - 1]);
    }
    for (int i = 0; i < FIGURES; i++)
        free(all[i]);
    return bench_finish(rank);
}
