/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks of an MPI program have a file of MPI-IO open. Each round they write a part of it
 * together, another one each by itself, and read what others have written.
 *
 *     shared_file DATA FILE      goes on until FILE is there
 *
 * Each rank prints a line a second, and "rank R ends after N rounds" at its end.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MPIO_INCLUDE

int main(void)
{
    return 3; /* this MPICH was built without MPI-IO */
}

#else

enum { WORDS = 20000, PARTS = 64 };
static int rank, ranks;
static int words[WORDS];

static void check(int right, const char *what, long round)
{
    if (right)
        return;
    fprintf(stderr, "shared_file: rank %d: %s in round %ld\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void done(int code, const char *what, long round)
{
    check(code == MPI_SUCCESS, what, round);
}

static int word_of(int of, long round, int k)
{
    return (int)(of * 1000003 + round * 7919 + k);
}

static void write_part(MPI_File file, long round)
{
    MPI_Request request;
    const MPI_Offset at = (round % PARTS * ranks + rank) * WORDS;
    for (int k = 0; k < WORDS; k++)
        words[k] = word_of(rank, round, k);
    if (round % 3 == 0) {
        done(MPI_File_write_at_all(file, at, words, WORDS, MPI_INT, MPI_STATUS_IGNORE),
             "write_at_all", round);
    } else if (round % 3 == 1) {
        done(MPI_File_seek(file, at, MPI_SEEK_SET), "seek", round);
        done(MPI_File_write(file, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), "write", round);
    } else {
        done(MPI_File_iwrite_at(file, at, words, WORDS, MPI_INT, &request), "iwrite_at", round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    done(MPI_File_sync(file), "sync", round);
}

/** read_part - what the next rank has written in @round */
static void read_part(MPI_File file, long round)
{
    const int of = (rank + 1) % ranks;
    const MPI_Offset at = (round % PARTS * ranks + of) * WORDS;
    memset(words, 0, sizeof words);
    done(MPI_File_read_at(file, at, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), "read_at", round);
    for (int k = 0; k < WORDS; k++)
        check(words[k] == word_of(of, round, k), "other words", round);
}

int main(int argc, char **argv)
{
    int over = 0;
    long round = 0;
    MPI_Info info;
    MPI_File file;
    if (argc < 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    done(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file),
         "open", -1);
    MPI_Info_free(&info);
    done(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), "set_view", -1);
    for (double said = MPI_Wtime(); !over; round++) {
        write_part(file, round);
        MPI_Barrier(MPI_COMM_WORLD);
        read_part(file, round);
        if (round >= PARTS)
            read_part(file, round - PARTS / 2);
        if (rank == 0)
            over = access(argv[2], F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (MPI_Wtime() - said > 1) {
            said = MPI_Wtime();
            printf("rank %d round %ld\n", rank, round);
            fflush(stdout);
        }
    }
    done(MPI_File_close(&file), "close", round);
    printf("rank %d ends after %ld rounds\n", rank, round);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

#endif
