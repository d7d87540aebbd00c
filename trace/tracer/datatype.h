/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_DATATYPE_H_INCLUDED
#define ZCT_DATATYPE_H_INCLUDED

#include "tracer.h"

/** What is remembered of a datatype. */
struct zct_type {
    int64_t lower; /* true lower bound */
    uint64_t size;
    int64_t extent;
};

/** One of which something is remembered, or NULL. Under the lock. */
static inline const struct zct_type *zct_type_find_locked(MPI_Datatype type)
{
    return zct.types.nr_used ? zct_table_find(&zct.types, ZCT_KEY(type)) : NULL;
}

/** Bytes of @count elements. */
uint64_t zct_bytes(int64_t count, MPI_Datatype type);

/** The same under the lock; another thread may have freed the type. */
uint64_t zct_bytes_locked(int64_t count, MPI_Datatype type);

/** Where the first byte of a buffer of this type is. Under the lock. */
uint64_t zct_address_locked(const void *buffer, MPI_Datatype type);

/** Distance of consecutive elements. Under the lock; another thread may have freed the type. */
int64_t zct_extent_locked(MPI_Datatype type);

/** False: no memory. */
bool zct_datatype_init(void);

#endif
