/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages from a rank to itself: late, early, probed, persistent. */
#include "check.h"

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 65536, 1 << 20, 16 << 20};
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int round = 0; round < 20; round++) {
        const size_t bytes = sizes[round % 5];
        const uint64_t seed = check_seed + (uint64_t)round;
        struct guarded in = guarded_make(bytes, 16);
        char *out = check_malloc(bytes);
        MPI_Request send, receive;
        pattern_fill(out, bytes, seed);
        int early = round / 5 % 2;
        if (early)
            MPI_Irecv(in.at, (int)bytes, MPI_BYTE, check_rank, 3, MPI_COMM_WORLD, &receive);
        MPI_Isend(out, (int)bytes, MPI_BYTE, check_rank, 3, MPI_COMM_WORLD, &send);
        if (!early) {
            MPI_Status status;
            int count;
            MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK((size_t)count == bytes, "probe says %d bytes, sent were %zu", count, bytes);
            MPI_Irecv(in.at, (int)bytes, MPI_BYTE, check_rank, 3, MPI_COMM_WORLD, &receive);
        }
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        check_content(in.at, bytes, seed, "message to oneself");
        guarded_check(&in, "message to oneself");
        guarded_free(&in);
        free(out);
    }
    return check_finish();
}
