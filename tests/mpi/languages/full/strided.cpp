/* SPDX-License-Identifier: BSD-3-Clause */
/* A strided datatype on either side, packed by yaksa, from C++. */
#include <cstdio>
#include <mpi.h>
#include <vector>

int main(int argc, char **argv)
{
    constexpr int kBlocks = 4096, kBlock = 100, kStride = 150;
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    MPI_Datatype rows;
    MPI_Type_vector(kBlocks, kBlock, kStride, MPI_DOUBLE, &rows);
    MPI_Type_commit(&rows);
    std::vector<double> data(std::size_t{kBlocks} * kStride, -1);
    if (rank == 0) {
        for (std::size_t i = 0; i < data.size(); i++)
            data[i] = static_cast<double>(i);
        MPI_Send(data.data(), 1, rows, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data.data(), 1, rows, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < data.size(); i++)
            wrong += data[i] != (i % kStride < kBlock ? static_cast<double>(i) : -1);
        std::puts(wrong ? "wrong data" : " No Errors");
    }
    MPI_Type_free(&rows);
    MPI_Finalize();
    return 0;
}
