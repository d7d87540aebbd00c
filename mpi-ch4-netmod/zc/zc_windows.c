/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_windows.h"
#include "zc_foreign_path.h"

static struct {
    MPIR_Win *first;
    uint32_t number;            /* of the last */
} windows;

void MPIDI_ZC_windows_init(void)
{
    memset(&windows, 0, sizeof(windows));
}

/* Takes the lock of VCI 0, unless it is that of @win, which the caller has. */
static void enter_first(const MPIR_Win * win)
{
    if (MPIDI_WIN(win, am_vci) > 0) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    }
}

static void exit_first(const MPIR_Win * win)
{
    if (MPIDI_WIN(win, am_vci) > 0) {
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    }
}

bool MPIDI_ZC_windows_add(MPIR_Win * win)
{
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);

    if (likely(!MPIDI_ZC_global.paths)) {
        return true;
    }
    zc->latest = MPL_calloc(win->comm_ptr->local_size, sizeof(*zc->latest), MPL_MEM_RMA);
    if (!zc->latest) {
        return false;
    }
    enter_first(win);
    zc->number = ++windows.number;
    zc->next = windows.first;
    windows.first = win;
    exit_first(win);
    return true;
}

void MPIDI_ZC_windows_remove(MPIR_Win * win)
{
    MPIDI_ZC_win_t *zc = &MPIDI_ZC_WIN(win);
    MPIR_Win **link = &windows.first;

    if (!zc->latest) {
        return;
    }
    enter_first(win);
    while (*link != win) {
        link = &MPIDI_ZC_WIN(*link).next;
    }
    *link = zc->next;
    exit_first(win);
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        MPL_free(zc->latest[rank].copy);
    }
    MPL_free(zc->latest);
    zc->latest = NULL;
}

/* Returns the rank in @win's communicator of the process that @path is to, or -1. */
static int rank_in(const MPIR_Win * win, int path)
{
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        if (MPIDI_ZC_WIN(win).targets[rank].path == path) {
            return rank;
        }
    }
    return -1;
}

static void set_packed(MPIDI_ZC_target_t * target, const char *packed)
{
    __atomic_store_n(&target->packed, packed, __ATOMIC_RELEASE);
}

/* ---- keys ---- */

void MPIDI_ZC_windows_keep(MPIR_Win * win, int rank, const char *packed, uint32_t incarnation)
{
    MPIDI_ZC_WIN(win).latest[rank] = (MPIDI_ZC_key_t) {.packed = packed,.incarnation = incarnation };
}

/* If it cannot be sent, the next operation tries again. */
static void ask(MPIR_Win * win, int path, MPIDI_ZC_key_t * key)
{
    const MPIDI_ZC_path_message_t message = {
        .kind = MPIDI_ZC_TELL_WANTS,
        .number = MPIDI_ZC_WIN(win).number,
        .window = MPIDIG_WIN(win, win_id),
    };

    enter_first(win);
    key->asked = MPIDI_ZC_path_send(MPIDI_ZC_path_endpoint(path), path, message, NULL, 0) == UCS_OK;
    exit_first(win);
}

/* Is a key of @incarnation to memory that has been given up? A process of another world may have left
 * before there was a path to it; otherwise no key is of a later incarnation while that is open. */
static bool is_outdated(const MPIDI_ZC_path_t * path, uint32_t incarnation)
{
    return incarnation < path->incarnation;
}

bool MPIDI_ZC_windows_connectable(MPIR_Win * win, int rank)
{
    const int number = MPIDI_ZC_WIN(win).targets[rank].path;
    MPIDI_ZC_key_t *key = &MPIDI_ZC_WIN(win).latest[rank];

    if (number < 0) {
        return true;
    }
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(number);
    if (path->state != MPIDI_ZC_PATH_OPEN ||
        (path->foreign && MPIDI_ZC_foreign_path_is_over(path->foreign))) {
        return false;
    }
    if (is_outdated(path, key->incarnation)) {
        if (!key->asked) {
            ask(win, number, key);
        }
        return false;
    }
    MPIDI_ZC_path_lane(path, MPIDI_WIN(win, am_vci))->one_sided = true;
    return true;
}

