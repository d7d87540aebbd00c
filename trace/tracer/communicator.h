/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_COMMUNICATOR_H_INCLUDED
#define ZCT_COMMUNICATOR_H_INCLUDED

#include "tracer.h"

/** A communicator the program has. */
struct zct_comm {
    uint32_t id;
    bool inter;
    int rank;
    int size;
    int peers; /* ranks that a rank here sends to: the remote group's or the own size */
};

/** Looks a communicator up, or makes it known. Under the lock. */
const struct zct_comm *zct_comm_get_locked(MPI_Comm comm);

/** Makes a new communicator known; MPI_COMM_NULL is nothing. */
void zct_comm_created(MPI_Comm comm);

/** Writes the members of what MPI_Comm_idup(@comm) will be; for zct_comm_bind_locked. */
struct zct_comm zct_comm_announce_locked(MPI_Comm comm);
void zct_comm_bind_locked(MPI_Comm comm, struct zct_comm known);

#endif
