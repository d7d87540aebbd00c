/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first that ranks hear of each other is many messages at once, short and long ones, all in
 * all directions, while connections are still being made.
 *
 * first_contact [N]: with at most N descriptors for each rank.
 */
#include "check.h"
#include <sys/resource.h>

enum { SHORT = 1, LONG = 2, BURST = 20 };

static const size_t bytes = 300000;

static uint64_t seed_of(int from, int to)
{
    return check_seed + (uint64_t)from * 1000 + (uint64_t)to;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        const struct rlimit few = {(rlim_t)atoi(argv[1]), (rlim_t)atoi(argv[1])};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "%s descriptors", argv[1]);
    }
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int all = check_ranks, parts = BURST + 1;
    MPI_Request *request = check_malloc(2 * (size_t)(all * parts) * sizeof *request);
    char *out = check_malloc((size_t)all * bytes), *in = check_malloc((size_t)all * bytes);
    int *words = check_malloc((size_t)(all * BURST) * sizeof *words), nr = 0;
    for (int i = 1; i < all; i++) {
        const int to = (check_rank + i) % all;
        pattern_fill(out + (size_t)to * bytes, bytes, seed_of(check_rank, to));
        for (int k = 0; k < BURST; k++)
            MPI_Isend(&check_rank, 1, MPI_INT, to, SHORT, MPI_COMM_WORLD, &request[nr++]);
        MPI_Isend(out + (size_t)to * bytes, (int)bytes, MPI_BYTE, to, LONG, MPI_COMM_WORLD,
                  &request[nr++]);
    }
    for (int i = 1; i < all; i++) {
        const int from = (check_rank + all - i) % all;
        MPI_Irecv(in + (size_t)from * bytes, (int)bytes, MPI_BYTE, from, LONG, MPI_COMM_WORLD,
                  &request[nr++]);
        for (int k = 0; k < BURST; k++)
            MPI_Irecv(&words[from * BURST + k], 1, MPI_INT, from, SHORT, MPI_COMM_WORLD,
                      &request[nr++]);
    }
    MPI_Waitall(nr, request, MPI_STATUSES_IGNORE);
    for (int from = 0; from < all; from++) {
        if (from == check_rank)
            continue;
        check_content(in + (size_t)from * bytes, bytes, seed_of(from, check_rank), "long message");
        for (int k = 0; k < BURST; k++)
            CHECK(words[from * BURST + k] == from, "%d of %d", words[from * BURST + k], from);
    }
    free(words);
    free(in);
    free(out);
    free(request);
    return check_finish();
}
