/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpidimpl.h"
#include "mpidch4r.h"
#include "mpidig_rma_callbacks.h"

int MPIDIG_win_watch(MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDIG_WIN(win, members) = MPL_calloc(win->comm_ptr->local_size,
                                          sizeof(MPIDIG_win_member_t), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!MPIDIG_WIN(win, members), mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDIG_win_failed(MPIR_Win * win, int rank)
{
    MPIDIG_win_member_t *member = &MPIDIG_WIN(win, members)[rank];

    if (!member->failed) {
        member->failed = true;
        MPIDIG_WIN(win, nr_failed)++;
    }
}

int MPIDIG_win_clear_failure(MPIR_Win * win, int rank)
{
    if (rank < 0 || !MPIDIG_WIN(win, members)[rank].failed) {
        return MPI_SUCCESS;
    }
    MPIDIG_WIN(win, members)[rank].failed = false;
    MPIDIG_WIN(win, nr_failed)--;
    return MPIX_ERR_PROC_FAILED;
}

int MPIDIG_win_clear_failures(MPIR_Win * win)
{
    int error = MPI_SUCCESS;

    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        const int one = MPIDIG_win_clear_failure(win, rank);
        error = one ? one : error;
    }
    return error;
}

void MPIDIG_win_unanswered(MPIR_Win * win, int rank)
{
    MPIDIG_win_member_t *member = &MPIDIG_WIN(win, members)[rank];
    MPIDIG_win_target_t *target = MPIDIG_win_target_find(win, rank);

    if (member->awaits != MPIDIG_AWAITS_LOCKALL) {
        MPIDIG_win_failed(win, rank);
    }                           /* else giving it back will fail */
    switch (member->awaits) {
        case MPIDIG_AWAITS_NOTHING:
            break;
        case MPIDIG_AWAITS_LOCK:
            target->sync.lock.locked = 1;
            break;
        case MPIDIG_AWAITS_UNLOCK:
            target->sync.lock.locked = 0;
            break;
        case MPIDIG_AWAITS_LOCKALL:
            MPIDIG_WIN(win, sync).lockall.allLocked += 1;
            break;
        case MPIDIG_AWAITS_UNLOCKALL:
            MPIDIG_WIN(win, sync).lockall.allLocked -= 1;
            break;
    }
    member->awaits = MPIDIG_AWAITS_NOTHING;
}

int MPIDIG_win_count_lost(MPIR_Win * win, MPIR_Group * group, bool completed)
{
    int number = 0;

    for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
        const MPIDIG_win_member_t *member = &MPIDIG_WIN(win, members)[rank];
        number += member->lost && (completed ? member->completes : member->posts) == 0 &&
            MPIDIU_valid_group_rank(win->comm_ptr, rank, group);
    }
    return number;
}

void MPIDIG_win_lost(MPIR_Win * win, int rank)
{
    MPIDIG_win_member_t *member = &MPIDIG_WIN(win, members)[rank];

    if (member->lost) {
        return;
    }
    member->lost = true;
    MPIDIG_WIN(win, nr_lost)++;
    if (member->awaits != MPIDIG_AWAITS_NOTHING) {
        MPIDIG_win_unanswered(win, rank);
    }
    MPIDIG_WIN(win, sync).pw.count -= member->posts;
    member->posts = 0;
    MPIDIG_win_locks_lost(win, rank);
}
