/* SPDX-License-Identifier: BSD-3-Clause */
#include "traced_request.h"

#include <errno.h>

uint64_t zct_status_bytes(const MPI_Status *status)
{
    int bytes = 0;
    REAL(Get_count)(status, zct_real.byte, &bytes);
    if (ZCT_UNLIKELY(bytes == MPI_UNDEFINED)) {
        MPI_Count large = 0; /* 2 GiB and more */
        REAL(Get_elements_x)(status, zct_real.byte, &large);
        return large > 0 ? (uint64_t)large : 0;
    }
    return (uint64_t)bytes;
}

void zct_request_add_locked(MPI_Request request, const struct zct_request *what)
{
    struct zct_request *entry = zct_table_insert(&zct.requests, ZCT_KEY(request));
    if (entry)
        *entry = *what;
    else
        zct.writer.error = ENOMEM;
}

struct zct_request zct_request_get(MPI_Request request)
{
    zct_lock();
    const struct zct_request *entry =
        zct.requests.nr_used ? zct_table_find(&zct.requests, ZCT_KEY(request)) : NULL;
    struct zct_request copy;
    copy.kind = ZCT_NOT_OURS;
    if (entry && entry->active)
        copy = *entry;
    zct_unlock();
    return copy;
}

/* Unless the handle is already another request's. */
static void retire_locked(uintptr_t key, const struct zct_request *known)
{
    struct zct_request *entry = zct_table_find(&zct.requests, key);
    if (!entry || entry->order != known->order || entry->kind != known->kind)
        return;
    if (known->persistent)
        entry->active = false;
    else
        zct_table_remove(&zct.requests, key);
}

static void write_receive_locked(const struct zct_request *known, const MPI_Status *status,
                                 int64_t time_ns)
{
    if (status->MPI_SOURCE < 0) /* MPI_PROC_NULL */
        return;
    const struct zct_receive receive = {
        .posted_ns = known->posted_ns,
        .done_ns = known->seen_ns ? known->seen_ns : time_ns,
        .order = known->order,
        .matched = known->matched,
        .comm = known->comm,
        .peer = status->MPI_SOURCE,
        .tag = status->MPI_TAG,
        .bytes = zct_status_bytes(status),
        .addr = known->addr,
    };
    zct.writer.site = known->site;
    zct_write_receive(&zct.writer, &receive);
}

/* A receive took a message, but not even which is known if it asked for any. */
static void write_lost_locked(const struct zct_request *known)
{
    zct_write_lost(&zct.writer, known->matched, known->comm,
                   known->peer == MPI_ANY_SOURCE ? -1 : known->peer,
                   known->tag == MPI_ANY_TAG ? -1 : known->tag);
}

static bool was_cancelled(const struct zct_request *known, MPI_Status *status)
{
    int cancelled = 0;
    if (known->cancelled)
        REAL(Test_cancelled)(status, &cancelled);
    return cancelled;
}

void zct_request_done(uintptr_t key, const struct zct_request *known, MPI_Status *status,
                      int64_t time_ns)
{
    const bool cancelled = was_cancelled(known, status);
    zct_lock();
    retire_locked(key, known);
    switch (known->kind) {
    case ZCT_REQUEST_RECEIVE:
        if (known->silent)
            write_lost_locked(known);
        else if (!cancelled)
            write_receive_locked(known, status, time_ns);
        break;
    case ZCT_REQUEST_COLLECTIVE:
        zct_write_collective_end(&zct.writer, time_ns, known->collective);
        break;
    case ZCT_REQUEST_DUP:
        zct_comm_bind_locked(*known->made, known->dup);
        break;
    case ZCT_REQUEST_SEND:
    case ZCT_NOT_OURS:
        break;
    }
    zct_unlock();
}

void zct_request_failed(uintptr_t key, const struct zct_request *known, const MPI_Status *status,
                        int code)
{
    int class = MPI_SUCCESS;
    REAL(Error_class)(code, &class);
    zct_lock();
    retire_locked(key, known);
    /* After other errors the status need not say anything. */
    if (known->kind == ZCT_REQUEST_RECEIVE && class == MPI_ERR_TRUNCATE && status->MPI_SOURCE >= 0)
        zct_write_lost(&zct.writer, known->matched, known->comm, status->MPI_SOURCE,
                       status->MPI_TAG);
    zct_unlock();
}

/* The receive may still complete, but that will not be seen. */
static void abandon(MPI_Request request)
{
    zct_lock();
    const struct zct_request *entry = zct_table_find(&zct.requests, ZCT_KEY(request));
    if (entry) {
        if (entry->active && entry->kind == ZCT_REQUEST_RECEIVE && !entry->cancelled)
            write_lost_locked(entry);
        zct_table_remove(&zct.requests, ZCT_KEY(request));
    }
    zct_unlock();
}

int MPI_Request_free(MPI_Request *request)
{
    if (zct.active)
        abandon(*request); /* before the handle can be another's */
    return REAL(Request_free)(request);
}
ZCT_WRAPS(Request_free)

int MPI_Cancel(MPI_Request *request)
{
    if (zct.active) {
        zct_lock();
        struct zct_request *entry = zct_table_find(&zct.requests, ZCT_KEY(*request));
        if (entry)
            entry->cancelled = true;
        zct_unlock();
    }
    return REAL(Cancel)(request);
}
ZCT_WRAPS(Cancel)
