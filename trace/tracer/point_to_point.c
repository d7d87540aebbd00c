/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "datatype.h"
#include "probe.h"
#include "traced_request.h"
#include "unrecorded.h"

/** A call that may send a message has begun. The message is recorded when the call has succeeded:
 * one that fails sends none, and recorded it would be taken for what another receive got. */
struct sending {
    bool traced;
    bool synchronous;
    int64_t begin_ns;
    void *caller;
    /* With MPI_THREAD_MULTIPLE, what was known of its handles. When the message has come, another
     * thread may hear of it and free them before the call returns. */
    bool knows_comm;
    bool knows_bytes;
    uint32_t comm;
    int peers;
    uint64_t bytes;
};

/** A message that was sent and recorded. */
struct sent {
    bool recorded;
    uint32_t site;
    uint64_t number;
};

/* What the library knows is asked for after the call: of a handle that is not valid it would tell
 * the program, by an error handler that is not the call's. */
static void keep_known(struct sending *begun, int64_t count, MPI_Datatype datatype, MPI_Comm comm)
{
    zct_lock();
    const struct zct_comm *known = zct_table_find(&zct.comms, ZCT_KEY(comm));
    const struct zct_type *type = zct_type_find_locked(datatype);
    begun->knows_comm = known;
    if (known) {
        begun->comm = known->id;
        begun->peers = known->peers;
    }
    begun->knows_bytes = type;
    if (type)
        begun->bytes = count > 0 ? (uint64_t)count * type->size : 0;
    zct_unlock();
}

static inline __attribute__((always_inline)) void send_begins(struct sending *begun, int dest,
                                                              int64_t count, MPI_Datatype type,
                                                              MPI_Comm comm, void *caller)
{
    begun->synchronous = false;
    begun->traced = zct.active && dest >= 0; /* MPI_PROC_NULL */
    begun->begin_ns = begun->traced ? zct_now() : 0;
    begun->caller = caller;
    if (ZCT_UNLIKELY(zct.threaded) && begun->traced)
        keep_known(begun, count, type, comm);
}

static inline __attribute__((always_inline)) struct sent
note_sent_locked(const struct sending *begun, int64_t count, MPI_Datatype type, int dest, int tag,
                 MPI_Comm comm)
{
    struct sent sent = {.recorded = false};
    uint32_t id = 0;
    int peers = 0;
    if (ZCT_UNLIKELY(zct.threaded) && begun->knows_comm) {
        id = begun->comm;
        peers = begun->peers;
    } else {
        const struct zct_comm *known = zct_comm_get_locked(comm);
        id = known->id;
        peers = known->peers;
    }
    if (dest < peers) {
        const bool known = ZCT_UNLIKELY(zct.threaded) && begun->knows_bytes;
        const uint64_t bytes = known ? begun->bytes : zct_bytes(count, type);
        sent.recorded = true;
        sent.site = zct.writer.site = zct_site_locked(begun->caller);
        zct.writer.synchronous = begun->synchronous;
        sent.number = zct_write_send(&zct.writer, begun->begin_ns, id, dest, tag, bytes);
    }
    return sent;
}

/* A blocking send ends. */
static void send_ended(const struct sending *begun, int code, int64_t count, MPI_Datatype type,
                       int dest, int tag, MPI_Comm comm)
{
    if (!begun->traced || code != MPI_SUCCESS || !zct.active)
        return;
    const int64_t now = zct_now_after();
    zct_lock();
    const struct sent sent = note_sent_locked(begun, count, type, dest, tag, comm);
    if (sent.recorded && zct.calls)
        zct_call_ended_locked(ZCT_FUNCTION_SEND, sent.site, begun->begin_ns, now, &sent.number, 1);
    zct_unlock();
}

/* A nonblocking send began: its end is of interest if calls are recorded. */
static void send_pending(const struct sending *begun, int code, int64_t count, MPI_Datatype type,
                         int dest, int tag, MPI_Comm comm, MPI_Request request)
{
    if (!begun->traced || code != MPI_SUCCESS || !zct.active)
        return;
    zct_lock();
    const struct sent sent = note_sent_locked(begun, count, type, dest, tag, comm);
    if (sent.recorded && zct.calls && request != zct_real.request_null) {
        const struct zct_request r = {
            .kind = ZCT_REQUEST_SEND, .active = true, .site = sent.site, .order = sent.number};
        zct_request_add_locked(request, &r);
    }
    zct_unlock();
}

