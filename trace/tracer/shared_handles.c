/* SPDX-License-Identifier: BSD-3-Clause */
#include "shared_handles.h"

#include <errno.h>
#include <stdlib.h>

/* A library has one such handle for each kind of operation at most. */
#define MAX_HANDLES 16

static struct {
    uintptr_t key;
    size_t nr_kept, room;
    struct zct_request *kept;
} handles[MAX_HANDLES];
static size_t nr_handles;

static size_t place_of(uintptr_t key)
{
    size_t at = 0;
    while (at < nr_handles && handles[at].key != key)
        at++;
    return at;
}

void zct_shared_keep_locked(uintptr_t key, const struct zct_request *request)
{
    const size_t at = place_of(key);
    if (at == MAX_HANDLES)
        return;
    if (at == nr_handles)
        handles[nr_handles++].key = key;
    if (handles[at].nr_kept == handles[at].room) {
        const size_t room = handles[at].room ? 2 * handles[at].room : 64;
        struct zct_request *more = realloc(handles[at].kept, room * sizeof(*more));
        if (!more) {
            zct.writer.error = ENOMEM;
            return;
        }
        handles[at].kept = more;
        handles[at].room = room;
    }
    handles[at].kept[handles[at].nr_kept++] = *request;
}

bool zct_shared_take_locked(uintptr_t key, struct zct_request *request)
{
    const size_t at = place_of(key);
    if (at == nr_handles || handles[at].nr_kept == 0)
        return false;
    *request = handles[at].kept[--handles[at].nr_kept];
    return true;
}

bool zct_shared_is_locked(uintptr_t key)
{
    return place_of(key) < nr_handles;
}
