/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each rank of an MPI program has files open, uses them once a round, and finds in them what it has
 * left there: the place where it reads and writes, which two descriptors share, and that it
 * appends.
 *
 *     files FOLDER FILE      goes on until FILE is there; the files are in FOLDER
 *
 * Each rank prints a line a second, and "rank R ends after N rounds" at its end. Then log-R has a
 * line "rank R round N" for each round, and whatever others have appended.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 1000, ENTRY = sizeof(int64_t) };
static int rank;
static int log_file; /* is written at its end, wherever that is */
static int record;   /* an entry for each round */
static int again;    /* the same, by dup(2) */
static int numbers;  /* are read in a circle */

static void check(int right, const char *what, long round)
{
    if (right)
        return;
    fprintf(stderr, "files: rank %d: %s in round %ld\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static int open_one(const char *folder, const char *name, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d", folder, name, rank);
    const int fd = open(path, flags, 0600);
    check(fd >= 0, "a file cannot be opened", -1);
    return fd;
}

static void open_all(const char *folder)
{
    const int made = open_one(folder, "numbers", O_WRONLY | O_CREAT | O_TRUNC);
    for (int64_t i = 0; i < NUMBERS; i++)
        check(write(made, &i, ENTRY) == ENTRY, "a file cannot be written", -1);
    close(made);
    numbers = open_one(folder, "numbers", O_RDONLY);
    record = open_one(folder, "record", O_RDWR | O_CREAT | O_TRUNC);
    again = dup(record);
    log_file = open_one(folder, "log", O_WRONLY | O_APPEND | O_CREAT | O_TRUNC);
}

static int64_t entry_of(long round)
{
    return (int64_t)rank << 40 | round;
}

static void use_all(long round)
{
    char line[64];
    int64_t got = -1;
    const int64_t entry = entry_of(round);
    const int length = snprintf(line, sizeof line, "rank %d round %ld\n", rank, round);
    check(write(log_file, line, (size_t)length) == length, "a line cannot be appended", round);

    check(write(round % 2 ? again : record, &entry, ENTRY) == ENTRY, "nothing is written", round);
    check(lseek(record, 0, SEEK_CUR) == (round + 1) * ENTRY, "it writes elsewhere", round);
    check(lseek(again, 0, SEEK_CUR) == (round + 1) * ENTRY, "two descriptors have parted", round);
    check(pread(record, &got, ENTRY, round / 2 * ENTRY) == ENTRY && got == entry_of(round / 2),
          "what was written is another", round);

    check(read(numbers, &got, ENTRY) == ENTRY && got == round % NUMBERS, "it reads elsewhere",
          round);
    if (got == NUMBERS - 1)
        lseek(numbers, 0, SEEK_SET);
}

/** check_end - the record has all, and no more; none of it was written elsewhere */
static void check_end(long rounds)
{
    int64_t got;
    struct stat status;
    check(fstat(record, &status) == 0 && status.st_size == rounds * ENTRY,
          "a file has another size", rounds);
    for (long round = 0; round < rounds; round++)
        check(pread(again, &got, ENTRY, round * ENTRY) == ENTRY && got == entry_of(round),
              "the record is another", round);
}

int main(int argc, char **argv)
{
    int over = 0;
    long round = 0;
    if (argc < 3)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    open_all(argv[1]);
    for (double said = MPI_Wtime(); !over; round++) {
        use_all(round);
        if (rank == 0)
            over = access(argv[2], F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (MPI_Wtime() - said > 1) {
            said = MPI_Wtime();
            printf("rank %d round %ld\n", rank, round);
            fflush(stdout);
        }
        usleep(1000); /* or the files become large */
    }
    check_end(round);
    printf("rank %d ends after %ld rounds\n", rank, round);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
