/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data of all types that can be registered, predefined and derived. MPI itself puts a pattern in it
 * in each iteration, and takes it out in the next, whatever process that is in.
 *
 *   types FILE           until FILE exists
 *   types FILE other     the successor registers 'struct' with another type
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

enum { MOST = 64, GAP = 0x5a };

struct entry {
    const char *name;
    MPI_Datatype type;
    int count;
    int is_derived;
    size_t bytes; /* from the first to the last */
    char *memory, *base;
    int packed; /* bytes */
};

static int rank, entries;
static struct entry table[MOST];

static void add(const char *name, MPI_Datatype type, int count, int is_derived)
{
    CHECK(entries < MOST, "too many types");
    if (type == MPI_DATATYPE_NULL) /* MPI was built without Fortran or C++ */
        return;
    table[entries++] =
        (struct entry){.name = name, .type = type, .count = count, .is_derived = is_derived};
}

static void add_predefined(void)
{
    add("float", MPI_FLOAT, 3, 0);
    add("long double", MPI_LONG_DOUBLE, 5, 0);
    add("bool", MPI_C_BOOL, 3, 0);
    add("wchar", MPI_WCHAR, 9, 0);
    add("float complex", MPI_C_FLOAT_COMPLEX, 7, 0);
    add("double complex", MPI_C_DOUBLE_COMPLEX, 100000, 0);
    add("long double complex", MPI_C_LONG_DOUBLE_COMPLEX, 2, 0);
    add("c++ bool", MPI_CXX_BOOL, 3, 0);
    add("c++ float complex", MPI_CXX_FLOAT_COMPLEX, 3, 0);
    add("c++ double complex", MPI_CXX_DOUBLE_COMPLEX, 3, 0);
    add("c++ long double complex", MPI_CXX_LONG_DOUBLE_COMPLEX, 3, 0);
    add("INTEGER", MPI_INTEGER, 11, 0);
    add("INTEGER8", MPI_INTEGER8, 11, 0);
    add("REAL", MPI_REAL, 11, 0);
    add("DOUBLE PRECISION", MPI_DOUBLE_PRECISION, 11, 0);
    add("COMPLEX", MPI_COMPLEX, 11, 0);
    add("DOUBLE COMPLEX", MPI_DOUBLE_COMPLEX, 11, 0);
    add("LOGICAL", MPI_LOGICAL, 11, 0);
    add("CHARACTER", MPI_CHARACTER, 80, 0);
}

struct particle {
    char kind;
    double at[3];
    int number;
    float weight[2];
};

static void add_derived(int other)
{
    static const int lengths[] = {2, 1, 3}, places[] = {7, 1, 3}, sizes[] = {6, 5, 4},
                     subsizes[] = {3, 2, 2}, starts[] = {1, 2, 1};
    static const MPI_Aint offsets[] = {40, 0, 96};
    MPI_Datatype type, inner, particle;

    MPI_Type_contiguous(4, MPI_DOUBLE, &type);
    add("contiguous", type, 5, 1);
    MPI_Type_vector(3, 2, 5, MPI_INT, &type);
    add("vector", type, 4, 1);
    MPI_Type_create_hvector(3, 2, 44, MPI_INT, &type);
    add("hvector", type, 4, 1);
    MPI_Type_indexed(3, lengths, places, MPI_SHORT, &type);
    add("indexed", type, 4, 1);
    MPI_Type_create_hindexed(3, lengths, offsets, MPI_DOUBLE, &type);
    add("hindexed", type, 4, 1);
    MPI_Type_create_indexed_block(3, 2, places, MPI_FLOAT, &type);
    add("indexed block", type, 4, 1);
    MPI_Type_create_hindexed_block(3, 2, offsets, MPI_FLOAT, &type);
    add("hindexed block", type, 4, 1);

    const int blocks[] = {1, 3, 1, 2};
    const MPI_Aint members[] = {offsetof(struct particle, kind), offsetof(struct particle, at),
                                offsetof(struct particle, number),
                                offsetof(struct particle, weight)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, other ? MPI_FLOAT : MPI_INT, MPI_FLOAT};
    MPI_Type_create_struct(4, blocks, members, types, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(struct particle), &particle);
    MPI_Type_free(&inner);
    add("struct", particle, 100000, 1); /* several segments */
    MPI_Type_vector(3, 1, 2, particle, &type);
    add("vector of structs", type, 10, 1);
    MPI_Type_dup(type, &inner);
    MPI_Type_contiguous(2, inner, &type);
    MPI_Type_free(&inner);
    add("two of them", type, 3, 1);

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    add("subarray", type, 2, 1);
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
    add("subarray of Fortran", type, 2, 1);
    MPI_Type_vector(500, 1, 4, MPI_DOUBLE, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(double), &type);
    MPI_Type_free(&inner);
    add("columns", type, 3, 1); /* their elements are in each other's gaps */
    MPI_Type_create_f90_real(12, MPI_UNDEFINED, &inner);
    MPI_Type_contiguous(2, inner, &type);
    add("selected_real_kind", type, 3, 1);
}

