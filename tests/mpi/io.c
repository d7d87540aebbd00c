/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io WHAT FILE: MPI-IO on a file that all ranks share; every byte is read back and compared.
 *
 *     blocking      each rank writes its blocks, and reads those of the next one
 *     collective    in turns of 4 KiB: the ranks that write the file (aggregators, one on each
 *                   host) get nearly all of it from others, in large messages
 *     nonblocking   several reads and writes at a time, and collective ones
 *     shared        by the file pointer that all ranks share, and in the order of ranks
 *     types         a view of rows and columns, from memory with gaps
 *     big           beyond 4 GiB, in a file with holes
 *     missing       no file is there: an error for all ranks, and they go on
 *     handlers      functions of the program's are called for errors of files
 *     threads       of one rank, each on its blocks of one file, with messages between
 *
 * The file's bytes are those that pattern.h makes of its number of blocks of BLOCK bytes.
 */
#include "check.h"
#include <pthread.h>

#ifndef MPIO_INCLUDE

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    check_skip("this MPICH was built without MPI-IO");
}

#else

enum { BLOCK = 4096, THREADS = 4, TAG = 5 };

static const char *path;

static void succeeded(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    CHECK(code == MPI_SUCCESS, "%s: %s", what, text);
}

#define IO(call) succeeded(call, #call)

/* The words of @blocks blocks from @first on, @stride blocks from one to the next. */
static unsigned char *blocks_of(size_t blocks, size_t first, size_t stride, uint64_t seed)
{
    unsigned char *data = check_malloc(blocks * BLOCK);
    for (size_t i = 0; i < blocks; i++)
        pattern_fill(data + i * BLOCK, BLOCK, seed + first + i * stride);
    return data;
}

static void check_blocks(const unsigned char *data, size_t blocks, size_t first, size_t stride,
                         uint64_t seed, const char *what)
{
    for (size_t i = 0; i < blocks; i++)
        check_content(data + i * BLOCK, BLOCK, seed + first + i * stride, what);
}

static MPI_File opened(MPI_Comm comm, const char *name, MPI_Info info)
{
    MPI_File file;
    IO(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info,
                     &file));
    return file;
}

/* What one rank has written others may read from here on. */
static void written(MPI_File file)
{
    IO(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    IO(MPI_File_sync(file));
}

static void check_count(MPI_Status *status, size_t bytes)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK((size_t)count == bytes, "%d bytes of %zu", count, bytes);
}

static void blocking(void)
{
    enum { COUNT = 700 };
    MPI_File file = opened(MPI_COMM_WORLD, path, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Offset where, size;
    const size_t mine = (size_t)check_rank * COUNT;
    unsigned char *data = blocks_of(COUNT, mine, 1, check_seed);
    IO(MPI_File_seek(file, (MPI_Offset)(mine * BLOCK), MPI_SEEK_SET));
    for (int i = 0; i < COUNT; i += 100) {
        IO(MPI_File_write(file, data + (size_t)i * BLOCK, 100 * BLOCK, MPI_BYTE, &status));
        check_count(&status, (size_t)100 * BLOCK);
    }
    IO(MPI_File_get_position(file, &where));
    CHECK(where == (MPI_Offset)((mine + COUNT) * BLOCK), "the pointer is at %lld",
          (long long)where);
    written(file);
    IO(MPI_File_get_size(file, &size));
    CHECK(size == (MPI_Offset)check_ranks * COUNT * BLOCK, "%lld bytes", (long long)size);
    const size_t theirs = (size_t)((check_rank + 1) % check_ranks) * COUNT;
    memset(data, 0, (size_t)COUNT * BLOCK);
    for (int i = 0; i < COUNT; i++) {
        IO(MPI_File_read_at(file, (MPI_Offset)((theirs + (size_t)i) * BLOCK),
                            data + (size_t)i * BLOCK, BLOCK, MPI_BYTE, &status));
        check_count(&status, BLOCK);
    }
    check_blocks(data, COUNT, theirs, 1, check_seed, "read_at");
    /* There is nothing behind its end. */
    IO(MPI_File_read_at(file, size - 10, data, BLOCK, MPI_BYTE, &status));
    check_count(&status, 10);
    IO(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "it has a handle still");
    free(data);
}

/* Each rank has every check_ranks-th block from its rank on, of @per_turn of them. */
static void view_by_turns(MPI_File file, int per_turn)
{
    MPI_Datatype turn, piece;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)per_turn * BLOCK, &turn);
    MPI_Type_commit(&turn);
    IO(MPI_File_set_view(file, (MPI_Offset)check_rank * BLOCK, MPI_BYTE, turn, "native",
                         MPI_INFO_NULL));
    MPI_Type_free(&turn);
    MPI_Type_free(&piece);
}

