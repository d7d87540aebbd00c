/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 sends rank 1 eight words at once, which are there long before their receives are posted.
 * The library may have one handle for all eight. Rank 1 then waits 100 ms for rank 2, with all
 * receives in one call: nobody was held, and no transfer was waited for. With an argument several
 * threads may call MPI, of which one does.
 */
#include "rest.h"

enum { WORDS = 8, ROUNDS = 5, TAG = 1 };

int main(int argc, char **argv)
{
    int rank, provided, fifo = -1, late_fifo = -1, words[WORDS + 1] = {0};
    MPI_Request requests[WORDS + 1];
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 2)
        fifo = open_fifo(0);
    if (rank > 0)
        late_fifo = open_fifo(1);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            for (int i = 0; i < WORDS; i++)
                MPI_Isend(&words[i], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(WORDS, requests, MPI_STATUSES_IGNORE);
            say(fifo);
        } else if (rank == 1) {
            hear(fifo);
            rest(50);
            for (int i = 0; i < WORDS; i++)
                MPI_Irecv(&words[i], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[i]);
            MPI_Irecv(&words[WORDS], 1, MPI_INT, 2, TAG, MPI_COMM_WORLD, &requests[WORDS]);
            say(late_fifo);
            MPI_Waitall(WORDS + 1, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 2) {
            hear(late_fifo);
            rest(100);
            MPI_Send(&words[WORDS], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        }
    }
    if (rank == 1) {
        remove_fifo(0);
        remove_fifo(1);
    }
    MPI_Finalize();
    return 0;
}
