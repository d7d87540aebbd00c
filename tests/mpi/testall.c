/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Testall and MPI_Request_get_status know requests of every kind, also many at once.
 *
 * Each rank communicates with itself. MPICH looks at 64 requests at a time: persistent ones are
 * among the first, and plain ones are the last.
 */
#include "check.h"

enum { PERSISTENT = 150, PLAIN = 40, ALL = 2 * (PERSISTENT + PLAIN), ROUNDS = 4, TAG = 1 };

static void test_until_all(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int done = 0;
    while (!done)
        CHECK(MPI_Testall(count, requests, &done, statuses) == MPI_SUCCESS, "MPI_Testall of %d",
              count);
}

/* ---- many ---- */

static void of_many(MPI_Status statuses[])
{
    static int sent[PERSISTENT + PLAIN], got[PERSISTENT + PLAIN];
    static MPI_Request requests[ALL];
    for (int i = 0; i < PERSISTENT; i++) {
        MPI_Recv_init(&got[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &requests[2 * i]);
        MPI_Send_init(&sent[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &requests[2 * i + 1]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PERSISTENT + PLAIN; i++) {
            sent[i] = 1000 * round + i;
            got[i] = -1;
        }
        MPI_Startall(2 * PERSISTENT, requests);
        for (int i = PERSISTENT; i < PERSISTENT + PLAIN; i++) {
            MPI_Irecv(&got[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &requests[2 * i]);
            MPI_Isend(&sent[i], 1, MPI_INT, 0, TAG + i, MPI_COMM_SELF, &requests[2 * i + 1]);
        }
        test_until_all(ALL, requests, statuses);
        for (int i = 0; i < PERSISTENT + PLAIN; i++)
            CHECK(got[i] == sent[i], "%d instead of %d", got[i], sent[i]);
        for (int i = 0; i < ALL; i++)
            CHECK((requests[i] == MPI_REQUEST_NULL) == (i >= 2 * PERSISTENT),
                  "request %d in round %d", i, round);
        for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < ALL; i += 2)
            CHECK(statuses[i].MPI_TAG == TAG + i / 2, "tag %d", statuses[i].MPI_TAG);
    }
    for (int i = 0; i < 2 * PERSISTENT; i++)
        MPI_Request_free(&requests[i]);
}

/* ---- of MPI 4 ---- */

#if MPI_VERSION >= 4

/* Until it is complete, which the next start shows. */
static void expect_status(MPI_Request request, int source, int count)
{
    MPI_Status status;
    int done = 0, got = -1;
    while (!done)
        CHECK(MPI_Request_get_status(request, &done, &status) == MPI_SUCCESS,
              "MPI_Request_get_status");
    MPI_Get_count(&status, MPI_INT, &got);
    CHECK(status.MPI_SOURCE == source && got == count, "source %d, count %d", status.MPI_SOURCE,
          got);
}

static void of_new_kinds(MPI_Status statuses[])
{
    enum { SUM, PSEND, PRECV, KINDS, PARTITIONS = 4 };
    int one = 1, sum = 0, sent[PARTITIONS], got[PARTITIONS];
    MPI_Request requests[KINDS];
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL,
                       &requests[SUM]);
    MPI_Psend_init(sent, PARTITIONS, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[PSEND]);
    MPI_Precv_init(got, PARTITIONS, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[PRECV]);
    for (int round = 0; round < ROUNDS; round++) {
        one = round;
        for (int i = 0; i < PARTITIONS; i++)
            sent[i] = 10 * round + i;
        MPI_Startall(KINDS, requests);
        for (int i = 0; i < PARTITIONS; i++)
            MPI_Pready(i, requests[PSEND]);
        if (round % 2)
            expect_status(requests[PRECV], 0, PARTITIONS);
        test_until_all(KINDS, requests, statuses);
        CHECK(sum == round, "the sum is %d", sum);
        for (int i = 0; i < PARTITIONS; i++)
            CHECK(got[i] == sent[i], "%d instead of %d", got[i], sent[i]);
        expect_status(requests[PRECV], MPI_ANY_SOURCE, 0);
    }
    for (int i = 0; i < KINDS; i++)
        MPI_Request_free(&requests[i]);
}

#else

static void of_new_kinds(MPI_Status statuses[])
{
    (void)statuses;
}

#endif

int main(int argc, char **argv)
{
    static MPI_Status statuses[ALL];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    of_many(statuses);
    of_many(MPI_STATUSES_IGNORE);
    of_new_kinds(statuses);
    of_new_kinds(MPI_STATUSES_IGNORE);
    return check_finish();
}
