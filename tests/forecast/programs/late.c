/* SPDX-License-Identifier: BSD-3-Clause */
/* The even ranks send 4 MiB to the odd ones, which rest for so many milliseconds from the moment in
 * which those begin; then the even ranks rest.
 * usage: late MS ROUNDS send|ssend|isend|sendrecv [CODE [landed]]
 *
 * With landed the odd ranks do not rest: they hear, outside of MPI, that the even one's send is
 * over. With a library that holds the sender this does not end. */
#include "rest.h"

int main(int argc, char **argv)
{
    const int ms = argc > 1 ? atoi(argv[1]) : 50;
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const char *how = argc > 3 ? argv[3] : "send";
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int other = rank ^ 1;
    char *data = touched(BYTES);
    char dummy = 0;
    MPI_Request request;
    const int landed = argc > 5 && strcmp(argv[5], "landed") == 0;
    const int fifo = open_fifo(rank / 2);

    for (int i = 0; i < rounds; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank % 2 == 0 && !landed)
            say(fifo);
        if (rank % 2 == 1) {
            hear(fifo);
            if (!landed)
                rest(ms);
            MPI_Recv(data, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (strcmp(how, "ssend") == 0) {
            MPI_Ssend(data, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        } else if (strcmp(how, "isend") == 0) {
            MPI_Isend(data, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (strcmp(how, "sendrecv") == 0) {
            MPI_Sendrecv(data, BYTES, MPI_BYTE, other, 1, &dummy, 1, MPI_BYTE, MPI_PROC_NULL, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(data, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
        if (rank % 2 == 0 && landed)
            say(fifo);
        if (rank % 2 == 0)
            rest(ms);
    }
    if (rank % 2 == 0)
        remove_fifo(rank / 2);
    MPI_Finalize();
    return argc > 4 ? atoi(argv[4]) : 0;
}
