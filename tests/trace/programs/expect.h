/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_EXPECT_H_INCLUDED
#define ZCT_EXPECT_H_INCLUDED

/*
 * The programs say what their trace must hold: a line per row, in order of
 * posting, into expected.<rank> of the folder EXPECT_DIR. The communicator is
 * given by its members' world ranks, joined by +.
 */

#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *expected;
static int rank, size;
static int nr_collectives; /* calls this rank has made */

static void expect_open(void)
{
    char path[4096];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof(path), "%s/expected.%d", getenv("EXPECT_DIR"), rank);
    expected = fopen(path, "w");
    if (!expected)
        abort();
    setvbuf(expected, NULL, _IOLBF, 0);
}

static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    expect_open();
}

static void end(void)
{
    fclose(expected);
    MPI_Finalize();
}

static void print_members(FILE *to, MPI_Comm comm)
{
    MPI_Group groups[2], world;
    int inter;
    int printed = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &groups[0]);
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        MPI_Comm_remote_group(comm, &groups[1]);
        /* The trace names one side first: that of the smaller ranks. */
        int zero = 0, mine, theirs;
        MPI_Group_translate_ranks(groups[0], 1, &zero, world, &mine);
        MPI_Group_translate_ranks(groups[1], 1, &zero, world, &theirs);
        if (theirs < mine) {
            MPI_Group other = groups[0];
            groups[0] = groups[1];
            groups[1] = other;
        }
    }
    for (int g = 0; g < 1 + inter; g++) {
        int n;
        MPI_Group_size(groups[g], &n);
        for (int i = 0; i < n; i++) {
            int there;
            MPI_Group_translate_ranks(groups[g], 1, &i, world, &there);
            fprintf(to, "%s%d", printed++ ? "+" : "", there);
        }
        MPI_Group_free(&groups[g]);
    }
    MPI_Group_free(&world);
}

/* A row; @source is a world rank. */
static void row(MPI_Comm comm, int source, int tag, size_t bytes, const void *addr,
                const char *kind, int collective)
{
    print_members(expected, comm);
    fprintf(expected, ",%d,%d,%zu,%" PRIxPTR ",%s,%d\n", source, tag, bytes, (uintptr_t)addr, kind,
            collective);
}

static void p2p(MPI_Comm comm, int source, int tag, size_t bytes, const void *addr)
{
    row(comm, source, tag, bytes, addr, "p2p", -1);
}

#endif
