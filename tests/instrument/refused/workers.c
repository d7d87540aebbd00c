/* SPDX-License-Identifier: BSD-3-Clause */
/* A master gives numbers to workers until all are done: each makes as many iterations as it can. */
#include <mpi.h>
#include <stdio.h>

enum { WORK = 1, RESULT, STOP };

static double work(int number)
{
    double sum = 0;
    for (int i = 1; i < number; i++)
        sum += 1.0 / i;
    return sum;
}

static void master(int size)
{
    double sum = 0, result;
    int next = 0, done = 0;
    MPI_Status status;
    for (int to = 1; to < size; to++, next++)
        MPI_Send(&next, 1, MPI_INT, to, WORK, MPI_COMM_WORLD);
    while (done < 100) {
        MPI_Recv(&result, 1, MPI_DOUBLE, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
        sum += result;
        done++;
        if (next < 100)
            MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, WORK, MPI_COMM_WORLD);
        else
            MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, STOP, MPI_COMM_WORLD);
        next++;
    }
    printf("%.17g\n", sum);
}

static void worker(void)
{
    MPI_Status status;
    int number;
    double result;
    for (;;) {
        MPI_Recv(&number, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP)
            break;
        result = work(number);
        MPI_Send(&result, 1, MPI_DOUBLE, 0, RESULT, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        master(size);
    else
        worker();
    MPI_Finalize();
    return 0;
}
