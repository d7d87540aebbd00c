/* SPDX-License-Identifier: BSD-3-Clause */
/* The address is that of the first byte that is written. */
#include "expect.h"

static double grid[8][8];

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const int next = (rank + 1) % size;
    const int last = (rank + size - 1) % size;
    const int sizes[2] = {8, 8}, part[2] = {8, 1}, at[2] = {0, 7};
    MPI_Datatype column, copy, absolute;
    MPI_Type_create_subarray(2, sizes, part, at, MPI_ORDER_C, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Type_dup(column, &copy);
    MPI_Sendrecv(grid, 8, MPI_DOUBLE, next, 1, grid, 1, column, last, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 1, 64, &grid[0][7]);
    MPI_Sendrecv(grid, 1, copy, next, 2, grid, 1, copy, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 2, 64, &grid[0][7]);

    MPI_Aint there;
    const int one = 2;
    MPI_Get_address(&grid[3][2], &there);
    MPI_Type_create_hindexed(1, &one, &there, MPI_DOUBLE, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Sendrecv(grid, 2, MPI_DOUBLE, next, 3, MPI_BOTTOM, 1, absolute, last, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 3, 16, &grid[3][2]);
    MPI_Type_free(&absolute);
    MPI_Type_free(&copy);
    MPI_Type_free(&column);

    /* A handle that comes back without a bound. */
    MPI_Type_contiguous(3, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Sendrecv(grid, 1, column, next, 4, grid[1], 1, column, last, 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 4, 24, grid[1]);
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Sendrecv_c(grid, 1, column, next, 5, grid[2], 1, column, last, 5, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 5, 24, grid[2]);
    MPI_Irecv_c(grid[3], 8, MPI_DOUBLE, last, 6, MPI_COMM_WORLD, &request);
    p2p(MPI_COMM_WORLD, last, 6, 8, grid[3]);
    MPI_Send_c(grid, 1, MPI_DOUBLE, next, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv(grid, 1, MPI_DOUBLE, next, 7, grid[4], 8, MPI_DOUBLE, last, 7, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* no row: the library does not say what came */
    MPI_Sendrecv(grid, 2, MPI_DOUBLE, next, 7, grid[4], 8, MPI_DOUBLE, last, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    p2p(MPI_COMM_WORLD, last, 7, 16, grid[4]);
    MPI_Allreduce_c(grid, grid[5], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    row(MPI_COMM_WORLD, 0, -1, 8, grid[5], "allreduce", nr_collectives++);
#endif
    end();
    return 0;
}
