/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatype.h"

#include <errno.h>

static uint64_t size_of(MPI_Datatype type)
{
    int size = 0;
    if (REAL(Type_size)(type, &size) != MPI_SUCCESS)
        return 0;
    if (ZCT_UNLIKELY(size == MPI_UNDEFINED)) {
        MPI_Count large = 0;
        REAL(Type_size_x)(type, &large);
        return (uint64_t)large;
    }
    return (uint64_t)size;
}

static int64_t extent_of(MPI_Datatype type)
{
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    REAL(Type_get_extent)(type, &lower, &extent);
    return extent;
}

/*
 * A message begins at the buffer plus the type's true lower bound: the halves
 * of a halo that two subarray types take from one buffer are different places.
 * Few types have a bound that is not 0; those are in a table, filled when they
 * are committed (a type must be) and consulted only if it is not empty.
 *
 * With MPI_THREAD_MULTIPLE all that are committed are there: another thread may
 * free one while it is in use, and what is not there (MPI's own) cannot be freed.
 */
static void note_type(MPI_Datatype type)
{
    MPI_Aint lower = 0;
    MPI_Aint true_extent = 0;
    if (!zct.active || REAL(Type_get_true_extent)(type, &lower, &true_extent) != MPI_SUCCESS)
        return;
    zct_lock();
    if (lower || zct.threaded) {
        struct zct_type *value = zct_table_insert(&zct.types, ZCT_KEY(type));
        if (value)
            *value = (struct zct_type){lower, size_of(type), extent_of(type)};
        else
            zct.writer.error = ENOMEM;
    } else {
        /* The handle may have been another type's. */
        zct_table_remove(&zct.types, ZCT_KEY(type));
    }
    zct_unlock();
}

int MPI_Type_commit(MPI_Datatype *type)
{
    const int code = REAL(Type_commit)(type);
    if (code == MPI_SUCCESS)
        note_type(*type);
    return code;
}
ZCT_WRAPS(Type_commit)

int MPI_Type_dup(MPI_Datatype type, MPI_Datatype *newtype)
{
    const int code = REAL(Type_dup)(type, newtype);
    if (code == MPI_SUCCESS)
        note_type(*newtype); /* committed if @type is */
    return code;
}
ZCT_WRAPS(Type_dup)

uint64_t zct_bytes(int64_t count, MPI_Datatype type)
{
    return count > 0 ? (uint64_t)count * size_of(type) : 0;
}

uint64_t zct_address_locked(const void *buffer, MPI_Datatype type)
{
    const uint64_t address = (uint64_t)(uintptr_t)buffer;
    const struct zct_type *known = zct_type_find_locked(type);
    return known ? address + (uint64_t)known->lower : address;
}

uint64_t zct_bytes_locked(int64_t count, MPI_Datatype type)
{
    const struct zct_type *known = zct_type_find_locked(type);
    if (!known)
        return zct_bytes(count, type);
    return count > 0 ? (uint64_t)count * known->size : 0;
}

int64_t zct_extent_locked(MPI_Datatype type)
{
    const struct zct_type *known = zct_type_find_locked(type);
    return known ? known->extent : extent_of(type);
}

bool zct_datatype_init(void)
{
    return zct_table_init(&zct.types, sizeof(struct zct_type));
}
