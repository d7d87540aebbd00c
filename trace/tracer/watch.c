/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"

#include <stdlib.h>

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

bool zct_watch_begin(struct zct_watch *w, int count, const MPI_Request *requests,
                     MPI_Status **statuses, void *caller)
{
    if (!zct.active || count <= 0 || !zct.requests.nr_used)
        return false;
    const size_t n = (size_t)count;
    const size_t known_bytes = zct.threaded ? n * sizeof(struct zct_request) : 0;
    const size_t keys_bytes = n * sizeof(uintptr_t);
    const size_t sends_bytes = zct.calls ? n * sizeof(uint64_t) : 0;
    uint8_t *memory = scratch_of(known_bytes + keys_bytes + sends_bytes + n * sizeof(MPI_Status));
    if (!memory)
        return false;

    struct zct_request *known = (struct zct_request *)(void *)memory;
    uintptr_t *keys = (uintptr_t *)(void *)(memory + known_bytes);
    for (size_t i = 0; i < n; i++)
        keys[i] = ZCT_KEY(requests[i]);
    for (size_t i = 0; zct.threaded && i < n; i++)
        known[i] = zct_request_get(requests[i]);
    w->keys = keys;
    w->known = zct.threaded ? known : NULL;
    w->sends = (uint64_t *)(void *)(memory + known_bytes + keys_bytes);
    w->nr_sends = 0;
    if (*statuses == MPI_STATUSES_IGNORE || *statuses == MPI_STATUS_IGNORE)
        *statuses = (MPI_Status *)(void *)(memory + known_bytes + keys_bytes + sends_bytes);
    w->caller = caller;
    w->begin_ns = zct.calls ? zct_now() : 0;
    return true;
}

void zct_watch_settle(struct zct_watch *w, int idx, MPI_Status *status, int code, int64_t time_ns)
{
    const uintptr_t key = w->keys[idx];
    struct zct_request found;
    const struct zct_request *known = w->known ? &w->known[idx] : &found;
    if (!w->known)
        found = zct_request_get((MPI_Request)key);
    if (known->kind == ZCT_NOT_OURS)
        return;
    if (zct.calls && known->kind == ZCT_REQUEST_SEND && code != MPI_ERR_PENDING)
        w->sends[w->nr_sends++] = known->order;
    if (code == MPI_SUCCESS)
        zct_request_done(key, known, status, time_ns);
    else if (code != MPI_ERR_PENDING)
        zct_request_failed(key, known, status, code);
}

void zct_watch_end(const struct zct_watch *w, enum zct_function function, int64_t time_ns)
{
    if (zct.calls && zct.active)
        zct_call_ended(function, w->caller, w->begin_ns, time_ns, w->sends, w->nr_sends);
}
