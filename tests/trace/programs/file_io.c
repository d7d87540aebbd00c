/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI-IO sends between the ranks to write a file together is the library's: no rows. */
#include "expect.h"

enum { BLOCKS = 64, BYTES = 1000 };

int main(int argc, char **argv)
{
    char path[4096];
    static char data[BLOCKS * BYTES];
    MPI_File file;
    MPI_Datatype mine;
    begin(&argc, &argv);
    snprintf(path, sizeof(path), "%s/written", getenv("EXPECT_DIR"));
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS)
        abort();
    /* Blocks of the ranks in turn: they are exchanged before they are written. */
    MPI_Type_vector(BLOCKS, BYTES, BYTES * size, MPI_BYTE, &mine);
    MPI_Type_commit(&mine);
    MPI_File_set_view(file, (MPI_Offset)rank * BYTES, MPI_BYTE, mine, "native", MPI_INFO_NULL);
    memset(data, 'a' + rank, sizeof(data));
    if (MPI_File_write_all(file, data, BLOCKS * BYTES, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        abort();
    MPI_File_close(&file);
    MPI_Type_free(&mine);
    end();
    return 0;
}
