/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <stdlib.h>

#include "shared_handles.h"

/** Memory of a thread, as large as its largest call needed. */
struct scratch {
    size_t capacity;
    uint8_t bytes[];
};

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static __thread struct scratch *scratch __attribute__((tls_model("initial-exec")));

static void make_key(void)
{
    pthread_key_create(&scratch_key, free);
}

static void *scratch_of(size_t len)
{
    if (scratch && scratch->capacity >= len)
        return scratch->bytes;
    pthread_once(&scratch_once, make_key);
    struct scratch *larger = realloc(scratch, sizeof(*larger) + 2 * len);
    if (!larger)
        return NULL;
    larger->capacity = 2 * len;
    scratch = larger;
    pthread_setspecific(scratch_key, larger); /* freed when the thread ends */
    return scratch->bytes;
}

/* Where @w points to, and its statuses. Null: no memory. */
static MPI_Status *make_room(struct zct_watch *w, size_t n)
{
    if (n == 1) {
        w->keys = &w->one.key;
        w->known = &w->one.known;
        w->sends = &w->one.send;
        return &w->one.status;
    }
    const size_t known_bytes = zct.threaded ? n * sizeof(struct zct_request) : 0;
    const size_t keys_bytes = n * sizeof(uintptr_t);
    const size_t sends_bytes = zct.calls ? n * sizeof(uint64_t) : 0;
    uint8_t *memory = scratch_of(known_bytes + keys_bytes + sends_bytes + n * sizeof(MPI_Status));
    if (!memory)
        return NULL;
    w->known = (struct zct_request *)(void *)memory;
    w->keys = (uintptr_t *)(void *)(memory + known_bytes);
    w->sends = (uint64_t *)(void *)(memory + known_bytes + keys_bytes);
    return (MPI_Status *)(void *)(memory + known_bytes + keys_bytes + sends_bytes);
}

/* Of requests that share a handle, each stands for another one. */
static void keep_known(struct zct_watch *w, size_t n)
{
    uintptr_t shared = 0; /* its handle; few calls have more than one */
    size_t nr_shared = 0; /* so many of it before */
    zct_lock();
    for (size_t i = 0; i < n; i++) {
        const struct zct_request *found = zct_request_find_locked(w->keys[i]);
        if (found && zct_shared_is_locked(w->keys[i])) {
            nr_shared = w->keys[i] == shared ? nr_shared + 1 : 0;
            shared = w->keys[i];
            if (nr_shared)
                found = zct_shared_peek_locked(shared, nr_shared - 1);
        }
        if (found)
            w->known[i] = *found;
        else
            w->known[i].kind = ZCT_NOT_OURS;
    }
    zct_unlock();
}

bool zct_watch_begin(struct zct_watch *w, int count, const MPI_Request *requests,
                     MPI_Status **statuses, void *caller)
{
    if (!zct.active || count <= 0 || !zct.requests.nr_used)
        return false;
    const size_t n = (size_t)count;
    MPI_Status *own = make_room(w, n);
    if (!own) {
        zct_out_of_memory();
        return false;
    }
    for (size_t i = 0; i < n; i++)
        w->keys[i] = ZCT_KEY(requests[i]);
    if (zct.threaded)
        keep_known(w, n);
    if (*statuses == MPI_STATUSES_IGNORE || *statuses == MPI_STATUS_IGNORE)
        *statuses = own;
    w->nr_sends = 0;
    w->caller = caller;
    w->begin_ns = zct.calls ? zct_now() : 0;
    return true;
}

bool zct_watch_knows(const struct zct_watch *w, int idx)
{
    const struct zct_request *known =
        zct.threaded ? &w->known[idx] : zct_request_find_locked(w->keys[idx]);
    return known && known->kind != ZCT_NOT_OURS;
}

/* What @kept was when the call began, as it is now. Another thread may have been given the handle
 * since, or have cancelled the receive, or have completed another request with the same handle. */
static const struct zct_request *find_kept(uintptr_t key, const struct zct_request *kept)
{
    const struct zct_request *now = zct_request_find_locked(key);
    if (zct_request_is(now, kept))
        return now;
    if (zct_shared_drop_locked(key, kept))
        return kept;
    return zct_shared_is_locked(key) && now && now->kind == kept->kind ? now : kept;
}

void zct_watch_settle_locked(struct zct_watch *w, int idx, const MPI_Status *status, int code,
                             int64_t time_ns)
{
    const uintptr_t key = w->keys[idx];
    const struct zct_request *known =
        zct.threaded ? find_kept(key, &w->known[idx]) : zct_request_find_locked(key);
    if (!known || known->kind == ZCT_NOT_OURS || code == MPI_ERR_PENDING)
        return;
    if (zct.calls && known->kind == ZCT_REQUEST_SEND)
        w->sends[w->nr_sends++] = known->order;
    zct_request_ended_locked(key, known, status, code, time_ns);
}

void zct_watch_end_locked(const struct zct_watch *w, enum zct_function function, int64_t time_ns)
{
    if (zct.calls && zct.active)
        zct_call_ended_locked(function, zct_site_locked(w->caller), w->begin_ns, time_ns, w->sends,
                              w->nr_sends);
}
