/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window connects no rank over the network that is not used: making one takes no connection that
 * its collective steps alone would not make. A rank that is used is reached, then or much later, by
 * puts, gets and accumulates, in any order and from all sides.
 */
#include "counter.h"

enum { SLOTS = 64 };

static struct counter endpoints;
static int64_t *slots;
static MPI_Win window;

/* What making, and fencing, a window takes by itself. */
static void collective_steps(void)
{
    char *all = check_malloc((size_t)check_ranks * 4096);
    for (int i = 0; i < 3; i++) {
        int counts[check_ranks], starts[check_ranks], sum = 1;
        memset(all, 0, (size_t)check_ranks * 4096);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, 24, MPI_BYTE, MPI_COMM_WORLD);
        for (int rank = 0; rank < check_ranks; rank++) {
            counts[rank] = 50 + i;
            starts[rank] = rank * 100;
        }
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm dup;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        MPI_Barrier(dup);
        MPI_Comm_free(&dup);
    }
    free(all);
}

static int64_t value_of(int origin, int target)
{
    return (int64_t)(check_seed % 1000003) + 10000 * origin + 100 * target;
}

/* Every rank writes to, and reads from, all others, each beginning with another. */
static void use_all(void)
{
    int64_t values[SLOTS], got[SLOTS];
    const int64_t one = 1;
    MPI_Win_fence(0, window);
    for (int i = 1; i < check_ranks; i++) {
        const int target = (check_rank + i) % check_ranks;
        values[target] = value_of(check_rank, target);
        MPI_Put(&values[target], 1, MPI_INT64_T, target, check_rank, 1, MPI_INT64_T, window);
    }
    MPI_Win_fence(0, window);
    for (int origin = 0; origin < check_ranks; origin++)
        CHECK(origin == check_rank || slots[origin] == value_of(origin, check_rank),
              "%lld put by %d", (long long)slots[origin], origin);
    MPI_Win_fence(0, window);
    for (int i = 1; i < check_ranks; i++) {
        const int target = (check_rank + i) % check_ranks;
        MPI_Get(&got[target], 1, MPI_INT64_T, target, check_rank, 1, MPI_INT64_T, window);
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, SLOTS - 1, 1, MPI_INT64_T, MPI_SUM, window);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    for (int target = 0; target < check_ranks; target++)
        CHECK(target == check_rank || got[target] == value_of(check_rank, target),
              "%lld got from %d", (long long)got[target], target);
    CHECK(slots[SLOTS - 1] == check_ranks - 1, "the sum is %lld", (long long)slots[SLOTS - 1]);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks < SLOTS, "at most %d ranks", SLOTS - 1);
    endpoints = counter_open("endpoints");
    collective_steps();
    const unsigned long long before = counter_read(&endpoints);
    CHECK(before < (unsigned long long)check_ranks - 1,
          "%llu connections already: these ranks are too few to tell", before);
    /* Far ones are what is counted: of a host, memory is shared at once. */
    MPI_Comm host;
    int near;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &near);
    MPI_Comm_free(&host);
    const unsigned long long split = counter_read(&endpoints);

    MPI_Win_allocate(SLOTS * sizeof *slots, sizeof *slots, MPI_INFO_NULL, MPI_COMM_WORLD, &slots,
                     &window);
    memset(slots, 0, SLOTS * sizeof *slots);
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned long long after = counter_read(&endpoints);
    CHECK(after <= split + (unsigned long long)near - 1,
          "the window has made %llu connections, with %d ranks on this host", after - split, near);
    use_all();
    CHECK(counter_read(&endpoints) >= (unsigned long long)check_ranks - 1,
          "%llu connections after all have been used", counter_read(&endpoints));
    MPI_Win_free(&window);
    counter_close(&endpoints);
    return check_finish();
}
