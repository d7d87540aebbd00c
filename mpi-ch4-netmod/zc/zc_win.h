/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WIN_H_INCLUDED
#define ZC_WIN_H_INCLUDED

/* This file makes the memory of a window accessible to UCX. MPIDI_ZC_win_t and MPIDI_ZC_target_t
 * are in zc_pre.h. A target without a key is reached by active messages only. */

#include "zc_impl.h"
#include "zc_path.h"

#define MPIDI_ZC_WIN(win) ((win)->dev.netmod.zc)

/* Connects to the target of @rank, whose key is still packed. Callers use MPIDI_ZC_win_target(). */
MPIDI_ZC_target_t *MPIDI_ZC_win_connect(MPIR_Win * win, int rank);

/* The process of @rank, which is of another world, has died: active messages are refused at once. It is called
 * inside the lock of the window's VCI. */
void MPIDI_ZC_win_target_lost(MPIR_Win * win, int rank);

/* Returns the target of @rank. Many ranks are never a target, so each is connected, and its key
 * unpacked, when it is first used. NULL: only active messages reach it. */
MPL_STATIC_INLINE_PREFIX MPIDI_ZC_target_t *MPIDI_ZC_win_target(MPIR_Win * win, int rank)
{
    MPIDI_ZC_target_t *target = &MPIDI_ZC_WIN(win).targets[rank];

    if (unlikely(__atomic_load_n(&target->packed, __ATOMIC_ACQUIRE))) {
        return MPIDI_ZC_win_connect(win, rank);
    }
    return target->rkey ? target : NULL;
}

/* May UCX be given an operation on @target of @win, which has been connected? False: its rank, or this
 * one, is leaving or away. It is called inside the lock of the window's VCI. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_win_target_is_open(const MPIR_Win * win,
                                                          const MPIDI_ZC_target_t * target)
{
    return likely(!MPIDI_ZC_WIN(win).latest) ||
        (target->rkey && (target->path < 0 ||
                          MPIDI_ZC_path_of(target->path)->state == MPIDI_ZC_PATH_OPEN));
}

/* Registers the memory of this process, if it is not, and packs the key to it, which the caller releases
 * (ucp_rkey_buffer_release()). Neither is possible for every kind of memory; *@key is then NULL, which is
 * no error. It is called inside the lock of the window's VCI, as is what undoes that. */
void MPIDI_ZC_win_register(MPIR_Win * win, void **key, size_t * key_bytes);
void MPIDI_ZC_win_unregister(MPIR_Win * win);

/* Wait until all operations of UCX on @win are complete at the targets. */
int MPIDI_ZC_win_flush(MPIR_Win * win);
int MPIDI_ZC_win_flush_target(int rank, MPIR_Win * win);

/* UCP calls this at the end of an operation. @user_data: an MPIR_Request or NULL. */
void MPIDI_ZC_rma_done(void *request, ucs_status_t status, void *user_data);

#endif /* ZC_WIN_H_INCLUDED */
