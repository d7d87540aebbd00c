/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDIG_MEMBER_H_INCLUDED
#define MPIDIG_MEMBER_H_INCLUDED

/* Processes of a window, of which some may be lost while the others go on. A netmod that knows of such
 * calls MPIDIG_win_watch() when it is told of the window, and MPIDIG_win_lost() for a process of which
 * nothing comes any more. It ends the operations of this process on that one (MPIDIG_rma_op_lost()),
 * and those of that one on this process (MPIDIG_rma_data_lost()).
 *
 * A window has no members otherwise, and nothing below does anything.
 *
 * What the lost process was asked for ends as if it had answered, but with a failure. The call that
 * waits returns an error when it has done all that concerns the others, and a call that ends an epoch
 * has ended it then:
 *
 *                    MPI_Win_lock      MPI_Win_unlock
 *   NOTHING ───────▶ LOCK ──┐          UNLOCK ──┐         LOCKALL, UNLOCKALL: likewise
 *      ▲                    │ answer            │ answer
 *      ├────────────────────┴───────────────────┘
 *      └── the process is lost: the lock is granted, or given back, and `failed` is set; but not
 *          for LOCKALL, since giving it back will fail
 *
 * What the lost process has is given up: its locks, its requests for locks, and its posts.
 *
 * All are called inside the lock of the window's VCI. */

/* Begins to watch the processes of @win, a new window. */
int MPIDIG_win_watch(MPIR_Win * win);

/* The process of @rank is lost. */
void MPIDIG_win_lost(MPIR_Win * win, int rank);

/* Something that the process of @rank was asked for has failed, since it is lost. */
void MPIDIG_win_failed(MPIR_Win * win, int rank);

/* The process of @rank will not answer what it was asked for. */
void MPIDIG_win_unanswered(MPIR_Win * win, int rank);

int MPIDIG_win_count_lost(MPIR_Win * win, MPIR_Group * group, bool completed);
int MPIDIG_win_clear_failure(MPIR_Win * win, int rank);
int MPIDIG_win_clear_failures(MPIR_Win * win);

/* Is the process of @rank lost? */
MPL_STATIC_INLINE_PREFIX bool MPIDIG_win_has_lost(const MPIR_Win * win, int rank)
{
    return unlikely(MPIDIG_WIN(win, members)) && MPIDIG_WIN(win, members)[rank].lost;
}

/* Is @mpi_errno that of a lost process of @win? */
MPL_STATIC_INLINE_PREFIX bool MPIDIG_win_is_loss(const MPIR_Win * win, int mpi_errno)
{
    return MPIDIG_WIN(win, members) && MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED;
}

/* Returns @mpi_errno, unless it is that of a lost process: then it sets *@loss. */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_keep_loss(const MPIR_Win * win, int mpi_errno, int *loss)
{
    if (unlikely(mpi_errno) && MPIDIG_win_is_loss(win, mpi_errno)) {
        *loss = mpi_errno;
        return MPI_SUCCESS;
    }
    return mpi_errno;
}

/* @rank is about to be asked for something. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_win_await(MPIR_Win * win, int rank, MPIDIG_awaits_t what)
{
    if (unlikely(MPIDIG_WIN(win, members))) {
        MPIDIG_WIN(win, members)[rank].awaits = what;
    }
}

/* It has been, by a message whose error is returned, unless it is lost. (A message that nobody will
 * read may have no error.) */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_asked(MPIR_Win * win, int rank, int mpi_errno)
{
    if (MPIDIG_win_has_lost(win, rank) || MPIDIG_win_is_loss(win, mpi_errno)) {
        MPIDIG_win_unanswered(win, rank);
        return MPI_SUCCESS;
    }
    if (unlikely(mpi_errno)) {
        MPIDIG_win_await(win, rank, MPIDIG_AWAITS_NOTHING);
    }
    return mpi_errno;
}

/* Returns @loss, or the error of what the process of @rank was asked for since the last call. */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_take_failure(MPIR_Win * win, int rank, int loss)
{
    int error = MPI_SUCCESS;

    if (unlikely(MPIDIG_WIN(win, nr_failed) > 0)) {
        error = MPIDIG_win_clear_failure(win, rank);
    }
    return unlikely(loss) ? loss : error;
}

/* The same of all processes. */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_take_failures(MPIR_Win * win, int loss)
{
    int error = MPI_SUCCESS;

    if (unlikely(MPIDIG_WIN(win, nr_failed) > 0)) {
        error = MPIDIG_win_clear_failures(win);
    }
    return unlikely(loss) ? loss : error;
}

/* How many lost processes of @group have not posted, and will not? */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_lost_without_post(MPIR_Win * win, MPIR_Group * group)
{
    return likely(MPIDIG_WIN(win, nr_lost) == 0) ? 0 : MPIDIG_win_count_lost(win, group, false);
}

/* The same of MPI_Win_complete(). */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_lost_without_complete(MPIR_Win * win, MPIR_Group * group)
{
    return likely(MPIDIG_WIN(win, nr_lost) == 0) ? 0 : MPIDIG_win_count_lost(win, group, true);
}

/* The error of an exposure epoch for @group, which has ended. */
MPL_STATIC_INLINE_PREFIX int MPIDIG_win_exposure_error(MPIR_Win * win, MPIR_Group * group)
{
    return likely(MPIDIG_win_lost_without_complete(win, group) == 0) ? MPI_SUCCESS :
        MPIX_ERR_PROC_FAILED;
}

/* The posts that pw.count has counted have been used. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_win_forget_posts(MPIR_Win * win)
{
    if (unlikely(MPIDIG_WIN(win, members))) {
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            MPIDIG_WIN(win, members)[rank].posts = 0;
        }
    }
}

/* Those that sc.count has counted have been used. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_win_forget_completes(MPIR_Win * win)
{
    if (unlikely(MPIDIG_WIN(win, members))) {
        for (int rank = 0; rank < win->comm_ptr->local_size; rank++) {
            MPIDIG_WIN(win, members)[rank].completes = 0;
        }
    }
}

#endif /* MPIDIG_MEMBER_H_INCLUDED */
