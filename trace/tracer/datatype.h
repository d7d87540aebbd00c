/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_DATATYPE_H_INCLUDED
#define ZCT_DATATYPE_H_INCLUDED

#include "tracer.h"

/** Bytes of @count elements. */
uint64_t zct_bytes(int64_t count, MPI_Datatype type);

/** Where the first byte of a buffer of this type is. Under the lock. */
uint64_t zct_address_locked(const void *buffer, MPI_Datatype type);

/** Distance of consecutive elements. */
int64_t zct_extent(MPI_Datatype type);

#endif
