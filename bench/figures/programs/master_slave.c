/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * master_slave [ROUNDS [SHARES [STEPS]]]: the master/slave program of Singh & Graham's
 * section 4.2. In each round rank 0 distributes its data to the workers in equal
 * shares; the workers smooth them STEPS times, and send their last value to the next
 * one in each step; then they return the result. At least three ranks. Prints the sum
 * of the data, which smoothing does not change, and fails if it has changed.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kShare = 4096 }; /* values */
enum { TASK, BORDER, RESULT };

static void smooth(double *v, int n, double from_left, double *to_right)
{
    double carried = from_left;
    for (int i = 0; i < n; i++) {
        const double half = v[i] / 2;
        v[i] = half + carried;
        carried = half;
    }
    *to_right = carried;
}

static void work(double *share, int shares, int steps, int rank, int workers)
{
    const int next = rank % workers + 1;
    const int previous = (rank + workers - 2) % workers + 1;
    for (int s = 0; s < shares; s++)
        MPI_Recv(share + s * kShare, kShare, MPI_DOUBLE, 0, TASK, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int s = 0; s < steps; s++) {
        double in = 0;
        double out = 0;
        smooth(share, shares * kShare, 0, &out);
        MPI_Sendrecv(&out, 1, MPI_DOUBLE, next, BORDER, &in, 1, MPI_DOUBLE, previous, BORDER,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        share[0] += in;
    }
    MPI_Send(share, shares * kShare, MPI_DOUBLE, 0, RESULT, MPI_COMM_WORLD);
}

static void distribute(double *data, int shares, int workers)
{
    for (int s = 0; s < shares; s++) {
        for (int w = 1; w <= workers; w++)
            MPI_Send(data + ((size_t)(w - 1) * shares + s) * kShare, kShare, MPI_DOUBLE, w, TASK,
                     MPI_COMM_WORLD);
    }
    for (int w = 1; w <= workers; w++)
        MPI_Recv(data + (size_t)(w - 1) * shares * kShare, shares * kShare, MPI_DOUBLE, w, RESULT,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double sum(const double *v, size_t n)
{
    double out = 0;
    for (size_t i = 0; i < n; i++)
        out += v[i];
    return out;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int rounds = argc > 1 ? atoi(argv[1]) : 60;
    const int shares = argc > 2 ? atoi(argv[2]) : 1;
    const int steps = argc > 3 ? atoi(argv[3]) : 2;
    const int workers = size - 1;
    if (workers < 2 || rounds < 1 || shares < 1 || steps < 0) {
        fprintf(stderr, "usage: master_slave [ROUNDS [SHARES [STEPS]]], on three ranks or more\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const size_t mine = (size_t)(rank ? 1 : workers) * (size_t)shares * kShare;
    double *data = calloc(mine, sizeof *data);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; rank == 0 && i < mine; i++)
        data[i] = (double)(i % 97);
    const double before = sum(data, mine);
    for (int r = 0; r < rounds; r++) {
        if (rank == 0)
            distribute(data, shares, workers);
        else
            work(data, shares, steps, rank, workers);
    }
    const double after = sum(data, mine);
    if (rank == 0)
        printf("master_slave: %d rounds, sum %.6f\n", rounds, after);
    free(data);
    if (rank == 0 && fabs(after - before) > 1e-6 * before) {
        fprintf(stderr, "master_slave: the sum was %.6f\n", before);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
