/* SPDX-License-Identifier: BSD-3-Clause */
#include "polling.h"
#include "watch.h"

/* An empty status and an inactive request mean: it was not our request. */

/* One of them was dealt with. */
static void settle_one(struct zct_watch *w, enum zct_function function, int idx, MPI_Status *status,
                       int code)
{
    const int64_t now = zct_now_after();
    zct_lock();
    zct_watch_settle_locked(w, idx, status, code, now);
    zct_watch_end_locked(w, function, now);
    zct_unlock();
}

/* Does any of some requests, or of those in indices, mean anything to the trace? */
static bool knows_any(const struct zct_watch *w, int count, const int *indices)
{
    for (int i = 0; i < count; i++)
        if (zct_watch_knows(w, indices ? indices[i] : i))
            return true;
    return false;
}

/* Has a test found @something? Then it ends the waiting of those before it that did not. A request
 * that had been complete before is nothing: programs test all of several until all are complete. */
static bool found(struct zct_watch *w, bool something)
{
    if (zct.calls && something)
        w->begin_ns = zct_polling_began(w->begin_ns);
    else if (zct.calls)
        zct_polling_failed(w->begin_ns);
    return something;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, 1, request, &status, ZCT_CALLER))
        return REAL(Wait)(request, status);
    const int code = REAL(Wait)(request, status);
    settle_one(&w, ZCT_FUNCTION_WAIT, 0, status, code);
    return code;
}
ZCT_WRAPS(Wait)

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, 1, request, &status, ZCT_CALLER))
        return REAL(Test)(request, flag, status);
    const int code = REAL(Test)(request, flag, status);
    if (found(&w, (code != MPI_SUCCESS || *flag) && zct_watch_knows(&w, 0)))
        settle_one(&w, ZCT_FUNCTION_TEST, 0, status, code);
    return code;
}
ZCT_WRAPS(Test)

/* After other errors the arguments need not say anything. */
static bool says_which(int code)
{
    return code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS;
}

/* All of some requests, or those in indices, were dealt with. */
static void settle_several(struct zct_watch *w, enum zct_function function, int count,
                           const int *indices, MPI_Status *statuses, int code)
{
    if (!says_which(code))
        return;
    const int64_t now = zct_now_after();
    zct_lock();
    for (int i = 0; i < count; i++)
        zct_watch_settle_locked(w, indices ? indices[i] : i, &statuses[i],
                                code == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR, now);
    zct_watch_end_locked(w, function, now);
    zct_unlock();
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &statuses, ZCT_CALLER))
        return REAL(Waitall)(count, requests, statuses);
    const int code = REAL(Waitall)(count, requests, statuses);
    settle_several(&w, ZCT_FUNCTION_WAIT, count, NULL, statuses, code);
    return code;
}
ZCT_WRAPS(Waitall)

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &statuses, ZCT_CALLER))
        return REAL(Testall)(count, requests, flag, statuses);
    const int code = REAL(Testall)(count, requests, flag, statuses);
    if (found(&w, (code != MPI_SUCCESS || *flag) && knows_any(&w, count, NULL)))
        settle_several(&w, ZCT_FUNCTION_TEST, count, NULL, statuses, code);
    return code;
}
ZCT_WRAPS(Testall)

int MPI_Waitany(int count, MPI_Request requests[], int *idx, MPI_Status *status)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &status, ZCT_CALLER))
        return REAL(Waitany)(count, requests, idx, status);
    const int code = REAL(Waitany)(count, requests, idx, status);
    if (*idx >= 0 && *idx < count)
        settle_one(&w, ZCT_FUNCTION_WAIT, *idx, status, code);
    return code;
}
ZCT_WRAPS(Waitany)

int MPI_Testany(int count, MPI_Request requests[], int *idx, int *flag, MPI_Status *status)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &status, ZCT_CALLER))
        return REAL(Testany)(count, requests, idx, flag, status);
    const int code = REAL(Testany)(count, requests, idx, flag, status);
    if (found(&w, (code != MPI_SUCCESS || *flag) && *idx >= 0 && *idx < count &&
                      zct_watch_knows(&w, *idx)))
        settle_one(&w, ZCT_FUNCTION_TEST, *idx, status, code);
    return code;
}
ZCT_WRAPS(Testany)

int MPI_Waitsome(int count, MPI_Request requests[], int *nr_done, int indices[],
                 MPI_Status *statuses)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &statuses, ZCT_CALLER))
        return REAL(Waitsome)(count, requests, nr_done, indices, statuses);
    const int code = REAL(Waitsome)(count, requests, nr_done, indices, statuses);
    if (*nr_done != MPI_UNDEFINED)
        settle_several(&w, ZCT_FUNCTION_WAIT, *nr_done, indices, statuses, code);
    return code;
}
ZCT_WRAPS(Waitsome)

int MPI_Testsome(int count, MPI_Request requests[], int *nr_done, int indices[],
                 MPI_Status *statuses)
{
    struct zct_watch w;
    if (!zct_watch_begin(&w, count, requests, &statuses, ZCT_CALLER))
        return REAL(Testsome)(count, requests, nr_done, indices, statuses);
    const int code = REAL(Testsome)(count, requests, nr_done, indices, statuses);
    if (found(&w,
              says_which(code) && *nr_done != MPI_UNDEFINED && knows_any(&w, *nr_done, indices)))
        settle_several(&w, ZCT_FUNCTION_TEST, *nr_done, indices, statuses, code);
    return code;
}
ZCT_WRAPS(Testsome)

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    const int code = REAL(Request_get_status)(request, flag, status);
    if (!zct.active || code != MPI_SUCCESS || !*flag)
        return code;
    zct_lock();
    struct zct_request *r = zct_table_find(&zct.requests, ZCT_KEY(request));
    if (r && r->active && !r->seen_ns)
        r->seen_ns = zct_now_after();
    zct_unlock();
    return code;
}
ZCT_WRAPS(Request_get_status)

/* The duplicate is there when its request is complete. */
static void dup_pending(MPI_Comm comm, MPI_Comm *newcomm, int code, const MPI_Request *request)
{
    if (!zct.active || code != MPI_SUCCESS)
        return;
    struct zct_request r = {.kind = ZCT_REQUEST_DUP, .active = true, .made = newcomm};
    zct_lock();
    r.dup = zct_comm_announce_locked(comm);
    r.order = r.dup.id;
    zct_request_add_locked(*request, &r);
    zct_unlock();
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    const int code = REAL(Comm_idup)(comm, newcomm, request);
    dup_pending(comm, newcomm, code, request);
    return code;
}
ZCT_WRAPS(Comm_idup)

#if ZCT_LARGE_COUNT
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
    const int code = REAL(Comm_idup_with_info)(comm, info, newcomm, request);
    dup_pending(comm, newcomm, code, request);
    return code;
}
ZCT_WRAPS(Comm_idup_with_info)
#endif
