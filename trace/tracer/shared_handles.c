/* SPDX-License-Identifier: BSD-3-Clause */
#include "shared_handles.h"

#include <errno.h>
#include <stdlib.h>

/* A library has one such handle for each kind of operation at most. For a moment another thread's
 * request may seem to share one: it was given the handle of a request that has been completed, but
 * has not been taken out of the table yet. */
#define MAX_HANDLES 64

struct handle {
    uintptr_t key;
    size_t nr_kept, room; /* nr_kept 0: it may become another handle's */
    struct zct_request *kept;
};

static struct handle handles[MAX_HANDLES];
static size_t nr_handles;

static struct handle *find(uintptr_t key)
{
    for (size_t i = 0; i < nr_handles; i++)
        if (handles[i].nr_kept && handles[i].key == key)
            return &handles[i];
    return NULL;
}

static struct handle *find_unused(void)
{
    for (size_t i = 0; i < nr_handles; i++)
        if (!handles[i].nr_kept)
            return &handles[i];
    return nr_handles < MAX_HANDLES ? &handles[nr_handles++] : NULL;
}

void zct_shared_keep_locked(uintptr_t key, const struct zct_request *request)
{
    struct handle *of = find(key);
    if (!of)
        of = find_unused();
    if (!of) {
        zct.writer.error = ENOMEM;
        return;
    }
    if (of->nr_kept == of->room) {
        const size_t room = of->room ? 2 * of->room : 64;
        struct zct_request *more = realloc(of->kept, room * sizeof(*more));
        if (!more) {
            zct.writer.error = ENOMEM;
            return;
        }
        of->kept = more;
        of->room = room;
    }
    of->key = key;
    of->kept[of->nr_kept++] = *request;
}

bool zct_shared_take_locked(uintptr_t key, struct zct_request *request)
{
    struct handle *of = find(key);
    if (!of)
        return false;
    *request = of->kept[--of->nr_kept];
    return true;
}

bool zct_shared_is_locked(uintptr_t key)
{
    return find(key) != NULL;
}

const struct zct_request *zct_shared_peek_locked(uintptr_t key, size_t nth)
{
    const struct handle *of = find(key);
    return of && nth < of->nr_kept ? &of->kept[of->nr_kept - 1 - nth] : NULL;
}

bool zct_shared_drop_locked(uintptr_t key, const struct zct_request *request)
{
    struct handle *of = find(key);
    for (size_t i = of ? of->nr_kept : 0; i-- > 0;) {
        if (zct_request_is(&of->kept[i], request)) {
            of->kept[i] = of->kept[--of->nr_kept];
            return true;
        }
    }
    return false;
}
