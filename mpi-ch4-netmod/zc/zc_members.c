/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_foreign.h"
#include "zc_members.h"
#include "zc_peer.h"
#include "zc_win.h"
#include "zc_noinline.h"

static MPIR_Win *windows[MPIDI_CH4_MAX_VCIS];   /* by VCI */

/* Returns the connection to the process of @rank in @win. NULL: it is of this world. */
static MPIDI_ZC_foreign_t *member(const MPIR_Win * win, int rank)
{
    return MPIDI_ZC_peer_on(MPIDIU_comm_rank_to_av(win->comm_ptr, rank),
                            MPIDI_WIN(win, am_vci))->foreign;
}

bool MPIDI_ZC_members_of_several_worlds(const MPIR_Win * win)
{
    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        if (member(win, rank)) {
            return true;
        }
    }
    return false;
}

static void lose(MPIR_Win * win, int rank)
{
    MPIDI_ZC_win_target_lost(win, rank);
    MPIDIG_win_lost(win, rank);
}

int MPIDI_ZC_members_add(MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    const int vci = MPIDI_WIN(win, am_vci);

    if (likely(MPIDI_ZC_foreign_known() == 0)) {
        return MPI_SUCCESS;
    }
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    if (MPIDI_ZC_members_of_several_worlds(win)) {
        mpi_errno = MPIDIG_win_watch(win);
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_ZC_WIN(win).next_of_vci = windows[vci];
        windows[vci] = win;
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            if (MPIDI_ZC_foreign_is_dead(member(win, rank))) {
                lose(win, rank);
            }
        }
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_members_remove(MPIR_Win * win)
{
    const int vci = MPIDI_WIN(win, am_vci);
    MPIR_Win **link = &windows[vci];

    if (likely(!MPIDIG_WIN(win, members))) {
        return;
    }
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    while (*link && *link != win) {
        link = &MPIDI_ZC_WIN(*link).next_of_vci;
    }
    if (*link) {
        *link = MPIDI_ZC_WIN(win).next_of_vci;
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
}

void MPIDI_ZC_members_lost(const MPIDI_ZC_foreign_t * f)
{
    for (MPIR_Win * win = windows[f->vci]; win; win = MPIDI_ZC_WIN(win).next_of_vci) {
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            if (member(win, rank) == f) {
                lose(win, rank);
            }
        }
    }
}

void MPIDI_ZC_members_end(void)
{
    for (int v = 0; v < MPIDI_CH4_MAX_VCIS; v++) {
        while (windows[v]) {
            MPIR_Win *win = windows[v];
            (void) MPIDI_ZC_mpi_win_free_hook(win);
            MPL_free(MPIDIG_WIN(win, members));
            MPIDIG_WIN(win, members) = NULL;
        }
    }
}
