/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with the calls of MPI-1 that later versions have replaced: attributes and handlers of
 * errors of communicators, which are verified in each iteration. Open MPI 4 has those of handlers
 * no more.
 *
 *   mpi_1 FILE       ends once FILE exists
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zcm/zcm.h>

/* They are deprecated, which is why they are tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define CHECK(condition, what)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, what);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int copied, removed, extra, marks[2];
static MPI_Comm of_copy, of_removal;

static int copy_mark(MPI_Comm comm, int key, void *state, void *in, void *out, int *keeps)
{
    CHECK(key != MPI_KEYVAL_INVALID && state == &extra && in == &marks[0], "another copy");
    copied++;
    of_copy = comm;
    *(void **)out = &marks[1];
    *keeps = 1;
    return MPI_SUCCESS;
}

static int remove_mark(MPI_Comm comm, int key, void *value, void *state)
{
    CHECK(key != MPI_KEYVAL_INVALID && state == &extra, "another removal");
    CHECK(value == &marks[0] || value == &marks[1], "another value is removed");
    removed++;
    of_removal = comm;
    return MPI_SUCCESS;
}

#ifndef OPEN_MPI
static int failed;
static MPI_Comm of_error;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    CHECK(*code != MPI_SUCCESS, "no error");
    failed++;
    of_error = *comm;
}

static void set_handler(MPI_Comm comm)
{
    MPI_Errhandler handler, found;
    MPI_Errhandler_create(on_error, &handler);
    MPI_Errhandler_set(comm, handler);
    MPI_Errhandler_get(comm, &found);
    CHECK(found == handler, "another handler");
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
}

static void check_handler(MPI_Comm comm)
{
    int none = 0;
    failed = 0;
    MPI_Send(&none, 1, MPI_INT, 1000, 0, comm);
    CHECK(failed == 1 && of_error == comm, "no error, or of another communicator");
}
#else
static void set_handler(MPI_Comm comm)
{
    (void)comm;
}

static void check_handler(MPI_Comm comm)
{
    (void)comm;
}
#endif

static void *mark_of(MPI_Comm comm, int key)
{
    void *value = NULL;
    int there = 0;
    MPI_Attr_get(comm, key, &value, &there);
    return there ? value : NULL;
}

static void check_attributes(MPI_Comm comm, int key)
{
    MPI_Comm second;
    CHECK(mark_of(comm, key) == &marks[0], "the attribute is not there");
    copied = removed = 0;
    MPI_Comm_dup(comm, &second);
    CHECK(copied == 1 && of_copy == comm, "not copied");
    CHECK(mark_of(second, key) == &marks[1], "another copy");
    const MPI_Comm freed = second;
    MPI_Comm_free(&second);
    CHECK(removed == 1 && of_removal == freed, "not removed");
}

int main(int argc, char **argv)
{
    int key, fixed, over = 0, step = 0, rank;
    MPI_Comm ring;
    MPI_Init(&argc, &argv);
    CHECK(argc == 2 && zcm_init(&argc, &argv) == 0, "cannot start");
    CHECK(zcm_register("step", &step, 1, MPI_INT) == 0, "step");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    MPI_Keyval_create(copy_mark, remove_mark, &key, &extra);
    MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &fixed, NULL);
    CHECK(mark_of(ring, key) == NULL, "an attribute that was not set");
    CHECK(*(int *)mark_of(MPI_COMM_WORLD, MPI_TAG_UB) >= 32767, "no tag");
    MPI_Attr_put(ring, key, &marks[0]);
    MPI_Attr_put(MPI_COMM_WORLD, fixed, &marks[1]);
    set_handler(ring);
    while (!over) {
        CHECK(zcm_safe_point() == 0, "safe point");
        step++;
        check_attributes(ring, key);
        CHECK(mark_of(MPI_COMM_WORLD, fixed) == &marks[1], "the world's attribute is not there");
        check_handler(ring);
        over = rank == 0 && access(argv[1], F_OK) == 0;
        MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    removed = 0;
    MPI_Attr_delete(ring, key);
    CHECK(removed == 1 && of_removal == ring, "not deleted");
    CHECK(mark_of(ring, key) == NULL, "it is there all the same");
    MPI_Keyval_free(&key);
    MPI_Keyval_free(&fixed);
    CHECK(key == MPI_KEYVAL_INVALID && fixed == MPI_KEYVAL_INVALID, "the key is not freed");
    MPI_Comm_free(&ring);
    if (rank == 0)
        puts("all right");
    zcm_finalize();
    MPI_Finalize();
    return 0;
}
