/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of the user's run on threads of the user's, whatever thread completes the transfer, and
 * may call MPI. Rank 0 gives up what a transfer still needs and computes; the transfer ends
 * meanwhile.
 *
 *   callbacks communicator FILE  a send holds the last reference to one with an attribute
 *   callbacks datatype FILE      a receive, to a datatype
 *   callbacks leave FILE         an error handler leaves MPI by longjmp(), and messages are
 *                                received nevertheless while its process computes
 *
 * Rank 1 tells by a file that its part is over.
 */
#include "check.h"
#include <setjmp.h>
#include <sys/stat.h>

enum { BYTES = 8 << 20, PATIENCE_MS = 30000, ROUNDS = 5 };

static const char *file;
static int deleted, elsewhere, calls_failed;

static void make_file(void)
{
    FILE *f = fopen(file, "w");
    CHECK(f && fclose(f) == 0, "cannot make %s", file);
}

/* Computes until rank 1 is through, and as long again as the answer to this process may take. */
static void compute(const char *otherwise)
{
    struct stat there;
    for (int waited = 0; stat(file, &there) != 0; waited++) {
        CHECK(waited < PATIENCE_MS, "%s", otherwise);
        check_sleep_ms(1);
    }
    check_sleep_ms(50);
    (void)unlink(file);
}

/* What such functions do: look at attributes, and send and receive. */
static void note_call(void)
{
    int *ub = NULL, flag = 0, out = 42, in = 0;
    deleted++;
    elsewhere += gettid() != getpid();
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &ub, &flag) != MPI_SUCCESS || !flag ||
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        in != 42)
        calls_failed++;
}

static int delete_of_comm(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    CHECK(value == &deleted, "another attribute");
    note_call();
    return MPI_SUCCESS;
}

static int delete_of_type(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)extra;
    CHECK(value == &deleted, "another attribute");
    note_call();
    return MPI_SUCCESS;
}

static void check_deleted(int times)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        CHECK(elsewhere == 0, "%d times on a thread that is not the user's", elsewhere);
        CHECK(deleted == times, "attributes deleted %d times, not %d", deleted, times);
        CHECK(calls_failed == 0, "MPI failed %d times", calls_failed);
    }
}

/* Rank 1 sends to rank 0, which is inside compute() by then. */
static void send_late(unsigned char *buf, int round)
{
    check_sleep_ms(10);
    pattern_fill(buf, BYTES, check_seed + (uint64_t)round);
    MPI_Send(buf, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    make_file();
}

static void communicator(unsigned char *buf)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_of_comm, &key, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (check_rank == 0) {
            MPI_Request request;
            pattern_fill(buf, BYTES, check_seed + (uint64_t)round);
            MPI_Comm_set_attr(comm, key, &deleted);
            MPI_Isend(buf, BYTES, MPI_BYTE, 1, 0, comm, &request);
            MPI_Request_free(&request);
            MPI_Comm_free(&comm);
            compute("a message stayed with its sender");
        } else {
            check_sleep_ms(10);
            MPI_Recv(buf, BYTES, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
            check_content(buf, BYTES, check_seed + (uint64_t)round, "message");
            MPI_Comm_free(&comm);
            make_file();
        }
        check_deleted(round);
    }
    MPI_Comm_free_keyval(&key);
}

static void datatype(unsigned char *buf)
{
    int key;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_of_type, &key, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        MPI_Request request;
        if (check_rank == 0) {
            MPI_Datatype type;
            MPI_Type_contiguous(BYTES, MPI_BYTE, &type);
            MPI_Type_commit(&type);
            MPI_Type_set_attr(type, key, &deleted);
            MPI_Irecv(buf, 1, type, 1, 0, MPI_COMM_WORLD, &request);
            MPI_Type_free(&type);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            compute("a message stayed with its sender");
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check_content(buf, BYTES, check_seed + (uint64_t)round, "message");
        } else {
            send_late(buf, round);
        }
        check_deleted(round);
    }
    MPI_Type_free_keyval(&key);
}

/* ---- error handlers ---- */

static jmp_buf before;

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(before, 1);
}

static void leave_by_error(MPI_Comm comm)
{
    const int none = 0;
    if (setjmp(before) == 0) {
        MPI_Send(&none, 1, MPI_INT, 7, 0, comm);
        CHECK(0, "no error was found");
    }
}

static void leaving(unsigned char *buf)
{
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    for (int round = 1; round <= ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            leave_by_error(comm);
            compute("nothing was received behind an error handler that had left");
            MPI_Recv(buf, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, BYTES, check_seed + (uint64_t)round, "message");
        } else {
            send_late(buf, round);
        }
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks == 2 && argc == 3, "2 ranks and 2 arguments");
    file = argv[2];
    unsigned char *buf = check_malloc(BYTES);
    if (check_rank == 0)
        (void)unlink(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(argv[1], "communicator") == 0)
        communicator(buf);
    else if (strcmp(argv[1], "datatype") == 0)
        datatype(buf);
    else
        leaving(buf);
    free(buf);
    return check_finish();
}
