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

/** A request the program holds. */
struct zct_request {
    enum zct_request_kind kind;
    bool persistent;
    bool active;
    bool cancelled; /* MPI_Cancel was called; it may still have completed */
    bool silent;    /* its status will not say what came */
    int32_t peer;   /* as asked: MPI_ANY_SOURCE, MPI_ANY_TAG */
    int32_t tag;
    uint32_t comm;
    uint64_t bytes; /* of a send */
    uint64_t addr;
    uint32_t site;  /* where it was posted */
    uint64_t order; /* tells requests with one handle apart; of a send: its number */
    uint64_t matched;
    int64_t posted_ns;
    int64_t seen_ns;     /* MPI_Request_get_status saw it complete; else 0 */
    uint64_t collective; /* number of the call */
    MPI_Comm *made;      /* MPI_Comm_idup's result */
    struct zct_comm dup;
};

/** Remembers a request; under the lock. */
void zct_request_add_locked(MPI_Request request, const struct zct_request *what);

/**
 * zct_request_get - a copy of what is known of a request; kind ZCT_NOT_OURS else
 *
 * To be taken before a call that may complete the request: then the handle is
 * free, and another thread may be given it before we come to note the completion.
 */
struct zct_request zct_request_get(MPI_Request request);

/** The request completed (@status), as seen at @time_ns. @known as before the call. */
void zct_request_done(uintptr_t key, const struct zct_request *known, MPI_Status *status,
                      int64_t time_ns);

/** It completed with an error (@code): its message, if any, is gone. */
void zct_request_failed(uintptr_t key, const struct zct_request *known, const MPI_Status *status,
                        int code);

/** Bytes that a status says were received. */
uint64_t zct_status_bytes(const MPI_Status *status);

#endif
