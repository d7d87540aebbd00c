/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with a file of MPI-IO, on a communicator that it has made of MPI_COMM_WORLD.
 *
 *   mpi_files MODE DATA FILE   ends once FILE exists
 *
 *   closed    the file DATA is closed for a move, and opened again; once half of it is written, the
 *             rest waits for FILE.on
 *   open      it is not; once FILE.go exists it is opened for each row
 *   split     a split collective write is begun before each safe point, and ended behind it, as
 *             long as the file is open; the same
 *   iwrite    so is a write of rank 1 that is not waited for; the same
 *   reads     the initialisation reads DATA, as far as there is one
 *
 * In each iteration the ranks write one row of DATA, in one of several ways, until it is full:
 * "written ROWS rows". From then on they read one in each, and all at the end. What a row has to be
 * depends on its number only.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

#if !defined(MPIO_INCLUDE) && !defined(OPEN_MPI)

int main(void)
{
    fprintf(stderr, "mpi_files: this MPI has no MPI-IO\n");
    return 3;
}

#else

enum { ROWS = 600, WORDS = 500, BYTES = WORDS * (int)sizeof(int) };

static int rank, ranks, here, failed_in_file;
static const char *mode, *path, *stop_file;
static MPI_Comm comm;
static MPI_File file = MPI_FILE_NULL;
static MPI_Errhandler handler;
static int row[WORDS];

