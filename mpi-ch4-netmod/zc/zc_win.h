/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WIN_H_INCLUDED
#define ZC_WIN_H_INCLUDED

/* The memory of a window as UCX sees it; MPIDI_ZC_win_t and MPIDI_ZC_target_t are in
 * zc_pre.h. A target without a key is reached by active messages only. */

#include "zc_impl.h"

#define MPIDI_ZC_WIN(win) ((win)->dev.netmod.zc)

/* Waits until all that UCX does through @win is done, at the targets, too. */
int MPIDI_ZC_win_flush(MPIR_Win * win);
int MPIDI_ZC_win_flush_target(int rank, MPIR_Win * win);

/* UCP's callback at the end of an operation. @user_data: an MPIR_Request or NULL. */
void MPIDI_ZC_rma_done(void *request, ucs_status_t status, void *user_data);

#endif /* ZC_WIN_H_INCLUDED */