/* The key is unpacked anew, or asked for, before its next use. */
static void forget_key(MPIR_Win * win, int rank)
{
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
    MPIDI_ZC_key_t *key = &MPIDI_ZC_WIN(win).latest[rank];

    if (target->rkey) {
        ucp_rkey_destroy(target->rkey);
        target->rkey = NULL;
    }
    /* Those of a process that is back are complete: it has left when they were. */
    if (target->flushed < target->started && MPIDIG_WIN(win, members)) {
        MPIDIG_win_failed(win, rank);
    }
    target->ep = NULL;
    target->lost = false;
    target->flushed = target->started;
    key->asked = false;
    set_packed(target, key->packed);
}

/* ---- a rank that leaves ---- */

void MPIDI_ZC_windows_flushed(int path)
{
    for (MPIR_Win * win = windows.first; win; win = MPIDI_ZC_WIN(win).next) {
        const int rank = rank_in(win, path);
        if (rank >= 0) {
            MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
            target->flushed = target->started;
        }
    }
}

void MPIDI_ZC_windows_forget(int path)
{
    for (MPIR_Win * win = windows.first; win; win = MPIDI_ZC_WIN(win).next) {
        const int rank = rank_in(win, path);
        if (rank >= 0) {
            forget_key(win, rank);
        }
    }
}

void MPIDI_ZC_windows_leave(void)
{
    for (MPIR_Win * win = windows.first; win; win = MPIDI_ZC_WIN(win).next) {
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            forget_key(win, rank);
        }
        MPIDI_ZC_win_unregister(win);
    }
}

/* ---- messages ---- */

void MPIDI_ZC_windows_refused(int path, int vci)
{
    static bool reported;
    char other[32] = "a process of another world";

    MPIDI_ZC_VCI(vci).stats.window_refusals++;
    if (!reported) {
        reported = true;
        if (path < MPIR_Process.size) {
            snprintf(other, sizeof(other), "rank %d", path);
        }
        fprintf(stderr, "zc: windows between rank %d and %s, of which one has been away, go on by active "
                "messages: there is no key; the statistics count further cases\n",
                MPIR_Process.rank, other);
    }
}

void MPIDI_ZC_windows_handle_wants(int path, const MPIDI_ZC_path_message_t * message)
{
    const MPIDI_ZC_path_message_t answer = {
        .kind = MPIDI_ZC_TELL_KEY,
        .number = message->number,
        .incarnation = MPIDI_ZC_path_own_incarnation(),
    };
    MPIR_Win *win = windows.first;
    void *key;
    size_t length;

    while (win && MPIDIG_WIN(win, win_id) != message->window) {
        win = MPIDI_ZC_WIN(win).next;
    }
    if (!win) {
        return;                 /* it has been freed */
    }
    MPIDI_ZC_win_register(win, &key, &length);
    if (MPIDI_ZC_path_send(MPIDI_ZC_path_endpoint(path), path, answer, key, length) != UCS_OK ||
        !key) {
        MPIDI_ZC_windows_refused(path, 0);
    }
    if (key) {
        ucp_rkey_buffer_release(key);
    }
}

void MPIDI_ZC_windows_handle_key(int path, const MPIDI_ZC_path_received_t * received)
{
    MPIR_Win *win = windows.first;

    while (win && MPIDI_ZC_WIN(win).number != received->message.number) {
        win = MPIDI_ZC_WIN(win).next;
    }
    const int rank = win ? rank_in(win, path) : -1;
    if (rank < 0 || is_outdated(MPIDI_ZC_path_of(path), received->message.incarnation)) {
        return;
    }
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];
    MPIDI_ZC_key_t *key = &MPIDI_ZC_WIN(win).latest[rank];
    char *copy = received->length > 0 ? MPL_malloc(received->length, MPL_MEM_RMA) : NULL;
    if (!copy) {
        if (received->length > 0) {
            MPIDI_ZC_windows_refused(path, 0);
        }
        set_packed(target, NULL);
        return;
    }
    memcpy(copy, received->data, received->length);
    MPL_free(key->copy);
    *key = (MPIDI_ZC_key_t) {
        .packed = copy,
        .copy = copy,
        .incarnation = received->message.incarnation,
    };
    set_packed(target, copy);
    MPIDI_ZC_VCI(0).stats.window_keys++;
}