#define IO(call)                                                                                   \
    do {                                                                                           \
        const int code_ = (call);                                                                  \
        CHECK(code_ == MPI_SUCCESS, "%s: %d", #call, code_);                                       \
    } while (0)

static int exists(const char *suffix)
{
    char name[4096];
    int there = 0;
    snprintf(name, sizeof name, "%s%s", stop_file, suffix);
    if (rank == 0)
        there = access(name, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return there;
}

/* One more safe point, unless the test has had enough. */
static int goes_on(void)
{
    const struct timespec span = {.tv_nsec = 2000000};
    nanosleep(&span, NULL);
    if (exists(""))
        return 0;
    CHECK(zcm_safe_point() == 0, "safe point");
    return 1;
}

static int word_of(long i, int of, int k)
{
    return (int)(i * 1000003 + of * 7919 + k);
}

static void fill(long i)
{
    for (int k = 0; k < WORDS; k++)
        row[k] = word_of(i, here, k);
}

static void check_part(long i, int of)
{
    for (int k = 0; k < WORDS; k++)
        CHECK(row[k] == word_of(i, of, k), "row %ld of rank %d: word %d is %d", i, of, k, row[k]);
}

static MPI_Offset place(long i, int of)
{
    return ((MPI_Offset)i * ranks + of) * WORDS;
}

static void of_file(MPI_File *of, int *code, ...)
{
    (void)of;
    (void)code;
    failed_in_file++;
}

/* The group of the file is that of the communicator, whose handles are the program's. */
static void check_file(void)
{
    MPI_Group own, whole, theirs;
    int same, first, all, mine, unknown = MPI_ERR_OTHER;
    IO(MPI_File_get_group(file, &own));
    MPI_Comm_group(comm, &theirs);
    MPI_Group_compare(own, theirs, &same);
    MPI_Group_size(own, &all);
    MPI_Group_rank(own, &mine);
    MPI_Comm_group(MPI_COMM_WORLD, &whole);
    MPI_Group_translate_ranks(own, 1, (int[]){0}, whole, &first);
    CHECK(same == MPI_IDENT && all == ranks && mine == here && first == ranks - 1,
          "group of the file: %d, %d ranks, rank %d, first %d", same, all, mine, first);
    MPI_Group_free(&own);
    MPI_Group_free(&theirs);
    MPI_Group_free(&whole);
    const int before = failed_in_file;
    MPI_File_call_errhandler(file, unknown);
    CHECK(failed_in_file == before + 1, "the handler of the file was called %d times",
          failed_in_file - before);
}

static void open_file(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    IO(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    IO(MPI_File_set_errhandler(file, handler));
    IO(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    check_file();
}

static void reopen(MPI_Comm world, void *argument)
{
    (void)world;
    (void)argument;
    open_file();
}

static void close_file(MPI_Comm world, void *argument)
{
    (void)world;
    (void)argument;
    IO(MPI_File_close(&file));
}

/* A row, in the way that its number says; its rank's part, or that of all at once. */
static void write_row(long i)
{
    MPI_Request request;
    MPI_Status status;
    const MPI_Offset at = place(i, here);
    fill(i);
    switch (i % 6) {
    case 0:
        IO(MPI_File_write_at_all(file, at, row, WORDS, MPI_INT, &status));
        break;
    case 1:
        IO(MPI_File_write_at(file, at, row, WORDS, MPI_INT, &status));
        break;
    case 2:
        IO(MPI_File_iwrite_at(file, at, row, WORDS, MPI_INT, &request));
        MPI_Wait(&request, &status);
        break;
    case 3:
        IO(MPI_File_iwrite_at_all(file, at, row, WORDS, MPI_INT, &request));
        MPI_Wait(&request, &status);
        break;
    case 4:
        IO(MPI_File_write_at_all_begin(file, at, row, WORDS, MPI_INT));
        IO(MPI_File_write_at_all_end(file, row, &status));
        break;
    default:
        IO(MPI_File_seek(file, at, MPI_SEEK_SET));
        IO(MPI_File_write(file, row, WORDS, MPI_INT, &status));
    }
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == WORDS, "%d words of row %ld", count, i);
}

/* A rank reads what another has written. */
static void read_row(long i, long turn)
{
    MPI_Request request;
    const int of = (int)((here + turn) % ranks);
    const MPI_Offset at = place(i, of);
    memset(row, 0, sizeof row);
    if (i % 3 == 0) {
        IO(MPI_File_read_at_all(file, at, row, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    } else if (i % 3 == 1) {
        IO(MPI_File_read_at(file, at, row, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    } else {
        IO(MPI_File_iread_at(file, at, row, WORDS, MPI_INT, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_part(i, of);
}

static void synchronise(void)
{
    IO(MPI_File_sync(file));
    MPI_Barrier(comm);
    IO(MPI_File_sync(file));
}

/* A call is under way at the safe point: a row beyond the others. */
static void begin(MPI_Request *request)
{
    fill(ROWS);
    if (!strcmp(mode, "split"))
        IO(MPI_File_write_at_all_begin(file, place(ROWS, here), row, WORDS, MPI_INT));
    else if (!strcmp(mode, "iwrite") && rank == 1)
        IO(MPI_File_iwrite_at(file, place(ROWS, here), row, WORDS, MPI_INT, request));
}

static void end(MPI_Request *request)
{
    if (!strcmp(mode, "split"))
        IO(MPI_File_write_at_all_end(file, row, MPI_STATUS_IGNORE));
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void work(void)
{
    long i = 0;
    int stays_open = 1, goes = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("stays open", &stays_open, 1, MPI_INT);
    if (!strcmp(mode, "closed"))
        zcm_on_rebuild(close_file, reopen, NULL);
    if (!zcm_resumed())
        open_file();
    while (goes) {
        if (stays_open)
            begin(&request);
        goes = goes_on();
        if (stays_open)
            end(&request);
        else
            open_file();
        if (!goes)
            break;
        if (i == ROWS / 2 && !strcmp(mode, "closed") && !exists(".on"))
            continue;
        if (i < ROWS)
            write_row(i);
        else
            read_row(i % ROWS, i / ROWS);
        if (i == ROWS - 1) {
            synchronise();
            if (here == 0)
                printf("written %d rows\n", ROWS);
            fflush(stdout);
        }
        i++;
        if (exists(".go"))
            stays_open = 0;
        if (!stays_open)
            close_file(comm, NULL);
    }
}

/* As a program does that has its input in a file. */
static void reads(void)
{
    long i = 0;
    int input[4] = {0};
    const int wrong = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    if (wrong == MPI_SUCCESS) {
        IO(MPI_File_read_at_all(file, 0, input, 4, MPI_INT, MPI_STATUS_IGNORE));
        IO(MPI_File_close(&file));
    }
    zcm_register("i", &i, 1, MPI_LONG);
    while (goes_on())
        i++;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 4, "usage: mpi_files MODE DATA FILE");
    mode = argv[1];
    path = argv[2];
    stop_file = argv[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(zcm_init(&argc, &argv) == 0, "zcm_init");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &here);
    MPI_File_create_errhandler(of_file, &handler);
    if (!strcmp(mode, "reads")) {
        reads();
    } else {
        work();
        synchronise();
        for (int of = 0; of < ranks; of++)
            for (long i = here; i < ROWS; i += ranks) {
                IO(MPI_File_read_at(file, place(i, of), row, WORDS, MPI_INT, MPI_STATUS_IGNORE));
                check_part(i, of);
            }
        MPI_Barrier(comm);
        IO(MPI_File_set_size(file, (MPI_Offset)ROWS * ranks * BYTES));
        close_file(comm, NULL);
    }
    MPI_Errhandler_free(&handler);
    if (rank == 0)
        printf("all right, %d ranks\n", ranks);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

#endif
