/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank writes its block of a shared file and reads its neighbour's, collectively. */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 100000 };

int main(int argc, char **argv)
{
    static int mine[COUNT], theirs[COUNT];
    int rank, ranks, wrong = 0, all;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COUNT; i++)
        mine[i] = rank * COUNT + i;

    const int neighbour = (rank + 1) % ranks;
    const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, "io.bin", mode, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, (MPI_Offset)rank * COUNT, mine, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, (MPI_Offset)neighbour * COUNT, theirs, COUNT, MPI_INT,
                         MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    for (int i = 0; i < COUNT; i++)
        wrong += theirs[i] != neighbour * COUNT + i;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf(all ? "%d integers are wrong\n" : " No Errors\n", all);
    MPI_Finalize();
    return 0;
}
