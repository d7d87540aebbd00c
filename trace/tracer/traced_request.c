/* SPDX-License-Identifier: BSD-3-Clause */
#include "traced_request.h"

#include <errno.h>

#include "shared_handles.h"

static uint64_t bytes_received(const MPI_Status *status)
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

static void put_locked(uintptr_t key, const struct zct_request *what)
{
    struct zct_request *entry = zct_table_insert(&zct.requests, key);
    if (entry)
        *entry = *what;
    else
        zct.writer.error = ENOMEM;
}

/* Can a request of this kind be complete when it begins? */
static bool may_share(const struct zct_request *r)
{
    return r->active && !r->persistent && r->kind != ZCT_REQUEST_RECEIVE;
}

void zct_request_add_locked(MPI_Request request, const struct zct_request *what)
{
    const uintptr_t key = ZCT_KEY(request);
    const struct zct_request *before = zct_table_find(&zct.requests, key);
    if (ZCT_UNLIKELY(before != NULL) && may_share(before) && may_share(what))
        zct_shared_keep_locked(key, before);
    put_locked(key, what);
}

static void remove_locked(uintptr_t key, struct zct_request *entry)
{
    struct zct_request another;
    zct_table_remove_found(&zct.requests, entry);
    if (zct_shared_take_locked(key, &another))
        put_locked(key, &another);
}

/* Unless the handle is already another request's. */
static void retire_locked(uintptr_t key, const struct zct_request *known)
{
    struct zct_request *entry = zct_table_find(&zct.requests, key);
    if (!zct_request_is(entry, known))
        return;
    if (known->persistent)
        entry->active = false;
    else
        remove_locked(key, entry);
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
        .bytes = bytes_received(status),
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

static bool was_cancelled(const struct zct_request *known, const MPI_Status *status)
{
    int cancelled = 0;
    if (ZCT_UNLIKELY(known->cancelled))
        REAL(Test_cancelled)(status, &cancelled);
    return cancelled;
}

static void receive_done_locked(const struct zct_request *known, const MPI_Status *status,
                                int64_t time_ns)
{
    if (ZCT_UNLIKELY(known->silent))
        write_lost_locked(known);
    else if (!was_cancelled(known, status))
        write_receive_locked(known, status, time_ns);
}

static void receive_failed_locked(const struct zct_request *known, const MPI_Status *status,
                                  int code)
{
    int class = MPI_SUCCESS;
    REAL(Error_class)(code, &class);
    /* After other errors the status need not say anything. */
    if (class == MPI_ERR_TRUNCATE && status->MPI_SOURCE >= 0)
        zct_write_lost(&zct.writer, known->matched, known->comm, status->MPI_SOURCE,
                       status->MPI_TAG);
}

void zct_receive_ended_locked(const struct zct_request *known, const MPI_Status *status, int code,
                              int64_t time_ns)
{
    if (code == MPI_SUCCESS)
        receive_done_locked(known, status, time_ns);
    else
        receive_failed_locked(known, status, code);
}

void zct_request_ended_locked(uintptr_t key, const struct zct_request *known,
                              const MPI_Status *status, int code, int64_t time_ns)
{
    if (known->kind == ZCT_REQUEST_RECEIVE)
        zct_receive_ended_locked(known, status, code, time_ns);
    else if (known->kind == ZCT_REQUEST_COLLECTIVE && code == MPI_SUCCESS)
        zct_write_collective_end(&zct.writer, time_ns, known->order);
    else if (known->kind == ZCT_REQUEST_DUP && code == MPI_SUCCESS)
        zct_comm_bind_locked(*known->made, known->dup);
    retire_locked(key, known);
}

/* The receive may still complete, but that will not be seen. */
static void abandon(MPI_Request request)
{
    zct_lock();
    struct zct_request *entry = zct_table_find(&zct.requests, ZCT_KEY(request));
    if (entry) {
        if (entry->active && entry->kind == ZCT_REQUEST_RECEIVE && !entry->cancelled)
            write_lost_locked(entry);
        remove_locked(ZCT_KEY(request), entry);
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