/* A receive that is about to be posted: @r. */
static void begin(struct zct_request *r, const void *buffer, MPI_Datatype type, int source, int tag,
                  MPI_Comm comm, void *caller)
{
    *r = (struct zct_request){
        .kind = ZCT_REQUEST_RECEIVE, .active = true, .peer = source, .tag = tag};
    zct_lock();
    r->comm = zct_comm_get_locked(comm)->id;
    r->addr = zct_address_locked(buffer, type);
    r->site = zct_site_locked(caller);
    r->order = r->matched = zct_writer_begin(&zct.writer);
    zct_unlock();
    r->posted_ns = zct_now();
}

/* The library says that there is no such communicator. */
static bool traced(int source, MPI_Comm comm)
{
    return zct.active && source != MPI_PROC_NULL && comm != zct_real.comm_null;
}

/* A receive that no request stands for. */
static void settle(const struct zct_request *r, const MPI_Status *status, int code)
{
    const int64_t now = zct_now_after();
    zct_lock();
    zct_receive_ended_locked(r, status, code, now);
    if (zct.calls && zct.active)
        zct_call_ended_locked(ZCT_FUNCTION_RECEIVE, r->site, r->posted_ns, now, NULL, 0);
    zct_unlock();
}

/* Both are over: MPI_Sendrecv. */
static void settle_both(const struct zct_request *r, const MPI_Status *status, int code,
                        const struct sending *begun, int64_t count, MPI_Datatype type, int dest,
                        int tag, MPI_Comm comm)
{
    struct sent sent = {.recorded = false};
    const int64_t now = zct_now_after();
    zct_lock();
    if (begun->traced && zct_moved(code))
        sent = note_sent_locked(begun, count, type, dest, tag, comm);
    zct_receive_ended_locked(r, status, code, now);
    if (zct.calls && zct.active)
        zct_call_ended_locked(ZCT_FUNCTION_SENDRECV, r->site,
                              sent.recorded ? begun->begin_ns : r->posted_ns, now,
                              sent.recorded ? &sent.number : NULL, sent.recorded);
    zct_unlock();
}

static void add(MPI_Request request, const struct zct_request *r)
{
    zct_lock();
    zct_request_add_locked(request, r);
    zct_unlock();
}

#if ZCT_LARGE_COUNT
static void add_silent(MPI_Request request, struct zct_request *r)
{
    r->silent = true;
    add(request, r);
}
#endif

/* Each of the next wrappers exists for counts of two types. */
#define SENDS(name, count_t, is_synchronous)                                                       \
    int MPI_##name(const void *buffer, count_t count, MPI_Datatype type, int dest, int tag,        \
                   MPI_Comm comm)                                                                  \
    {                                                                                              \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, count, type, comm, ZCT_CALLER);                                  \
        begun.synchronous = is_synchronous;                                                        \
        const int code = REAL(name)(buffer, count, type, dest, tag, comm);                         \
        send_ended(&begun, code, count, type, dest, tag, comm);                                    \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

#define ISENDS(name, count_t, is_synchronous)                                                      \
    int MPI_##name(const void *buffer, count_t count, MPI_Datatype type, int dest, int tag,        \
                   MPI_Comm comm, MPI_Request *request)                                            \
    {                                                                                              \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, count, type, comm, ZCT_CALLER);                                  \
        begun.synchronous = is_synchronous;                                                        \
        const int code = REAL(name)(buffer, count, type, dest, tag, comm, request);                \
        send_pending(&begun, code, count, type, dest, tag, comm,                                   \
                     code == MPI_SUCCESS ? *request : zct_real.request_null);                      \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

