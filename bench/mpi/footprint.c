/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job costs before it does anything: memory of a rank (the largest of
 * all ranks, KiB, as the kernel counts resident pages) and the time in MPI_Init.
 *
 *   before    at the start of main
 *   init      after MPI_Init
 *   touched   after a message to and from every other rank
 *   peak      the most it ever was
 *
 * One JSON line on rank 0.
 */
#include "bench.h"

enum { FIGURES = 5, BEFORE = 0, AFTER_INIT, TOUCHED, PEAK, INIT_MS };

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
    double mine[FIGURES], largest[FIGURES];
    mine[BEFORE] = (double)bench_status_kib("VmRSS:");
    double begin = bench_now_us();
    MPI_Init(&argc, &argv);
    mine[INIT_MS] = (bench_now_us() - begin) / 1000;
    mine[AFTER_INIT] = (double)bench_status_kib("VmRSS:");
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    touch_all(rank, ranks);
    mine[TOUCHED] = (double)bench_status_kib("VmRSS:");
    mine[PEAK] = (double)bench_status_kib("VmHWM:");
    MPI_Reduce(mine, largest, FIGURES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"bench\":\"memory\",\"bytes\":0,\"ranks\":%d,\"before\":%.0f,\"init\":%.0f,"
               "\"touched\":%.0f,\"peak\":%.0f,\"init_time\":%.2f}\n",
               ranks, largest[BEFORE], largest[AFTER_INIT], largest[TOUCHED], largest[PEAK],
               largest[INIT_MS]);
    return bench_finish(rank);
}