static void whole_file(MPI_File file)
{
    IO(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

/* Two-phase: @nodes aggregators, which have @buffer bytes each. */
static MPI_Info two_phase(const char *nodes, const char *buffer)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    MPI_Info_set(info, "cb_nodes", nodes);
    MPI_Info_set(info, "cb_buffer_size", buffer);
    return info;
}

static void collective(void)
{
    enum { COUNT = 2000 };
    const char *all[] = {"1", "2"};
    for (int nodes = 0; nodes < 2; nodes++) {
        MPI_Info info = two_phase(all[nodes], "4194304"), used;
        MPI_File file = opened(MPI_COMM_WORLD, path, info);
        char text[MPI_MAX_INFO_VAL + 1] = "";
        int there;
        IO(MPI_File_get_info(file, &used));
        MPI_Info_get(used, "cb_nodes", MPI_MAX_INFO_VAL, text, &there);
        /* One of a host at most. */
        CHECK(there && atoi(text) >= 1 && atoi(text) <= nodes + 1, "aggregators: %s", text);
        MPI_Info_free(&used);
        /* With a hole in each turn, of what is there before: an aggregator reads what it writes,
         * and is late. */
        const int per_turn = check_ranks + 1;
        unsigned char before[BLOCK];
        memset(before, 0x3c, sizeof before);
        for (int turn = check_rank; turn < COUNT; turn += check_ranks)
            IO(MPI_File_write_at(file, (MPI_Offset)(turn * per_turn + check_ranks) * BLOCK, before,
                                 BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        written(file);
        view_by_turns(file, per_turn);
        for (int round = 0; round < 3; round++) {
            const uint64_t seed = check_seed + (uint64_t)round * 1000003;
            unsigned char *data = blocks_of(COUNT, (size_t)check_rank, (size_t)per_turn, seed);
            MPI_Status status;
            IO(MPI_File_write_at_all(file, 0, data, COUNT * BLOCK, MPI_BYTE, &status));
            check_count(&status, (size_t)COUNT * BLOCK);
            memset(data, 0, (size_t)COUNT * BLOCK);
            written(file);
            IO(MPI_File_read_at_all(file, 0, data, COUNT * BLOCK, MPI_BYTE, &status));
            check_count(&status, (size_t)COUNT * BLOCK);
            check_blocks(data, COUNT, (size_t)check_rank, (size_t)per_turn, seed, "read_at_all");
            /* The whole by each rank on its own: the holes are holes. */
            whole_file(file);
            for (int turn = check_rank; turn < COUNT - 1; turn += 97)
                for (int i = 0; i < per_turn; i++) {
                    unsigned char one[BLOCK];
                    const size_t number = (size_t)turn * (size_t)per_turn + (size_t)i;
                    IO(MPI_File_read_at(file, (MPI_Offset)(number * BLOCK), one, BLOCK, MPI_BYTE,
                                        MPI_STATUS_IGNORE));
                    if (i < check_ranks)
                        check_content(one, BLOCK, seed + number, "block of another rank");
                    else
                        CHECK(memcmp(one, before, BLOCK) == 0, "a hole has been written");
                }
            MPI_Barrier(MPI_COMM_WORLD);
            view_by_turns(file, per_turn);
            /* In two halves: a split collective call. */
            memset(data, 0, (size_t)COUNT * BLOCK);
            IO(MPI_File_read_at_all_begin(file, 0, data, COUNT * BLOCK, MPI_BYTE));
            IO(MPI_File_read_at_all_end(file, data, &status));
            check_blocks(data, COUNT, (size_t)check_rank, (size_t)per_turn, seed, "split");
            free(data);
        }
        MPI_Info_free(&info);
        IO(MPI_File_close(&file));
    }
}

static void nonblocking(void)
{
    enum { COUNT = 1024, PARTS = 8, PART = COUNT / PARTS };
    MPI_Info info = two_phase("1", "1048576");
    MPI_File file = opened(MPI_COMM_WORLD, path, info);
    MPI_Request requests[PARTS + 2];
    MPI_Status statuses[PARTS + 2];
    const int next = (check_rank + 1) % check_ranks,
              before = (check_rank + check_ranks - 1) % check_ranks;
    size_t mine = (size_t)check_rank * COUNT, theirs = (size_t)next * COUNT;
    unsigned char *data = blocks_of(COUNT, mine, 1, check_seed);
    unsigned char *sent = blocks_of(COUNT, mine, 7, check_seed);
    unsigned char *received = check_malloc((size_t)COUNT * BLOCK);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PARTS; i++)
            IO(MPI_File_iwrite_at(file, (MPI_Offset)((mine + (size_t)i * PART) * BLOCK),
                                  data + (size_t)i * PART * BLOCK, PART * BLOCK, MPI_BYTE,
                                  &requests[i]));
        /* Beside messages, in one wait. */
        MPI_Irecv(received, COUNT * BLOCK, MPI_BYTE, before, TAG, MPI_COMM_WORLD, &requests[PARTS]);
        MPI_Isend(sent, COUNT * BLOCK, MPI_BYTE, next, TAG, MPI_COMM_WORLD, &requests[PARTS + 1]);
        MPI_Waitall(PARTS + 2, requests, statuses);
        for (int i = 0; i < PARTS; i++)
            check_count(&statuses[i], (size_t)PART * BLOCK);
        check_blocks(received, COUNT, (size_t)before * COUNT, 7, check_seed, "message");
        written(file);
        unsigned char *read = check_malloc((size_t)COUNT * BLOCK);
        for (int i = 0; i < PARTS; i++)
            IO(MPI_File_iread_at(file, (MPI_Offset)((theirs + (size_t)i * PART) * BLOCK),
                                 read + (size_t)i * PART * BLOCK, PART * BLOCK, MPI_BYTE,
                                 &requests[i]));
        for (int i = 0; i < PARTS; i++) {
            int which;
            MPI_Waitany(PARTS, requests, &which, &statuses[0]);
            check_count(&statuses[0], (size_t)PART * BLOCK);
        }
        check_blocks(read, COUNT, theirs, 1, check_seed, "iread_at");
        MPI_Barrier(MPI_COMM_WORLD);

        /* Collectively, while messages go the same way. */
        view_by_turns(file, check_ranks);
        unsigned char *turns =
            blocks_of(COUNT, (size_t)check_rank, (size_t)check_ranks, check_seed);
        IO(MPI_File_iwrite_at_all(file, 0, turns, COUNT * BLOCK, MPI_BYTE, &requests[0]));
        MPI_Irecv(received, COUNT * BLOCK, MPI_BYTE, before, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(sent, COUNT * BLOCK, MPI_BYTE, next, TAG, MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, statuses);
        check_count(&statuses[0], (size_t)COUNT * BLOCK);
        check_blocks(received, COUNT, (size_t)before * COUNT, 7, check_seed, "message");
        written(file);
        memset(turns, 0, (size_t)COUNT * BLOCK);
        IO(MPI_File_seek(file, 0, MPI_SEEK_SET));
        IO(MPI_File_iread_all(file, turns, COUNT * BLOCK, MPI_BYTE, &requests[0]));
        int done = 0;
        while (!done)
            MPI_Test(&requests[0], &done, &statuses[0]);
        check_count(&statuses[0], (size_t)COUNT * BLOCK);
        check_blocks(turns, COUNT, (size_t)check_rank, (size_t)check_ranks, check_seed,
                     "iread_all");
        MPI_Barrier(MPI_COMM_WORLD);
        whole_file(file);
        free(turns);
        free(read);
    }
    free(data);
    free(sent);
    free(received);
    MPI_Info_free(&info);
    IO(MPI_File_close(&file));
}

static void shared(void)
{
    enum { COUNT = 60, MOST = 64 };
    MPI_File file = opened(MPI_COMM_WORLD, path, MPI_INFO_NULL);
    MPI_Offset where;
    unsigned char one[BLOCK];
    int found[MOST] = {0};
    CHECK(check_ranks <= MOST, "too many ranks");
    /* Each block has its rank and number in it. */
    for (int i = 0; i < COUNT; i++) {
        pattern_fill(one, BLOCK, check_seed + (uint64_t)(check_rank * COUNT + i));
        one[0] = (unsigned char)check_rank;
        one[1] = (unsigned char)i;
        if (i % 2) {
            IO(MPI_File_write_shared(file, one, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        } else {
            MPI_Request request;
            IO(MPI_File_iwrite_shared(file, one, BLOCK, MPI_BYTE, &request));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    written(file);
    IO(MPI_File_get_position_shared(file, &where));
    CHECK(where == (MPI_Offset)check_ranks * COUNT * BLOCK, "the pointer is at %lld",
          (long long)where);
    for (int i = 0; i < check_ranks * COUNT; i++) {
        unsigned char expected[BLOCK];
        IO(MPI_File_read_at(file, (MPI_Offset)i * BLOCK, one, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(one[0] < check_ranks && one[1] == found[one[0]], "block %d is %d of rank %d", i,
              one[1], one[0]);
        found[one[0]]++;
        pattern_fill(expected, BLOCK, check_seed + (uint64_t)(one[0] * COUNT + one[1]));
        expected[0] = one[0];
        expected[1] = one[1];
        CHECK(memcmp(one, expected, BLOCK) == 0, "block %d has other bytes", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    IO(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < 3; round++) {
        const int bytes = (check_rank + 1) * BLOCK;
        unsigned char *mine = check_malloc((size_t)bytes);
        memset(mine, round * 64 + check_rank, (size_t)bytes);
        IO(MPI_File_write_ordered(file, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        free(mine);
    }
    written(file);
    IO(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int round = 0; round < 3; round++) {
        const int bytes = (check_rank + 1) * BLOCK;
        unsigned char *mine = check_malloc((size_t)bytes);
        IO(MPI_File_read_ordered(file, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int i = 0; i < bytes; i++)
            CHECK(mine[i] == round * 64 + check_rank, "ordered: byte %d is %d", i, mine[i]);
        free(mine);
    }
    IO(MPI_File_close(&file));
}

/* Columns of a matrix, from a part of a larger one in memory; and back by rows. */
static void types(void)
{
    enum { ROWS = 513, MARGIN = 3 };
    const int columns = 301 * check_ranks, mine = 301;
    const int sizes[2] = {ROWS, columns}, part[2] = {ROWS, mine}, start[2] = {0, check_rank * mine};
    const int around[2] = {ROWS + 2 * MARGIN, mine + 2 * MARGIN}, inside[2] = {MARGIN, MARGIN};
    const size_t wide = (size_t)mine + 2 * MARGIN, all = (ROWS + 2 * MARGIN) * wide;
    MPI_Datatype in_file, in_memory;
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &in_file);
    MPI_Type_create_subarray(2, around, part, inside, MPI_ORDER_C, MPI_INT, &in_memory);
    MPI_Type_commit(&in_file);
    MPI_Type_commit(&in_memory);
    MPI_Info info = two_phase("2", "262144");
    for (int way = 0; way < 3; way++) {
        MPI_File file = opened(MPI_COMM_WORLD, path, info);
        int *matrix = check_malloc(all * sizeof *matrix);
        for (size_t i = 0; i < all; i++)
            matrix[i] = -1;
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < mine; column++)
                matrix[(size_t)(row + MARGIN) * wide + MARGIN + (size_t)column] =
                    row * columns + start[1] + column;
        IO(MPI_File_set_view(file, 16, MPI_INT, in_file, "native", MPI_INFO_NULL));
        if (way == 0) {
            IO(MPI_File_write_all(file, matrix, 1, in_memory, MPI_STATUS_IGNORE));
        } else if (way == 1) {
            IO(MPI_File_write(file, matrix, 1, in_memory, MPI_STATUS_IGNORE));
        } else {
            MPI_Request request;
            IO(MPI_File_iwrite_all(file, matrix, 1, in_memory, &request));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        written(file);
        for (size_t i = 0; i < all; i++)
            matrix[i] = -1;
        IO(MPI_File_seek(file, 0, MPI_SEEK_SET));
        if (way == 1)
            IO(MPI_File_read(file, matrix, 1, in_memory, MPI_STATUS_IGNORE));
        else
            IO(MPI_File_read_all(file, matrix, 1, in_memory, MPI_STATUS_IGNORE));
        for (int row = -MARGIN; row < ROWS + MARGIN; row++)
            for (int column = -MARGIN; column < mine + MARGIN; column++) {
                const int is_in = row >= 0 && row < ROWS && column >= 0 && column < mine;
                const int found = matrix[(size_t)(row + MARGIN) * wide + (size_t)(column + MARGIN)];
                CHECK(found == (is_in ? row * columns + start[1] + column : -1),
                      "way %d: row %d, column %d: %d", way, row, column, found);
            }
        IO(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        for (int row = check_rank; row < ROWS; row += check_ranks) {
            int *line = check_malloc((size_t)columns * sizeof *line);
            IO(MPI_File_read_at(file, (MPI_Offset)row * columns, line, columns, MPI_INT,
                                MPI_STATUS_IGNORE));
            for (int column = 0; column < columns; column++)
                CHECK(line[column] == row * columns + column, "way %d: row %d, column %d: %d", way,
                      row, column, line[column]);
            free(line);
        }
        free(matrix);
        IO(MPI_File_close(&file));
    }
    MPI_Info_free(&info);
    MPI_Type_free(&in_file);
    MPI_Type_free(&in_memory);
}

static void big(void)
{
    enum { COUNT = 512 };
    const MPI_Offset far[] = {((MPI_Offset)1 << 31) - BLOCK, ((MPI_Offset)1 << 32) - BLOCK * 7,
                              (MPI_Offset)5 << 30};
    MPI_Info info = two_phase("2", "1048576");
    MPI_File file = opened(MPI_COMM_WORLD, path, info);
    MPI_Offset size;
    for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
        const uint64_t seed = check_seed + k * 1000003;
        MPI_Datatype turn, piece;
        MPI_Type_contiguous(BLOCK, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, (MPI_Aint)check_ranks * BLOCK, &turn);
        MPI_Type_commit(&turn);
        IO(MPI_File_set_view(file, far[k] + (MPI_Offset)check_rank * BLOCK, MPI_BYTE, turn,
                             "native", MPI_INFO_NULL));
        MPI_Type_free(&turn);
        MPI_Type_free(&piece);
        unsigned char *data = blocks_of(COUNT, (size_t)check_rank, (size_t)check_ranks, seed);
        IO(MPI_File_write_at_all(file, 0, data, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        written(file);
        whole_file(file);
        IO(MPI_File_get_size(file, &size));
        CHECK(size == far[k] + (MPI_Offset)check_ranks * COUNT * BLOCK, "%lld bytes",
              (long long)size);
        IO(MPI_File_seek(file, far[k] + (MPI_Offset)check_rank * COUNT * BLOCK, MPI_SEEK_SET));
        IO(MPI_File_read(file, data, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        check_blocks(data, COUNT, (size_t)check_rank * COUNT, 1, seed, "far away");
        free(data);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    IO(MPI_File_set_size(file, ((MPI_Offset)3 << 30) + 1));
    IO(MPI_File_get_size(file, &size));
    CHECK(size == ((MPI_Offset)3 << 30) + 1, "%lld bytes", (long long)size);
    MPI_Info_free(&info);
    IO(MPI_File_close(&file));
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void missing(void)
{
    enum { COUNT = 300 };
    MPI_File file = MPI_FILE_NULL;
    /* A message is under way meanwhile. */
    const int next = (check_rank + 1) % check_ranks,
              before = (check_rank + check_ranks - 1) % check_ranks;
    unsigned char *data = blocks_of(COUNT, (size_t)check_rank, 1, check_seed);
    unsigned char *received = check_malloc((size_t)COUNT * BLOCK);
    MPI_Request request;
    MPI_Isend(data, COUNT * BLOCK, MPI_BYTE, next, TAG, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 50; i++) {
        const int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE, "class %d", class_of(code));
    }
    char nowhere[4096];
    snprintf(nowhere, sizeof nowhere, "%s.nowhere/data", path);
    int code = MPI_File_open(MPI_COMM_WORLD, nowhere, MPI_MODE_CREATE | MPI_MODE_RDWR,
                             MPI_INFO_NULL, &file);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE, "class %d", class_of(code));
    code = MPI_File_delete(path, MPI_INFO_NULL);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE, "class %d", class_of(code));
    MPI_Recv(received, COUNT * BLOCK, MPI_BYTE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_blocks(received, COUNT, (size_t)before, 1, check_seed, "message");
    free(received);
    free(data);
    blocking();
}

static int called;
static MPI_File called_for;

static void of_file(MPI_File *file, int *code, ...)
{
    called++;
    called_for = *file;
    /* MPI may be used here. */
    int length, one = 1, all;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(*code, text, &length);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == check_ranks, "the sum is %d", all);
}

static void handlers(void)
{
    MPI_Errhandler mine, found;
    MPI_File file = MPI_FILE_NULL;
    unsigned char data[BLOCK];
    IO(MPI_File_create_errhandler(of_file, &mine));
    IO(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN, "files have another error handler at first");
    IO(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE && called == 1, "class %d, called %d times",
          class_of(code), called);
    IO(MPI_File_open(MPI_COMM_WORLD, path,
                     MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    code = MPI_File_read(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPI_ERR_ACCESS && called == 2 && called_for == file,
          "class %d, called %d times", class_of(code), called);
    IO(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
    CHECK(called == 3, "called %d times", called);
    IO(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    code = MPI_File_read(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPI_ERR_ACCESS && called == 3, "class %d, called %d times",
          class_of(code), called);
    IO(MPI_File_close(&file));
    /* Of files that come and go the handler is not lost. */
    for (int i = 0; i < 3; i++) {
        MPI_File one = opened(MPI_COMM_WORLD, path, MPI_INFO_NULL);
        IO(MPI_File_close(&one));
    }
    MPI_File_create_errhandler(of_file, &found);
    CHECK(found != mine, "another handler has the same handle");
    MPI_Errhandler_free(&found);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_OTHER);
    CHECK(called == 4, "called %d times", called);
    IO(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&mine);
}

struct worker {
    int number;
    MPI_Comm comm;
    MPI_File file; /* all threads of all ranks have it */
};

/* Each writes and reads its own blocks. */
static void *write_and_read(void *argument)
{
    enum { COUNT = 200, ROUNDS = 6 };
    const struct worker *w = argument;
    const int right = (check_rank + 1) % check_ranks;
    const int left = (check_rank + check_ranks - 1) % check_ranks;
    const size_t first = (size_t)(check_rank * THREADS + w->number) * COUNT;
    const size_t of_left = (size_t)(left * THREADS + w->number) * COUNT;
    const MPI_Offset at = (MPI_Offset)(first * BLOCK);
    uint64_t state = check_seed + (uint64_t)(check_rank * THREADS + w->number);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t seed = check_seed + (uint64_t)(w->number * ROUNDS + round) * 1000003;
        unsigned char *data = blocks_of(COUNT, first, 1, seed);
        unsigned char *in = check_malloc((size_t)COUNT * BLOCK);
        MPI_Request request;
        check_sleep_ms((int)check_random(&state, 5));
        IO(MPI_File_write_at(w->file, at, data, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        if (round % 2)
            IO(MPI_File_read_at(w->file, at, in, COUNT * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        else {
            IO(MPI_File_iread_at(w->file, at, in, COUNT * BLOCK, MPI_BYTE, &request));
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        check_blocks(in, COUNT, first, 1, seed, "of a thread");
        /* A message between the file's operations. */
        MPI_Sendrecv(data, COUNT * BLOCK, MPI_BYTE, right, TAG, in, COUNT * BLOCK, MPI_BYTE, left,
                     TAG, w->comm, MPI_STATUS_IGNORE);
        check_blocks(in, COUNT, of_left, 1, seed, "message of a thread");
        free(in);
        free(data);
    }
    return NULL;
}

static void threads(void)
{
    struct worker workers[THREADS];
    pthread_t ids[THREADS];
    MPI_File file = opened(MPI_COMM_WORLD, path, MPI_INFO_NULL);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .file = file};
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&ids[i], NULL, write_and_read, &workers[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        MPI_Comm_free(&workers[i].comm);
    }
    IO(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int level;
    } all[] = {
        {"blocking", blocking, MPI_THREAD_SINGLE},
        {"collective", collective, MPI_THREAD_SINGLE},
        {"nonblocking", nonblocking, MPI_THREAD_SINGLE},
        {"shared", shared, MPI_THREAD_SINGLE},
        {"types", types, MPI_THREAD_SINGLE},
        {"big", big, MPI_THREAD_SINGLE},
        {"missing", missing, MPI_THREAD_SINGLE},
        {"handlers", handlers, MPI_THREAD_SINGLE},
        {"threads", threads, MPI_THREAD_MULTIPLE},
    };
    const char *what = argc > 2 ? argv[1] : "";
    path = argc > 2 ? argv[2] : "";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(what, all[i].name)) {
            check_init(&argc, &argv, all[i].level);
            all[i].run();
            return check_finish();
        }
    fprintf(stderr, "usage: io WHAT FILE\n");
    return 2;
}

#endif