#define SEND_INITS(name, count_t, is_synchronous)                                                  \
    int MPI_##name(const void *buffer, count_t count, MPI_Datatype type, int dest, int tag,        \
                   MPI_Comm comm, MPI_Request *request)                                            \
    {                                                                                              \
        const int code = REAL(name)(buffer, count, type, dest, tag, comm, request);                \
        if (code == MPI_SUCCESS)                                                                   \
            remember_send(is_synchronous, count, type, dest, tag, comm, *request);                 \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

/* To or from MPI_PROC_NULL: it is known that there is nothing to record when it is started. */
static void remember_nobody(MPI_Request request)
{
    const struct zct_request r = {.kind = ZCT_NOT_OURS, .persistent = true};
    zct_lock();
    zct_request_add_locked(request, &r);
    zct_unlock();
}

static void remember_send(bool synchronous, int64_t count, MPI_Datatype type, int dest, int tag,
                          MPI_Comm comm, MPI_Request request)
{
    if (!zct.active)
        return;
    if (dest < 0) {
        remember_nobody(request);
        return;
    }
    struct zct_request r = {.kind = ZCT_REQUEST_SEND,
                            .persistent = true,
                            .synchronous = synchronous,
                            .peer = dest,
                            .tag = tag};
    r.bytes = zct_bytes(count, type);
    zct_lock();
    const struct zct_comm *known = zct_comm_get_locked(comm);
    r.comm = known->id;
    if (dest < known->peers)
        zct_request_add_locked(request, &r);
    zct_unlock();
}

static void remember_receive(const void *buffer, MPI_Datatype type, int source, int tag,
                             MPI_Comm comm, MPI_Request request)
{
    struct zct_request r = {.kind = ZCT_REQUEST_RECEIVE, .persistent = true};
    if (!zct.active)
        return;
    if (source == MPI_PROC_NULL) {
        remember_nobody(request);
        return;
    }
    r.peer = source;
    r.tag = tag;
    zct_lock();
    r.comm = zct_comm_get_locked(comm)->id;
    r.addr = zct_address_locked(buffer, type);
    zct_request_add_locked(request, &r);
    zct_unlock();
}

#define RECVS(suffix, count_t)                                                                     \
    int MPI_Recv##suffix(void *buffer, count_t count, MPI_Datatype type, int source, int tag,      \
                         MPI_Comm comm, MPI_Status *status)                                        \
    {                                                                                              \
        if (!traced(source, comm))                                                                 \
            return REAL(Recv##suffix)(buffer, count, type, source, tag, comm, status);             \
        MPI_Status own;                                                                            \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        void *const caller = ZCT_CALLER;                                                           \
        struct zct_request r;                                                                      \
        begin(&r, buffer, type, source, tag, comm, caller);                                        \
        const int code = REAL(Recv##suffix)(buffer, count, type, source, tag, comm, to);           \
        settle(&r, to, code);                                                                      \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Recv##suffix)                                                                        \
                                                                                                   \
    int MPI_Irecv##suffix(void *buffer, count_t count, MPI_Datatype type, int source, int tag,     \
                          MPI_Comm comm, MPI_Request *request)                                     \
    {                                                                                              \
        if (!traced(source, comm))                                                                 \
            return REAL(Irecv##suffix)(buffer, count, type, source, tag, comm, request);           \
        struct zct_request r;                                                                      \
        begin(&r, buffer, type, source, tag, comm, ZCT_CALLER);                                    \
        const int code = REAL(Irecv##suffix)(buffer, count, type, source, tag, comm, request);     \
        if (code == MPI_SUCCESS)                                                                   \
            add(*request, &r);                                                                     \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Irecv##suffix)                                                                       \
                                                                                                   \
    int MPI_Recv_init##suffix(void *buffer, count_t count, MPI_Datatype type, int source, int tag, \
                              MPI_Comm comm, MPI_Request *request)                                 \
    {                                                                                              \
        const int code = REAL(Recv_init##suffix)(buffer, count, type, source, tag, comm, request); \
        if (code == MPI_SUCCESS)                                                                   \
            remember_receive(buffer, type, source, tag, comm, *request);                           \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Recv_init##suffix)                                                                   \
                                                                                                   \
    int MPI_Mrecv##suffix(void *buffer, count_t count, MPI_Datatype type, MPI_Message *message,    \
                          MPI_Status *status)                                                      \
    {                                                                                              \
        struct zct_request r;                                                                      \
        void *const caller = ZCT_CALLER;                                                           \
        if (!begin_matched(&r, buffer, type, *message, caller))                                    \
            return REAL(Mrecv##suffix)(buffer, count, type, message, status);                      \
        MPI_Status own;                                                                            \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        const int code = REAL(Mrecv##suffix)(buffer, count, type, message, to);                    \
        settle(&r, to, code);                                                                      \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Mrecv##suffix)                                                                       \
                                                                                                   \
    int MPI_Imrecv##suffix(void *buffer, count_t count, MPI_Datatype type, MPI_Message *message,   \
                           MPI_Request *request)                                                   \
    {                                                                                              \
        struct zct_request r;                                                                      \
        if (!begin_matched(&r, buffer, type, *message, ZCT_CALLER))                                \
            return REAL(Imrecv##suffix)(buffer, count, type, message, request);                    \
        const int code = REAL(Imrecv##suffix)(buffer, count, type, message, request);              \
        if (code == MPI_SUCCESS)                                                                   \
            add(*request, &r);                                                                     \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Imrecv##suffix)                                                                      \
                                                                                                   \
    int MPI_Sendrecv##suffix(const void *from, count_t nr_from, MPI_Datatype from_type, int dest,  \
                             int send_tag, void *buffer, count_t count, MPI_Datatype type,         \
                             int source, int tag, MPI_Comm comm, MPI_Status *status)               \
    {                                                                                              \
        void *const caller = ZCT_CALLER;                                                           \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, nr_from, from_type, comm, caller);                               \
        if (!traced(source, comm)) {                                                               \
            const int code =                                                                       \
                REAL(Sendrecv##suffix)(from, nr_from, from_type, dest, send_tag, buffer, count,    \
                                       type, source, tag, comm, status);                           \
            send_ended(&begun, code, nr_from, from_type, dest, send_tag, comm);                    \
            return code;                                                                           \
        }                                                                                          \
        MPI_Status own;                                                                            \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        struct zct_request r;                                                                      \
        begin(&r, buffer, type, source, tag, comm, caller);                                        \
        const int code = REAL(Sendrecv##suffix)(from, nr_from, from_type, dest, send_tag, buffer,  \
                                                count, type, source, tag, comm, to);               \
        settle_both(&r, to, code, &begun, nr_from, from_type, dest, send_tag, comm);               \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Sendrecv##suffix)                                                                    \
                                                                                                   \
    int MPI_Sendrecv_replace##suffix(void *buffer, count_t count, MPI_Datatype type, int dest,     \
                                     int send_tag, int source, int tag, MPI_Comm comm,             \
                                     MPI_Status *status)                                           \
    {                                                                                              \
        void *const caller = ZCT_CALLER;                                                           \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, count, type, comm, caller);                                      \
        if (!traced(source, comm)) {                                                               \
            const int code = REAL(Sendrecv_replace##suffix)(buffer, count, type, dest, send_tag,   \
                                                            source, tag, comm, status);            \
            send_ended(&begun, code, count, type, dest, send_tag, comm);                           \
            return code;                                                                           \
        }                                                                                          \
        MPI_Status own;                                                                            \
        MPI_Status *to = status == MPI_STATUS_IGNORE ? &own : status;                              \
        struct zct_request r;                                                                      \
        begin(&r, buffer, type, source, tag, comm, caller);                                        \
        const int code = REAL(Sendrecv_replace##suffix)(buffer, count, type, dest, send_tag,       \
                                                        source, tag, comm, to);                    \
        settle_both(&r, to, code, &begun, count, type, dest, send_tag, comm);                      \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Sendrecv_replace##suffix)

/* MPICH 4.0 leaves the status of these empty. */
#define ISENDRECVS(suffix, count_t)                                                                \
    int MPI_Isendrecv##suffix(const void *from, count_t nr_from, MPI_Datatype from_type, int dest, \
                              int send_tag, void *buffer, count_t count, MPI_Datatype type,        \
                              int source, int tag, MPI_Comm comm, MPI_Request *request)            \
    {                                                                                              \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, nr_from, from_type, comm, ZCT_CALLER);                           \
        const bool receives = traced(source, comm);                                                \
        struct zct_request r = {0};                                                                \
        if (receives)                                                                              \
            begin(&r, buffer, type, source, tag, comm, ZCT_CALLER);                                \
        const int code = REAL(Isendrecv##suffix)(from, nr_from, from_type, dest, send_tag, buffer, \
                                                 count, type, source, tag, comm, request);         \
        send_pending(&begun, code, nr_from, from_type, dest, send_tag, comm,                       \
                     zct_real.request_null);                                                       \
        if (receives && code == MPI_SUCCESS)                                                       \
            add_silent(*request, &r);                                                              \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Isendrecv##suffix)                                                                   \
                                                                                                   \
    int MPI_Isendrecv_replace##suffix(void *buffer, count_t count, MPI_Datatype type, int dest,    \
                                      int send_tag, int source, int tag, MPI_Comm comm,            \
                                      MPI_Request *request)                                        \
    {                                                                                              \
        struct sending begun;                                                                      \
        send_begins(&begun, dest, count, type, comm, ZCT_CALLER);                                  \
        const bool receives = traced(source, comm);                                                \
        struct zct_request r = {0};                                                                \
        if (receives)                                                                              \
            begin(&r, buffer, type, source, tag, comm, ZCT_CALLER);                                \
        const int code = REAL(Isendrecv_replace##suffix)(buffer, count, type, dest, send_tag,      \
                                                         source, tag, comm, request);              \
        send_pending(&begun, code, count, type, dest, send_tag, comm, zct_real.request_null);      \
        if (receives && code == MPI_SUCCESS)                                                       \
            add_silent(*request, &r);                                                              \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(Isendrecv_replace##suffix)

/* Begins the receive of a probed message; false if there is nothing to trace. */
static bool begin_matched(struct zct_request *r, const void *buffer, MPI_Datatype type,
                          MPI_Message message, void *caller)
{
    bool found = false;
    memset(r, 0, sizeof(*r));
    if (!zct.active)
        return false;
    zct_lock();
    const struct zct_message *entry = zct_table_find(&zct.messages, ZCT_KEY(message));
    if (entry) {
        found = true;
        r->kind = ZCT_REQUEST_RECEIVE;
        r->active = true;
        r->peer = MPI_ANY_SOURCE;
        r->tag = MPI_ANY_TAG;
        r->comm = entry->comm;
        r->site = zct_site_locked(caller);
        r->matched = entry->order;
        r->order = zct_writer_begin(&zct.writer);
        r->addr = zct_address_locked(buffer, type);
        zct_table_remove(&zct.messages, ZCT_KEY(message));
    }
    zct_unlock();
    r->posted_ns = zct_now();
    return found;
}

SENDS(Send, int, false)
SENDS(Bsend, int, false)
SENDS(Ssend, int, true)
SENDS(Rsend, int, false)
ISENDS(Isend, int, false)
ISENDS(Ibsend, int, false)
ISENDS(Issend, int, true)
ISENDS(Irsend, int, false)
SEND_INITS(Send_init, int, false)
SEND_INITS(Bsend_init, int, false)
SEND_INITS(Ssend_init, int, true)
SEND_INITS(Rsend_init, int, false)
RECVS(, int)

#if ZCT_LARGE_COUNT
SENDS(Send_c, MPI_Count, false)
SENDS(Bsend_c, MPI_Count, false)
SENDS(Ssend_c, MPI_Count, true)
SENDS(Rsend_c, MPI_Count, false)
ISENDS(Isend_c, MPI_Count, false)
ISENDS(Ibsend_c, MPI_Count, false)
ISENDS(Issend_c, MPI_Count, true)
ISENDS(Irsend_c, MPI_Count, false)
SEND_INITS(Send_init_c, MPI_Count, false)
SEND_INITS(Bsend_init_c, MPI_Count, false)
SEND_INITS(Ssend_init_c, MPI_Count, true)
SEND_INITS(Rsend_init_c, MPI_Count, false)
RECVS(_c, MPI_Count)
ISENDRECVS(, int)
ISENDRECVS(_c, MPI_Count)
#endif

/* A persistent request has begun another round. False: nothing is known of it; it is a persistent
 * collective, or a message in parts. */
static bool started(MPI_Request request, int64_t begin_ns, void *caller)
{
    zct_lock();
    struct zct_request *r = zct_table_find(&zct.requests, ZCT_KEY(request));
    if (r && r->kind == ZCT_REQUEST_SEND) {
        zct.writer.site = zct_site_locked(caller);
        zct.writer.synchronous = r->synchronous;
        r->order = zct_write_send(&zct.writer, begin_ns, r->comm, r->peer, r->tag, r->bytes);
        r->active = zct.calls;
    } else if (r && r->kind == ZCT_REQUEST_RECEIVE) {
        r->site = zct_site_locked(caller);
        r->order = r->matched = zct_writer_begin(&zct.writer);
        r->posted_ns = begin_ns;
        r->seen_ns = 0;
        r->cancelled = false;
        r->active = true;
    }
    zct_unlock();
    return r != NULL;
}

/* All @requests were started by one call. The time of that is counted once. */
static void all_started(int count, const MPI_Request *requests, int64_t begin_ns, void *caller)
{
    int64_t since_ns = begin_ns;
    for (int i = 0; i < count; i++) {
        if (started(requests[i], begin_ns, caller))
            continue;
        zct_unrecorded_count(ZCT_UNRECORDED_START, caller, 0, zct.calls ? since_ns : 0);
        since_ns = zct_now();
    }
}

int MPI_Start(MPI_Request *request)
{
    const int64_t begin_ns = zct.active ? zct_now() : 0;
    const int code = REAL(Start)(request);
    if (zct.active && code == MPI_SUCCESS)
        all_started(1, request, begin_ns, ZCT_CALLER);
    return code;
}
ZCT_WRAPS(Start)

int MPI_Startall(int count, MPI_Request requests[])
{
    const int64_t begin_ns = zct.active ? zct_now() : 0;
    const int code = REAL(Startall)(count, requests);
    if (zct.active && code == MPI_SUCCESS)
        all_started(count, requests, begin_ns, ZCT_CALLER);
    return code;
}
ZCT_WRAPS(Startall)
