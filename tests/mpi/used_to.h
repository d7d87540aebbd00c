/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of short sends, as of a benchmark, by which the netmod learns that messages may wait. */
#ifndef ZC_USED_TO_H
#define ZC_USED_TO_H

#include "check.h"

/** send_windows - @windows times @length messages of a byte from rank 0 to rank 1, which answers
 * each time with a message of no bytes and @tag */
static inline void send_windows(int windows, int length, int tag)
{
    char *byte = check_malloc((size_t)length);
    MPI_Request *request = check_malloc((size_t)length * sizeof *request);
    memset(byte, 0, (size_t)length);
    for (int n = 0; n < windows; n++) {
        for (int i = 0; i < length; i++)
            if (check_rank == 0)
                MPI_Isend(&byte[i], 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[i]);
            else
                MPI_Irecv(&byte[i], 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[i]);
        MPI_Waitall(length, request, MPI_STATUSES_IGNORE);
        if (check_rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
    free(request);
    free(byte);
}

#endif