static void allocate(struct entry *e)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Type_get_extent(e->type, &lower, &extent);
    MPI_Type_get_true_extent(e->type, &true_lower, &true_extent);
    e->bytes = (size_t)(true_extent + extent * (e->count - 1));
    e->memory = malloc(e->bytes);
    CHECK(e->memory, "out of memory");
    e->base = e->memory - true_lower;
    if (e->is_derived)
        MPI_Type_commit(&e->type);
    MPI_Pack_size(e->count, e->type, MPI_COMM_SELF, &e->packed);
    /* The gaps are not ours; what is not must not change. */
    memset(e->memory, GAP, e->bytes);
}

/* Valid for each type: what is true of bool, and small for float. */
static void make_pattern(char *packed, int bytes, long i, int which)
{
    for (int k = 0; k < bytes; k++)
        packed[k] = (char)((k * 7 + i * 13 + which * 3 + rank) & 1);
}

static void fill(struct entry *e, long i)
{
    char *packed = malloc((size_t)e->packed);
    int at = 0;
    make_pattern(packed, e->packed, i, (int)(e - table));
    MPI_Unpack(packed, e->packed, &at, e->base, e->count, e->type, MPI_COMM_SELF);
    free(packed);
}

static void verify(const struct entry *e, long i)
{
    char *packed = malloc((size_t)e->packed), *wanted = malloc((size_t)e->packed);
    int at = 0;
    MPI_Pack(e->base, e->count, e->type, packed, e->packed, &at, MPI_COMM_SELF);
    make_pattern(wanted, e->packed, i, (int)(e - table));
    CHECK(memcmp(packed, wanted, (size_t)at) == 0, "iteration %ld: '%s' is wrong", i, e->name);
    free(packed);
    free(wanted);
}

static void mistakes(void)
{
    double x[8];
    MPI_Datatype pair, block, reversed;
    const int sizes[] = {4, 4}, how[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
              arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
    CHECK(zcm_register("null", x, 1, MPI_DATATYPE_NULL) == -EINVAL, "no type");
    CHECK(zcm_register("pair", x, 1, MPI_DOUBLE_INT) == -ENOTSUP, "a pair for MPI_MAXLOC");
    MPI_Type_create_darray(4, 0, 2, sizes, how, arguments, grid, MPI_ORDER_C, MPI_DOUBLE, &block);
    CHECK(zcm_register("darray", x, 1, block) == -ENOTSUP, "darray");
    MPI_Type_contiguous(0, MPI_DOUBLE, &pair);
    CHECK(zcm_register("nothing", x, 1, pair) == -EINVAL, "a type without data");
    MPI_Type_create_resized(MPI_DOUBLE, 0, -8, &reversed);
    CHECK(zcm_register("reversed", x + 7, 8, reversed) == -ENOTSUP, "backwards");
    MPI_Type_free(&pair);
    MPI_Type_free(&block);
    MPI_Type_free(&reversed);
}

int main(int argc, char **argv)
{
    long i = 0;
    int stop = 0;
    const struct timespec little = {.tv_nsec = 2000000};
    if (argc < 2)
        return 2;
    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0)
        return 1;
    MPI_Comm_rank(zcm_world(), &rank);
    mistakes();
    add_predefined();
    add_derived(argc > 2 && zcm_resumed());
    CHECK(zcm_register("i", &i, 1, MPI_LONG) == 0, "i");
    for (int e = 0; e < entries; e++) {
        allocate(&table[e]);
        CHECK(!zcm_resumed() || argc > 2 || zcm_saved_count(table[e].name) == table[e].count,
              "count of '%s' is %lld", table[e].name, zcm_saved_count(table[e].name));
        CHECK(zcm_register(table[e].name, table[e].base, (size_t)table[e].count, table[e].type) ==
                  0,
              "register '%s'", table[e].name);
        if (table[e].is_derived)
            MPI_Type_free(&table[e].type); /* it need not stay */
    }
    {
        struct entry before[MOST];
        memcpy(before, table, sizeof before);
        entries = 0;
        add_predefined();
        add_derived(0);
        for (int e = 0; e < entries; e++) {
            table[e].memory = before[e].memory;
            table[e].base = before[e].base;
            table[e].bytes = before[e].bytes;
            table[e].packed = before[e].packed;
            if (table[e].is_derived)
                MPI_Type_commit(&table[e].type);
        }
    }
    do {
        CHECK(zcm_safe_point() == 0, "safe point");
        for (int e = 0; e < entries; e++) {
            if (i > 0)
                verify(&table[e], i);
            fill(&table[e], i + 1);
        }
        i++;
        stop = rank == 0 && access(argv[1], F_OK) == 0;
        nanosleep(&little, NULL);
        MPI_Bcast(&stop, 1, MPI_INT, 0, zcm_world());
    } while (!stop);
    if (rank == 0)
        printf("all right, %d types\n", entries);
    CHECK(zcm_finalize() == 0, "zcm_finalize");
    MPI_Finalize();
    return 0;
}
