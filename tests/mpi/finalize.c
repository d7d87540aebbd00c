/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finalize unmatched|flight|traced|quick: MPI_Finalize comes back on every rank
 *   unmatched  with large messages that landed and were never received,
 *   flight     with a large message still on its way,
 *   traced     with one rank under strace(1), where every system call takes longer: of two ranks
 *              that connect to each other in MPI_Finalize the other was gone before this one
 *              had heard that it had received everything, one time in fifteen,
 *   quick      right after start, and after some traffic.
 * Sends left unmatched are not correct MPI; ending cleanly is a promise of
 * ch4:zc, not of every MPI.
 */
#include "check.h"

enum { DATA = 2, MESSAGES = 4 };

static void leave_unmatched(void)
{
    static char buf[MESSAGES][1 << 20];
    if (check_rank == 1) {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Request request;
            int done = 0;
            pattern_fill(buf[i], sizeof buf[i], check_seed + (uint64_t)i);
            MPI_Isend(buf[i], (int)sizeof buf[i], MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
            for (int try = 0; try < 50 && !done; try++) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                check_sleep_ms(1);
            }
            if (!done)
                MPI_Request_free(&request);
        }
    } else {
        int found;
        check_sleep_ms(100);
        MPI_Iprobe(MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

static void leave_in_flight(void)
{
    const size_t bytes = 32 * MIB;
    char *buf = check_malloc(bytes); /* not freed: it may be read until the end */
    memset(buf, 1, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 1) {
        MPI_Request request;
        MPI_Isend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}

static void some_traffic(void)
{
    char *buf = check_malloc(MIB);
    for (int i = 0; i < 3; i++) {
        if (check_rank == 1) {
            pattern_fill(buf, MIB, check_seed + (uint64_t)i);
            MPI_Send(buf, (int)MIB, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        } else {
            check_sleep_ms(5);
            MPI_Recv(buf, (int)MIB, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, MIB, check_seed + (uint64_t)i, "message");
        }
    }
    free(buf);
}

static void trace_rank_0(char **argv)
{
    const char *rank = getenv("PMI_RANK");
    if (!rank || atoi(rank) != 0 || getenv("ZC_TRACED"))
        return;
    setenv("ZC_TRACED", "1", 1);
    execlp("strace", "strace", "-f", "-e", "trace=membarrier,clone3", "-o", "/dev/null", argv[0],
           "traced", (char *)NULL);
    printf("SKIP: no strace\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "traced")) {
        trace_rank_0(argv);
        MPI_Init(&argc, &argv); /* nothing is sent, so that no rank is connected */
        MPI_Finalize();
        return 0;
    }
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const char *how = argc > 1 ? argv[1] : "quick";
    if (!strcmp(how, "unmatched"))
        leave_unmatched();
    else if (!strcmp(how, "flight"))
        leave_in_flight();
    else if (check_seed % 2)
        some_traffic();
    if (check_rank == 0) {
        printf("# finalizing\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
