/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers that cannot be predicted: other addresses, other offsets in
 * the page, other sizes, every time. It costs time, never data.
 */
#include "check.h"

enum { GO = 1, DATA = 2, MESSAGES = 150, POOL = 6 };

static size_t size_of(uint64_t *state)
{
    return 64 * KIB + check_random(state, 2 * MIB);
}

static void receive_one(struct guarded *pool, int i, uint64_t *state)
{
    const size_t bytes = size_of(state);
    const uint64_t seed = check_seed + (uint64_t)i;
    /* Train one address now and then, so that there is something to be wrong about. */
    struct guarded *g = &pool[i % 10 < 4 ? 0 : check_random(state, POOL)];
    if (i % 10 >= 4) {
        guarded_free(g);
        *g = guarded_make(3 * MIB, check_random(state, 4096));
    }
    MPI_Status status;
    int count;
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(4);
    memset(g->at, 0xa5, g->bytes);
    MPI_Recv(g->at, (int)g->bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK((size_t)count == bytes, "%d bytes instead of %zu", count, bytes);
    check_content(g->at, bytes, seed, "unpredictable buffer");
    for (size_t b = bytes; b < g->bytes; b++)
        CHECK(g->at[b] == 0xa5, "byte %zu past the message of %zu bytes changed", b, bytes);
    for (int p = 0; p < POOL; p++)
        guarded_check(&pool[p], "unpredictable buffer");
}

int main(int argc, char **argv)
{
    struct guarded pool[POOL];
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    uint64_t receiver_state = check_seed, sender_state;
    for (int p = 0; p < POOL; p++)
        pool[p] = guarded_make(3 * MIB, 16);
    for (int i = 0; i < MESSAGES; i++) {
        /* Each message's choices start anew: the sender needs only the size. */
        receiver_state = sender_state = check_seed + (uint64_t)i * 31;
        if (check_rank == 0) {
            receive_one(pool, i, &receiver_state);
        } else if (check_rank == 1) {
            const size_t bytes = size_of(&sender_state);
            char *buf = check_malloc(bytes);
            pattern_fill(buf, bytes, check_seed + (uint64_t)i);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
            free(buf);
        }
    }
    for (int p = 0; p < POOL; p++)
        guarded_free(&pool[p]);
    return check_finish();
}
