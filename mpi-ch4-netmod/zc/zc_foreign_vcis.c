/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_foreign_vcis.h"
#include "zc_addresses.h"
#include "zc_connecting.h"
#include "zc_connection.h"
#include "zc_foreign.h"
#include "zc_path.h"
#include "zc_processors.h"
#include "zc_upid.h"

/* ---- the peers ---- */

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_vcis_peer(const MPIDI_ZC_foreign_t * f, int vci)
{
    static MPIDI_ZC_addr_t nobody = {.self = MPIDI_ZC_FOREIGN };
    const MPIDI_ZC_foreign_t *other = f && f->others ? f->others[vci - 1] : NULL;

    return likely(other) ? other->address : &nobody;
}

/* Puts @f on one of the lists of its VCI, which takes it off when it makes progress. */
static void put(MPIDI_ZC_foreign_t ** list, MPIDI_ZC_foreign_t * f, MPIDI_ZC_foreign_t ** next)
{
    *next = __atomic_load_n(list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(list, next, f, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    __atomic_store_n(&MPIDI_ZC_VCI(f->vci).has_ends, true, __ATOMIC_RELEASE);
}

void MPIDI_ZC_foreign_vcis_give_up(MPIDI_ZC_foreign_t * f)
{
    for (int v = 1; f->others && v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_foreign_t *other = f->others[v - 1];
        if (other) {
            put(&MPIDI_ZC_VCI(v).given_up, other, &other->next_given_up);
        }
    }
    MPL_free(f->others);
    f->others = NULL;
}

static void tell_lost(MPIDI_ZC_foreign_t * f)
{
    if (!f->told_lost) {
        f->told_lost = true;
        put(&MPIDI_ZC_VCI(f->vci).lost, f, &f->next_lost);
    }
}

void MPIDI_ZC_foreign_vcis_tell_lost(const MPIDI_ZC_foreign_t * f)
{
    for (int v = 1; f->others && v < MPIDI_global.n_vcis; v++) {
        if (f->others[v - 1]) {
            tell_lost(f->others[v - 1]);
        }
    }
}

void MPIDI_ZC_foreign_vcis_end(MPIDI_ZC_vci_t * vci)
{
    __atomic_store_n(&vci->has_ends, false, __ATOMIC_RELAXED);
    /* A connection that is in both lists was lost first: what is in the first one that is taken is,
     * if it was lost, in the second, or was. */
    MPIDI_ZC_foreign_t *given_up = __atomic_exchange_n(&vci->given_up, NULL, __ATOMIC_ACQ_REL);
    MPIDI_ZC_foreign_t *lost = __atomic_exchange_n(&vci->lost, NULL, __ATOMIC_ACQUIRE);

    while (lost) {
        MPIDI_ZC_foreign_t *next = lost->next_lost;
        lost->first_lost = true;
        /* UCX tells of the others, after what they have sent; but not of what was about to leave. */
        if (!lost->net_ep || MPIDI_ZC_path_is_away(lost->path)) {
            MPIDI_ZC_foreign_lost(lost);
        }
        lost = next;
    }
    MPIDI_ZC_disconnect_progress(vci->number);
    while (given_up) {
        MPIDI_ZC_foreign_t *next = given_up->next_given_up;
        MPIDI_ZC_foreign_end(given_up);
        given_up = next;
    }
}

/* Returns the connection of VCI 0 to the process of @rank. NULL: it is of this world. */
static MPIDI_ZC_foreign_t *foreign_of(MPIR_Comm * comm, int rank)
{
    int avtid, lpid;

    MPIDIU_comm_rank_to_pid(comm, rank, &lpid, &avtid);
    return avtid == 0 ? NULL : MPIDI_ZC_AV(&MPIDIU_get_av(avtid, lpid)).foreign;
}

/* Returns the VCIs, a bit each, on which this process has a connection to all of @comm. */
static uint32_t connected_on(MPIR_Comm * comm)
{
    uint32_t vcis = UINT32_MAX;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    for (int rank = 0; rank < comm->local_size; rank++) {
        const MPIDI_ZC_foreign_t *f = foreign_of(comm, rank);
        for (int v = 1; f && v < MPIDI_global.n_vcis; v++) {
            if (!f->others || !f->others[v - 1]) {
                vcis &= ~((uint32_t) 1 << v);
            }
        }
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return vcis;
}

/* Makes a connection of @vci to the process of @upid, which CH4 knows as @lpid of @avtid. */
static int new_connection(int vci, const MPIDI_ZC_upid_t * upid, size_t length, int avtid,
                          int lpid, MPIDI_ZC_foreign_t ** made)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_addr_t *address = MPL_calloc(1, sizeof(*address), MPL_MEM_ADDRESS);
    MPIDI_ZC_foreign_t *f = address ? MPIDI_ZC_foreign_for_ch4(vci, upid, length) : NULL;
    if (!f) {
        MPL_free(address);
    }
    MPIR_ERR_CHKANDJUMP(!f, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPL_free(f->address);       /* of one that CH4 had before, and gave up before it was open */
    f->address = address;
    f->avtid = avtid;
    f->lpid = lpid;
    mpi_errno = MPIDI_ZC_foreign_attach(f, address);
    if (mpi_errno) {
        MPIDI_ZC_foreign_end(f);
    }
    MPIR_ERR_CHECK(mpi_errno);
    *made = f;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Makes the table of the connections of other VCIs if there is none. */
static int make_table(MPIDI_ZC_foreign_t * first)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    if (!first->others) {
        first->others = MPL_calloc(MPIDI_global.n_vcis - 1, sizeof(*first->others),
                                   MPL_MEM_ADDRESS);
    }
    MPIR_ERR_CHKANDJUMP(!first->others, mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* As MPIDI_ZC_foreign_await_end_of_earlier(), on @vci. Other threads have the lock in between. Where
 * the other side still has the earlier connection of VCI 0, which has been waited for, it has that
 * of @vci, too. */
static void await_end_of_earlier(int vci, uint64_t id, const MPL_time_t * since)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    bool lingers = !MPIDI_ZC_foreign_lingers(0, id, since);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    while (lingers) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
        MPIDI_ZC_foreign_vcis_end(&MPIDI_ZC_VCI(vci));
        lingers = MPIDI_ZC_foreign_lingers(vci, id, since);
        if (lingers) {
            MPIDI_ZC_progress_vci(&MPIDI_ZC_VCI(vci));
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    }
}

/* Makes the connection of @vci to the process of @first, unless another thread does so, too. @since:
 * when that of all in the communicator has begun. */
static int connect_on(int vci, MPIDI_ZC_foreign_t * first, const MPIDI_ZC_upid_t * upid,
                      size_t length, const MPL_time_t * since)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = make_table(first);
    MPIR_ERR_CHECK(mpi_errno);
    await_end_of_earlier(vci, upid->id, since);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    MPIDI_ZC_foreign_vcis_end(&MPIDI_ZC_VCI(vci));
    const MPIDI_ZC_process_t *process = MPIDI_ZC_process_find(vci, upid->id);
    MPIDI_ZC_foreign_t *f = process ? process->attached : NULL;
    if (!f) {
        mpi_errno = new_connection(vci, upid, length, first->avtid, first->lpid, &f);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    MPIR_ERR_CHECK(mpi_errno);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    if (first->others[vci - 1] != f) {
        first->others[vci - 1] = f;     /* else it may be being read, inside the lock of @vci */
    }
    if (first->dead) {
        tell_lost(f);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* A thread that waits on @vci gives way like one that waits on VCI 0. */
static void set_idle(int vci)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    const bool crowded = MPIDI_ZC_processors_of_machine().kind == MPIDI_ZC_SHARE_CROWDED;
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    MPIDI_ZC_idle_set(&MPIDI_ZC_VCI(vci).idle, crowded);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
}

/* ---- when a communicator is made ---- */

/* Where one process has failed, the others would wait for it: all learn of it. Sets *@failed if
 * that is set at one of them. */
static int agree_on_failure(MPIR_Comm * comm, int *failed)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    mpi_errno = MPIR_Allreduce_allcomm_auto(MPI_IN_PLACE, failed, 1, MPI_INT, MPI_MAX, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Makes the connections of @vci that are missing to the processes of @comm, whose addresses are in
 * @upids. */
static int connect_to(MPIR_Comm * comm, int vci, const char *upids, size_t stride)
{
    int mpi_errno = MPI_SUCCESS;
    MPL_time_t since;

    set_idle(vci);
    MPL_wtime(&since);
    for (int rank = 0; rank < comm->local_size; rank++) {
        MPIDI_ZC_foreign_t *first = foreign_of(comm, rank);
        if (first) {
            mpi_errno = connect_on(vci, first, (const MPIDI_ZC_upid_t *)
                                   (upids + (size_t) rank * stride), stride, &since);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Exchanges the addresses of @vci, and makes the connections that are missing. *@failed: a process
 * cannot, for lack of memory, for example. */
static int connect_all(MPIR_Comm * comm, int vci, int *failed)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);
    char *upids = NULL;
    int stride;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    *failed = MPIDI_ZC_addresses_own_net(own) != MPI_SUCCESS;
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    const int length = *failed ? INT_MAX : (int) MPIDI_ZC_whole_words(own->net_length);
    mpi_errno = MPIR_Allreduce_allcomm_auto(&length, &stride, 1, MPI_INT, MPI_MAX, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    *failed = stride == INT_MAX;
    if (*failed) {
        goto fn_exit;
    }

    upids = MPL_calloc(comm->local_size, stride, MPL_MEM_ADDRESS);
    *failed = !upids;
    mpi_errno = agree_on_failure(comm, failed);
    MPIR_ERR_CHECK(mpi_errno);
    if (*failed) {
        goto fn_exit;
    }
    memcpy(upids + (size_t) comm->rank * stride, own->net, own->net_length);
    mpi_errno = MPIR_Allgather_allcomm_auto(MPI_IN_PLACE, 0, MPI_BYTE, upids, stride, MPI_BYTE,
                                            comm, &errflag);
    /* If that fails others may wait in it: there is nothing to agree on. */
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    *failed = connect_to(comm, vci, upids, stride) != MPI_SUCCESS;
    mpi_errno = agree_on_failure(comm, failed);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(upids);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_foreign_vcis_choose(MPIR_Comm * comm, int *seq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int first[] = { *seq, MPIDI_global.n_vcis };

    *seq = 0;
    mpi_errno = MPIR_Bcast_allcomm_auto(first, 2, MPI_INT, 0, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    if (first[1] == 1) {
        goto fn_exit;
    }

    /* The lowest bits are set in each, so the bits that all have are those of the fewest VCIs. */
    uint32_t vcis[] = { ((uint32_t) 1 << MPIDI_global.n_vcis) - 1, connected_on(comm) };
    mpi_errno = MPIR_Allreduce_allcomm_auto(MPI_IN_PLACE, vcis, 2, MPI_UINT32_T, MPI_BAND, comm,
                                            &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, MPI_ERR_OTHER, "**coll_fail");
    const int vci = first[0] % __builtin_popcount(vcis[0]);
    int failed = 0;
    if (vci > 0 && !(vcis[1] & (uint32_t) 1 << vci)) {
        MPIDI_ZC_connecting_begin();
        mpi_errno = connect_all(comm, vci, &failed);
        MPIDI_ZC_connecting_done();
        MPIR_ERR_CHECK(mpi_errno);
    }
    *seq = failed ? 0 : vci;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
