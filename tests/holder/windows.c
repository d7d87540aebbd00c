/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank of an MPI program puts into windows of the others, gets that back and draws numbers; an
 * MPI program that knows nothing of moves.
 *
 *     windows FILE      goes on until FILE is there
 *
 * Each rank prints a line a second, and "rank R ends after N rounds" at its end.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 300000 };
static const int sizes[] = {1, 64, 1000, 8000, 70000, LONGEST};
static int rank, ranks;
static MPI_Win window, held; /* held: MPI_Win_lock_all while the program runs */

/* Of each rank. */
typedef struct {
    int64_t drawn;
    unsigned char bytes[]; /* LONGEST for each rank that puts there */
} memory_t;
static memory_t *memory, *held_memory;

static void check(int right, const char *what, long round)
{
    if (right)
        return;
    fprintf(stderr, "windows: rank %d: %s in round %ld\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static unsigned char content(int from, int to, long round, int i)
{
    return (unsigned char)(from * 31 + to * 17 + round * 7 + i + i / 253);
}

static void check_content(const unsigned char *found, int from, int to, long round, int size)
{
    for (int i = 0; i < size; i++)
        check(found[i] == content(from, to, round, i), "memory has changed", round);
}

static int size_of(long round)
{
    return sizes[round % (long)(sizeof sizes / sizeof *sizes)];
}

static MPI_Aint place_of(int from)
{
    return (MPI_Aint)(sizeof(memory_t) + (size_t)from * LONGEST);
}

/* use - all put to all; @complete: what was begun on @win */
static void use(long round, MPI_Win win, memory_t *own, void (*complete)(MPI_Win win),
                unsigned char *out, unsigned char *in)
{
    const int size = size_of(round);
    for (int to = 0; to < ranks; to++) {
        for (int i = 0; i < size; i++)
            out[(size_t)to * LONGEST + i] = content(rank, to, round, i);
        MPI_Put(out + (size_t)to * LONGEST, size, MPI_BYTE, to, place_of(rank), size, MPI_BYTE,
                win);
    }
    complete(win);
    for (int to = 0; to < ranks; to++)
        MPI_Get(in + (size_t)to * LONGEST, size, MPI_BYTE, to, place_of(rank), size, MPI_BYTE, win);
    complete(win);
    for (int to = 0; to < ranks; to++)
        check_content(in + (size_t)to * LONGEST, rank, to, round, size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (win == held)
        MPI_Win_sync(win);
    for (int from = 0; from < ranks; from++)
        check_content(own->bytes + (size_t)from * LONGEST, from, rank, round, size);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fence(MPI_Win win)
{
    MPI_Win_fence(0, win);
}

static void flush(MPI_Win win)
{
    MPI_Win_flush_all(win);
}

/* draw - a number of rank 0 that no other rank draws */
static void draw(long round)
{
    const int64_t one = 1;
    int64_t drawn = -1, sum = 0;
    MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, 0, MPI_SUM, held);
    MPI_Win_flush(0, held);
    MPI_Allreduce(&drawn, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    check(sum == ranks * (int64_t)round * ranks + ranks * (ranks - 1) / 2,
          "a number is drawn twice", round);
}

static memory_t *make(MPI_Win *win)
{
    memory_t *made;
    MPI_Win_allocate(place_of(ranks), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made, win);
    made->drawn = 0;
    return made;
}

int main(int argc, char **argv)
{
    int over = 0;
    long round = 0;
    if (argc < 2)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *out = malloc((size_t)ranks * LONGEST), *in = malloc((size_t)ranks * LONGEST);
    check(out && in, "there is no memory", round);
    memory = make(&window);
    held_memory = make(&held);
    MPI_Win_lock_all(0, held);
    MPI_Win_fence(0, window);
    for (double said = MPI_Wtime(); !over; round++) {
        use(round, window, memory, fence, out, in);
        use(round, held, held_memory, flush, out, in);
        draw(round);
        if (rank == 0)
            over = access(argv[1], F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (MPI_Wtime() - said > 1) {
            said = MPI_Wtime();
            printf("rank %d round %ld\n", rank, round);
            fflush(stdout);
        }
    }
    MPI_Win_unlock_all(held);
    MPI_Win_free(&held);
    MPI_Win_free(&window);
    printf("rank %d ends after %ld rounds\n", rank, round);
    fflush(stdout);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
