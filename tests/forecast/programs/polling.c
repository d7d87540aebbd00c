/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 is held by rank 2, which is late, before it sends to rank 1. That waits for the message as
 * told: probe, or a loop of iprobe, improbe, test or testsome; or it does other things between two
 * looks: busy. */
#include "rest.h"

static char small[1024];

static void look_for_message(const char *how)
{
    MPI_Message message;
    int found = 0;
    while (!found) {
        if (strcmp(how, "busy") == 0)
            rest(10);
        if (strcmp(how, "improbe") == 0)
            MPI_Improbe(0, 1, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(0, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    if (strcmp(how, "improbe") == 0)
        MPI_Mrecv(small, sizeof(small), MPI_CHAR, &message, MPI_STATUS_IGNORE);
    else
        MPI_Recv(small, sizeof(small), MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_receive(const char *how)
{
    MPI_Request request;
    int found = 0, idx;
    MPI_Irecv(small, sizeof(small), MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    while (!found)
        if (strcmp(how, "test") == 0)
            MPI_Test(&request, &found, MPI_STATUS_IGNORE);
        else
            MPI_Testsome(1, &request, &found, &idx, MPI_STATUSES_IGNORE);
}

static void take(const char *how)
{
    if (strcmp(how, "probe") == 0) {
        MPI_Probe(0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(small, sizeof(small), MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strncmp(how, "test", 4) == 0) {
        test_receive(how);
    } else {
        look_for_message(how);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = touched(BYTES);
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Send(data, BYTES, MPI_BYTE, 2, 1, MPI_COMM_WORLD);
            MPI_Send(small, sizeof(small), MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        } else if (rank == 1) {
            take(argv[1]);
            rest(50);
        } else {
            rest(50);
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
