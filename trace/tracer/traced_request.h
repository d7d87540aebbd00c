/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_TRACED_REQUEST_H_INCLUDED
#define ZCT_TRACED_REQUEST_H_INCLUDED

#include "communicator.h"

enum zct_request_kind {
    ZCT_NOT_OURS,        /* e.g. a file's: nothing to say when it completes */
    ZCT_REQUEST_SEND,    /* persistent; if calls are recorded, any */
    ZCT_REQUEST_RECEIVE, /* persistent or not */
    ZCT_REQUEST_COLLECTIVE,
    ZCT_REQUEST_DUP, /* MPI_Comm_idup */
};

/** A request the program holds. Copied with every call: no larger than a cache line. */
struct zct_request {
    uint8_t kind; /* enum zct_request_kind */
    bool persistent;
    bool active;
    bool cancelled;   /* MPI_Cancel was called; it may still have completed */
    bool silent;      /* its status will not say what came */
    bool synchronous; /* send */
    uint32_t site;    /* where it was posted */
    uint32_t comm;
    uint64_t order; /* tells requests with one handle apart; of all but receives: their number */
    union {
        struct {          /* send, receive */
            int32_t peer; /* as asked: MPI_ANY_SOURCE, MPI_ANY_TAG */
            int32_t tag;
            union {
                uint64_t bytes; /* send */
                uint64_t addr;  /* receive */
            };
            uint64_t matched;
            int64_t posted_ns;
            int64_t seen_ns; /* MPI_Request_get_status saw it complete; else 0 */
        };
        struct {            /* MPI_Comm_idup */
            MPI_Comm *made; /* its result */
            struct zct_comm dup;
        };
    };
};

/** Remembers a request; under the lock. */
void zct_request_add_locked(MPI_Request request, const struct zct_request *what);

/** What is known of a request that is under way, or NULL. Valid until the next is remembered. */
static inline const struct zct_request *zct_request_find_locked(uintptr_t key)
{
    const struct zct_request *found = zct_table_find(&zct.requests, key);
    return found && found->active ? found : NULL;
}

/**
 * zct_request_ended_locked - the request completed, or failed (@code), as seen at @time_ns
 * @known: in the table, or a copy that was taken before the call: then another thread may have
 *         been given the handle since
 */
void zct_request_ended_locked(uintptr_t key, const struct zct_request *known,
                              const MPI_Status *status, int code, int64_t time_ns);

/** The same of a receive that no request stands for. */
void zct_receive_ended_locked(const struct zct_request *known, const MPI_Status *status, int code,
                              int64_t time_ns);

#endif
