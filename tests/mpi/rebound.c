/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rebound [REPETITIONS [BYTES]]: the standard late receiver, one malloc-ed
 * buffer, the same receive again and again. The data must be right; that it was
 * rebound, and the address foreseen, checks.py reads from the statistics.
 */
#include "check.h"

enum { GO = 1, DATA = 2 };

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int repetitions = argc > 1 ? atoi(argv[1]) : 20;
    const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : MIB;
    char *buf = check_malloc(bytes);
    memset(buf, 0, bytes);
    for (int i = 0; i < repetitions; i++) {
        const uint64_t seed = check_seed + (uint64_t)i;
        if (check_rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            check_sleep_ms(50);
            MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, bytes, seed, "rebound message");
        } else if (check_rank == 1) {
            pattern_fill(buf, bytes, seed);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        }
    }
    free(buf);
    return check_finish();
}
