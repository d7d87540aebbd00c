/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partitioned [BYTES]: partitions of BYTES, large ones by default, are made ready in random order:
 * a partition that has arrived is right, and in the end all are.
 */
#include "check.h"

enum { GO = 1, DATA = 2, PARTITIONS = 8, STARTS = 8 };
static size_t part_bytes = 256 * 1024 + 8;

#if MPI_VERSION >= 4

static void make_ready_in_any_order(char *buf, uint64_t seed, uint64_t *state, MPI_Request request)
{
    int order[PARTITIONS];
    for (int i = 0; i < PARTITIONS; i++) {
        int j = (int)check_random(state, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < PARTITIONS; i++) {
        pattern_fill(buf + (size_t)order[i] * part_bytes, part_bytes, seed + (uint64_t)order[i]);
        MPI_Pready(order[i], request);
        if (check_random(state, 3) == 0)
            check_sleep_ms(2);
    }
}

static void take_as_they_arrive(const char *buf, uint64_t seed, MPI_Request request)
{
    int seen[PARTITIONS] = {0}, nr_seen = 0;
    while (nr_seen < PARTITIONS) {
        for (int i = 0; i < PARTITIONS; i++) {
            int arrived = 0;
            if (seen[i])
                continue;
            MPI_Parrived(request, i, &arrived);
            if (!arrived)
                continue;
            check_content(buf + (size_t)i * part_bytes, part_bytes, seed + (uint64_t)i,
                          "arrived partition");
            seen[i] = 1;
            nr_seen++;
        }
    }
}

/* At the border of a domain the neighbour is MPI_PROC_NULL. */
static void with_nobody(void)
{
    enum { SEND, RECEIVE };
    int partitions[] = {2, 3};
    MPI_Request request[2];
    MPI_Status status[2];
    int arrived = 0, count = -1;
    char buf[PARTITIONS] = {0};

    MPI_Psend_init(buf, PARTITIONS, 1, MPI_BYTE, MPI_PROC_NULL, DATA, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request[SEND]);
    MPI_Precv_init(buf, PARTITIONS, 1, MPI_BYTE, MPI_PROC_NULL, DATA, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request[RECEIVE]);
    for (int start = 0; start < STARTS; start++) {
        MPI_Startall(2, request);
        MPI_Pready_range(0, 1, request[SEND]);
        MPI_Pready_list(2, partitions, request[SEND]);
        for (int i = 4; i < PARTITIONS; i++)
            MPI_Pready(i, request[SEND]);
        MPI_Parrived(request[RECEIVE], start, &arrived);
        CHECK(arrived, "partition %d of MPI_PROC_NULL has not arrived", start);
        MPI_Waitall(2, request, status);
        MPI_Get_count(&status[RECEIVE], MPI_BYTE, &count);
        CHECK(status[RECEIVE].MPI_SOURCE == MPI_PROC_NULL &&
                  status[RECEIVE].MPI_TAG == MPI_ANY_TAG && count == 0,
              "a message of MPI_PROC_NULL: source %d, tag %d, %d bytes", status[RECEIVE].MPI_SOURCE,
              status[RECEIVE].MPI_TAG, count);
    }
    MPI_Request_free(&request[SEND]);
    MPI_Request_free(&request[RECEIVE]);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1)
        part_bytes = strtoul(argv[1], NULL, 10);
    with_nobody();
    struct guarded g = guarded_make(PARTITIONS * part_bytes, 16);
    char *buf = (char *)g.at;
    MPI_Request request;
    uint64_t state = check_seed;
    if (check_rank == 0)
        MPI_Precv_init(buf, PARTITIONS, (MPI_Count)part_bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Psend_init(buf, PARTITIONS, (MPI_Count)part_bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (int start = 0; start < STARTS; start++) {
        const uint64_t seed = check_seed + (uint64_t)(start * PARTITIONS);
        if (check_rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            if (start % 2)
                check_sleep_ms(20);
            MPI_Start(&request);
            if (start % 4 < 2)
                take_as_they_arrive(buf, seed, request);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Start(&request);
            make_ready_in_any_order(buf, seed, &state, request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; check_rank == 0 && i < PARTITIONS; i++)
            check_content(buf + (size_t)i * part_bytes, part_bytes, seed + (uint64_t)i,
                          "partition");
        guarded_check(&g, "partitions");
    }
    MPI_Request_free(&request);
    guarded_free(&g);
    return check_finish();
}

#else

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    check_skip("partitioned communication needs MPI 4");
}

#endif
