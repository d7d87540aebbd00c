/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accumulates of single integers from all ranks at once, on others' memory and on one's own,
 * in a window that promises what UCX's atomic operations need, and in one that does not.
 */
#include "check.h"

enum { ROUNDS = 200, LOCKED = 30, CELLS = 64 };

/* Of each rank's window. */
enum { TICKET, TICKET_32, XOR, OR, AND, REPLACED, LOCK, GUARDED, FIRST_OF_ROW, REAL = 32 };

static MPI_Win window;
static int64_t *memory;

static MPI_Aint cell(int index)
{
    return (MPI_Aint)index * 8;
}

static void open_window(int promised)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (promised) {
        MPI_Info_set(info, "which_accumulate_ops", "sum,band,bor,bxor,replace,no_op,cswap");
        MPI_Info_set(info, "accumulate_noncontig_dtype", "false");
        MPI_Info_set(info, "accumulate_max_bytes", "64");
    }
    MPI_Win_allocate(CELLS * 8, 1, info, MPI_COMM_WORLD, &memory, &window);
    MPI_Info_free(&info);
    memset(memory, 0, CELLS * 8);
    memory[AND] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
}

static void close_window(void)
{
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Each rank draws numbers at every rank; each number is drawn once. */
static void draw_tickets(void)
{
    const int drawn = ROUNDS * check_ranks;
    const int64_t one = 1;
    const int32_t one_32 = 1;
    for (int target = 0; target < check_ranks; target++) {
        int64_t mine[ROUNDS], *all = check_malloc((size_t)drawn * sizeof *all);
        int32_t mine_32[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Request request;
            switch (i % 3) {
            case 0:
                MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, target, cell(TICKET), MPI_SUM,
                                 window);
                break;
            case 1:
                MPI_Get_accumulate(&one, 1, MPI_INT64_T, &mine[i], 1, MPI_INT64_T, target,
                                   cell(TICKET), 1, MPI_INT64_T, MPI_SUM, window);
                break;
            default:
                MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &mine[i], 1, MPI_INT64_T, target,
                                    cell(TICKET), 1, MPI_INT64_T, MPI_SUM, window, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Fetch_and_op(&one_32, &mine_32[i], MPI_INT32_T, target, cell(TICKET_32) + 4,
                             MPI_SUM, window);
        }
        MPI_Win_flush(target, window);
        MPI_Allgather(mine, ROUNDS, MPI_INT64_T, all, ROUNDS, MPI_INT64_T, MPI_COMM_WORLD);
        qsort(all, (size_t)drawn, sizeof *all, by_value);
        for (int i = 0; i < drawn; i++)
            CHECK(all[i] == i, "ticket %d of rank %d is %lld", i, target, (long long)all[i]);
        int32_t *all_32 = (int32_t *)all;
        MPI_Allgather(mine_32, ROUNDS, MPI_INT32_T, all_32, ROUNDS, MPI_INT32_T, MPI_COMM_WORLD);
        int64_t sum = 0;
        for (int i = 0; i < drawn; i++)
            sum += all_32[i];
        CHECK(sum == (int64_t)drawn * (drawn - 1) / 2, "32-bit tickets sum up to %lld",
              (long long)sum);
        free(all);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[TICKET] == drawn, "%lld tickets drawn", (long long)memory[TICKET]);
    CHECK(((int32_t *)&memory[TICKET_32])[0] == 0, "a neighbour was written");
}

static void set_bits(void)
{
    const int64_t mine = (int64_t)1 << check_rank, others = ~mine;
    for (int target = 0; target < check_ranks; target++) {
        for (int i = 0; i < 2 * ROUNDS + 1; i++)
            MPI_Accumulate(&mine, 1, MPI_INT64_T, target, cell(XOR), 1, MPI_INT64_T, MPI_BXOR,
                           window);
        MPI_Accumulate(&mine, 1, MPI_INT64_T, target, cell(OR), 1, MPI_INT64_T, MPI_BOR, window);
        MPI_Accumulate(&others, 1, MPI_INT64_T, target, cell(AND), 1, MPI_INT64_T, MPI_BAND,
                       window);
        MPI_Request request;
        const int64_t name = 100 + check_rank;
        MPI_Raccumulate(&name, 1, MPI_INT64_T, target, cell(REPLACED), 1, MPI_INT64_T, MPI_REPLACE,
                        window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    const int64_t all = ((int64_t)1 << check_ranks) - 1;
    for (int target = 0; target < check_ranks; target++) {
        const int index[] = {XOR, OR, AND, REPLACED};
        int64_t found[4];
        for (int i = 0; i < 4; i++)
            MPI_Fetch_and_op(NULL, &found[i], MPI_INT64_T, target, cell(index[i]), MPI_NO_OP,
                             window);
        MPI_Win_flush(target, window);
        CHECK(found[0] == all && found[1] == all && found[2] == ~all, "bits are %llx %llx %llx",
              (long long)found[0], (long long)found[1], (long long)found[2]);
        CHECK(found[3] >= 100 && found[3] < 100 + check_ranks, "replaced by %lld",
              (long long)found[3]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A lock made of compare-and-swap guards a number that is read and written plainly. */
static void count_under_lock(void)
{
    const int64_t free_lock = 0, mine = check_rank + 1;
    for (int i = 0; i < LOCKED; i++) {
        int64_t found, value;
        do {
            MPI_Compare_and_swap(&mine, &free_lock, &found, MPI_INT64_T, 0, cell(LOCK), window);
            MPI_Win_flush(0, window);
        } while (found != free_lock);
        MPI_Get(&value, 1, MPI_INT64_T, 0, cell(GUARDED), 1, MPI_INT64_T, window);
        MPI_Win_flush(0, window);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, 0, cell(GUARDED), 1, MPI_INT64_T, window);
        MPI_Win_flush(0, window);
        MPI_Compare_and_swap(&free_lock, &mine, &found, MPI_INT64_T, 0, cell(LOCK), window);
        MPI_Win_flush(0, window);
        CHECK(found == mine, "the lock was rank %lld's", (long long)found - 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(check_rank != 0 || memory[GUARDED] == LOCKED * check_ranks, "counted to %lld",
          (long long)memory[GUARDED]);
}

/* Rows of integers, by basic and by derived types, with the old ones fetched at the end. */
static void add_rows(void)
{
    const int target = (check_rank + 1) % check_ranks;
    int64_t row[8], old[8];
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 8; i++)
        row[i] = i + 1;
    for (int rank = 0; rank < check_ranks; rank++) {
        MPI_Accumulate(row, 8, MPI_INT64_T, rank, cell(FIRST_OF_ROW), 8, MPI_INT64_T, MPI_SUM,
                       window);
        MPI_Accumulate(row, 4, pair, rank, cell(FIRST_OF_ROW), 4, pair, MPI_SUM, window);
    }
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, old, 8, MPI_INT64_T, target, cell(FIRST_OF_ROW), 8,
                        MPI_INT64_T, MPI_NO_OP, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 8; i++)
        CHECK(old[i] == 2 * check_ranks * (i + 1), "element %d is %lld", i, (long long)old[i]);
    MPI_Type_free(&pair);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What UCX does not do, beside what it does. */
static void add_others(void)
{
    const double half = 0.5;
    const int32_t one = 1;
    for (int target = 0; target < check_ranks; target++)
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Accumulate(&half, 1, MPI_DOUBLE, target, cell(REAL), 1, MPI_DOUBLE, MPI_SUM,
                           window);
            MPI_Accumulate(&one, 1, MPI_INT32_T, target, cell(REAL + 2) + 2, 1, MPI_INT32_T,
                           MPI_SUM, window);
        }
    MPI_Accumulate(NULL, 0, MPI_INT64_T, 0, cell(REAL), 0, MPI_INT64_T, MPI_SUM, window);
    MPI_Accumulate(&one, 1, MPI_INT32_T, MPI_PROC_NULL, 0, 1, MPI_INT32_T, MPI_SUM, window);
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    double real;
    int32_t odd;
    memcpy(&real, &memory[REAL], sizeof real);
    memcpy(&odd, (char *)memory + cell(REAL + 2) + 2, sizeof odd);
    CHECK(real == 0.5 * ROUNDS * check_ranks, "sum of halves is %g", real);
    CHECK(odd == ROUNDS * check_ranks, "sum at an odd address is %d", (int)odd);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The same bytes through fences, where no rank is locked. */
static void under_fence(void)
{
    MPI_Info info;
    MPI_Win fenced;
    int64_t *counter;
    const int64_t one = 1;
    MPI_Info_create(&info);
    MPI_Info_set(info, "which_accumulate_ops", "sum,no_op");
    MPI_Info_set(info, "accumulate_noncontig_dtype", "false");
    MPI_Info_set(info, "accumulate_max_bytes", "8");
    MPI_Win_allocate(8, 8, info, MPI_COMM_WORLD, &counter, &fenced);
    MPI_Info_free(&info);
    *counter = 0;
    for (int round = 1; round <= 10; round++) {
        MPI_Win_fence(0, fenced);
        for (int target = 0; target < check_ranks; target++)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, fenced);
        MPI_Win_fence(0, fenced);
        CHECK(*counter == round * check_ranks, "after fence %d: %lld", round, (long long)*counter);
    }
    MPI_Win_free(&fenced);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int promised = 0; promised < 2; promised++) {
        open_window(promised);
        draw_tickets();
        set_bits();
        count_under_lock();
        add_rows();
        add_others();
        close_window();
    }
    under_fence();
    return check_finish();
}
