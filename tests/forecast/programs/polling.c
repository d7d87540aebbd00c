/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 is held by rank 2, which is late, before it sends to rank 1. That waits for the message as
 * told: probe, or a loop of iprobe, improbe, test or testsome; or it does other things between two
 * looks: busy, or once, after 46 ms: late_work. With each_test, each_testall and each_start it
 * waits for a message of rank 2, too, and also tests the one of both that it has. */
#include "rest.h"

static char small[1024], other[1024];

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

static void look_then_work(void)
{
    int found = 0;
    for (const double end = MPI_Wtime() + 0.046; MPI_Wtime() < end && !found;)
        for (int i = 0; i < 100 && !found; i++)
            MPI_Iprobe(0, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    rest(14);
    while (!found)
        MPI_Iprobe(0, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
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

static void test_each(const char *how)
{
    MPI_Request requests[2];
    int found[2] = {0, 0};
    const int starts = strcmp(how, "each_start") == 0;
    if (starts) {
        MPI_Recv_init(other, sizeof(other), MPI_CHAR, 2, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Start(&requests[0]);
    } else {
        MPI_Irecv(other, sizeof(other), MPI_CHAR, 2, 2, MPI_COMM_WORLD, &requests[0]);
    }
    MPI_Irecv(small, sizeof(small), MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[1]);
    while (!found[0] || !found[1])
        for (int i = 0; i < 2; i++)
            if (strcmp(how, "each_testall") == 0)
                MPI_Testall(1, &requests[i], &found[i], MPI_STATUSES_IGNORE);
            else
                MPI_Test(&requests[i], &found[i], MPI_STATUS_IGNORE);
    if (starts)
        MPI_Request_free(&requests[0]);
}

static void take(const char *how)
{
    if (strcmp(how, "probe") == 0) {
        MPI_Probe(0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(small, sizeof(small), MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(how, "late_work") == 0) {
        look_then_work();
    } else if (strncmp(how, "each", 4) == 0) {
        test_each(how);
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
            if (strncmp(argv[1], "each", 4) == 0)
                MPI_Send(other, sizeof(other), MPI_CHAR, 1, 2, MPI_COMM_WORLD);
            rest(50);
            MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return 0;
}
