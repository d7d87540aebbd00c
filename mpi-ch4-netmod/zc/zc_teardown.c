/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "mpidu_init_shm.h"
#include "zc_teardown.h"
#include "zc_abridged.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_connecting.h"
#include "zc_context.h"
#include "zc_detach.h"
#include "zc_foreign.h"
#include "zc_landing_thread.h"
#include "zc_match.h"
#include "zc_members.h"
#include "zc_processors.h"
#include "zc_stats.h"
#include "zc_peer.h"
#include "zc_worker.h"
#include "zc_noinline.h"

/* The netmod ends without a hang, and without an error from a peer that is faster, by this rule:
 * no process blocks outside UCX while another still needs its progress, and none closes
 * connections while another still makes progress. All VCIs take part; the barriers are VCI 0's.
 *
 *   0. drain       Transfers that this process has asked for have ended, and no new ones begin.
 *                  Processes of other worlds have been sent a FIN, and have answered it or had the
 *                  time to.
 *   1. flush       This process's messages have been sent (which needs the peers' progress).
 *   2. barrier     It uses active messages, and makes progress: all ranks have done 0 and 1.
 *   3. flush       The barrier's messages have been sent, too, and the connections have been
 *                  made that it may have been the first to need.
 *   4. barrier     It uses the same connections: all ranks have done 3. No flush follows, which a
 *                  peer in 5 could not answer (UCX's TCP asks the peer whether it has received
 *                  everything). None is needed: on a connection where nothing else is under way, a
 *                  message that is complete has been sent.
 *   5. barrier     It uses PMI, without progress: all ranks have done 4, and none makes progress.
 *   6. destroy     Connections are closed, and no peer notices.
 *
 * If a rank has died without MPI_Finalize, and the launcher lets the others live, the ranks that
 * are connected to it notice. They signal the death to their neighbours in the barrier, those to
 * theirs, and all leave without 5 and 6. (A rank that is in 5 already receives no signal: it is
 * for the launcher to notice a death between its 4 and its 5.)
 *
 * Stock ch4:ucx waits in 1 for a disconnect that a peer in 5 cannot answer. */

enum { MAX_ROUNDS = sizeof(MPIDI_ZC_global.teardown_signals) / sizeof(int) };

/* Waits for messages that are landing when finalize begins. (A program that does not receive them
 * is not correct MPI, but must not hang.) */
static void drain(void)
{
    MPIDI_ZC_global.closing = true;
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        while ((MPIDI_ZC_VCI(v).nr_fetching > 0 || MPIDI_ZC_channels_send(&MPIDI_ZC_VCI(v))) &&
               !MPIDI_ZC_global.rank_died) {
            MPIDI_ZC_progress_all();
        }
    }
}

#define SIGNAL_SECONDS 1

/* A flush does not wait longer where a process of another world has died. */
#define FLUSH_SECONDS 1

static int barrier_rounds(void)
{
    int rounds = 0;
    while ((1L << rounds) < MPIR_Process.size) {
        rounds++;
    }
    return rounds;
}

/* Returns the rank that is @distance further on in the barrier, or back. */
static MPIDI_ZC_addr_t *neighbour(long distance)
{
    const long size = MPIR_Process.size;
    return &MPIDI_ZC_AV(&MPIDIU_get_av(0, (int) ((MPIR_Process.rank + distance + size) % size)));
}

/* Sends the signal of @round. UCP reads it until it is sent, which may be never. */
static ucs_status_ptr_t send_signal(MPIDI_ZC_addr_t * to, MPIDI_ZC_round_t round)
{
    static MPIDI_ZC_round_t death = MPIDI_ZC_ROUND_DEATH, rounds[MAX_ROUNDS];
    MPIDI_ZC_round_t *kept = round == MPIDI_ZC_ROUND_DEATH ? &death : &rounds[round];
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    *kept = round;
    return ucp_am_send_nbx(to->lane.ep, MPIDI_ZC_AM_TEARDOWN, kept, sizeof(*kept), NULL, 0, &param);
}

/* Sends the other ranks of the barrier the signal that a rank has died. They may be unable to
 * notice: they may not be connected to that rank, or share memory with it. The rank that is dead
 * does not receive the signal, so the time for sending is limited. */
static void signal_death(void)
{
    ucs_status_ptr_t requests[2 * MAX_ROUNDS];
    int nr_requests = 0;
    MPL_time_t start, now;
    double waited = 0;

    for (int i = 0; i < barrier_rounds(); i++) {
        for (int back = 0; back < 2; back++) {
            MPIDI_ZC_addr_t *to = neighbour(back ? -(1L << i) : 1L << i);
            if (MPIDI_ZC_lane_endpoint(to, &to->lane, 0) == MPI_SUCCESS) {
                ucs_status_ptr_t request = send_signal(to, MPIDI_ZC_ROUND_DEATH);
                if (UCS_PTR_IS_PTR(request)) {
                    requests[nr_requests++] = request;
                }
            }
        }
    }
    MPL_wtime(&start);
    while (nr_requests > 0 && waited < SIGNAL_SECONDS) {
        MPIDI_ZC_progress_all();
        while (nr_requests > 0 &&
               ucp_request_check_status(requests[nr_requests - 1]) != UCS_INPROGRESS) {
            ucp_request_free(requests[--nr_requests]);
        }
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
}

/* Waits until UCP has completed @request, a flush of @vci. Over shared memory that does not end where a process
 * of another world has died, and has not taken what it was sent. So the time is limited then. */
static void await_flush(const MPIDI_ZC_vci_t * vci, ucs_status_ptr_t request)
{
    MPL_time_t start, now;
    double waited = 0;

    MPL_wtime(&start);
    while (ucp_request_check_status(request) == UCS_INPROGRESS && !MPIDI_ZC_global.rank_died &&
           !(vci->has_dead && waited >= FLUSH_SECONDS)) {
        MPIDI_ZC_progress_all();
        MPL_wtime(&now);
        MPL_wtime_diff(&start, &now, &waited);
    }
    ucp_request_free(request);
}

static int flush(void)
{
    int mpi_errno = MPI_SUCCESS;
    ucp_request_param_t param = { 0 };

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(v));
        ucs_status_ptr_t request = ucp_worker_flush_nbx(MPIDI_ZC_VCI(v).worker, &param);
        MPIDI_ZC_CHECK_POINTER(request, "ucp_worker_flush_nbx");
        if (request) {
            await_flush(&MPIDI_ZC_VCI(v), request);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

ucs_status_t MPIDI_ZC_teardown_handler(void *arg, const void *header, size_t header_length,
                                       void *data, size_t length,
                                       const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_round_t round;
    if (header_length != sizeof(round)) {
        return UCS_OK;
    }
    memcpy(&round, header, sizeof(round));
    if (round == MPIDI_ZC_ROUND_DEATH) {
        MPIDI_ZC_global.rank_died = true;
    } else if (round < MAX_ROUNDS) {
        MPIDI_ZC_global.teardown_signals[round]++;
    }
    return UCS_OK;
}

/* Dissemination barrier (Hensgen, Finkel, Manber 1988): in round k every rank signals the one 2^k
 * further on. It uses no communicator, since those have been freed by now. @nth: from 1. */
static int barrier(int nth)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_ZC_round_t rounds = barrier_rounds();

    for (MPIDI_ZC_round_t round = 0; round < rounds && !MPIDI_ZC_global.rank_died; round++) {
        MPIDI_ZC_addr_t *to = neighbour(1L << round);
        mpi_errno = MPIDI_ZC_lane_endpoint(to, &to->lane, 0);
        MPIR_ERR_CHECK(mpi_errno);
        ucs_status_ptr_t request = send_signal(to, round);
        MPIDI_ZC_CHECK_POINTER(request, "ucp_am_send_nbx");
        MPIDI_ZC_wait(request);
        while (MPIDI_ZC_global.teardown_signals[round] < nth && !MPIDI_ZC_global.rank_died) {
            MPIDI_ZC_progress_all();
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void free_vci(MPIDI_ZC_vci_t * vci)
{
    MPIDI_ZC_channels_free(vci);
    if (vci->worker) {
        MPIDI_ZC_unconnected_drop(vci);
        MPIDI_ZC_arrivals_drop(vci);
        MPIDI_ZC_match_drop(vci);
        MPIDI_ZC_worker_close(vci);
    }
    MPIDI_ZC_bundle_free(vci);
    MPL_free(vci->lanes);
    MPL_free(vci->bulk.eps);
    MPL_free(vci->net);
    zcp_destroy(vci->predictor);
}

/* Frees a table that the ranks of this host share. */
static void free_table(void *table)
{
    if (table) {
        (void) MPIDU_Init_shm_free(table);
    }
}

/* Is called after an initialisation that has failed half-way, too. */
void MPIDI_ZC_free_all(void)
{
    MPIDI_ZC_report_end();
    MPIDI_ZC_global.over = true;
    MPIDI_ZC_members_end();
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        free_vci(&MPIDI_ZC_VCI(v));
    }
    MPIDI_ZC_stream_finalize();
    MPIDI_ZC_context_close();
    MPIDI_ZC_detach_free();
    MPIDI_ZC_upid_server_stop();
    MPIDI_ZC_foreign_free();
    MPIDI_ZC_processors_free();
    MPIDIU_avt_free_hook = NULL;
    MPIDIU_foreign_node_hook = NULL;
    MPIR_Comm_worlds_hook = NULL;
    MPIDI_ZC_connecting_end();
    free_table(MPIDI_ZC_global.world);
    free_table(MPIDI_ZC_global.nets);
    free_table(MPIDI_ZC_global.lane_addresses);
    MPL_free(MPIDI_ZC_global.params.stats_file);
    zc_destroy(MPIDI_ZC_global.landing);
    memset(&MPIDI_ZC_global, 0, sizeof(MPIDI_ZC_global));
}

int MPIDI_ZC_mpi_finalize_hook(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_ZC_report_t report;

    MPIDI_ZC_landing_thread_stop();
    if (!MPIDI_global.is_initialized) {
        goto fn_exit;
    }

    MPIDI_ZC_detach_finalize();
    MPIDI_ZC_report_read(&report);
    MPIDI_ZC_report_write_file(&report);
    mpi_errno = MPIDI_ZC_report_send(&report);
    MPIR_ERR_CHECK(mpi_errno);

    drain();
    MPIDI_ZC_foreign_finalize();
    mpi_errno = flush();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = barrier(1);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_report_print_all();
    mpi_errno = flush();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = barrier(2);
    MPIR_ERR_CHECK(mpi_errno);
    if (unlikely(MPIDI_ZC_global.rank_died)) {
        signal_death();
        /* What UCX still has under way, it keeps. */
        MPIDI_ZC_report_end();
        MPIDI_ZC_global.over = true;
        goto fn_exit;
    }
    mpi_errno = MPIR_pmi_barrier();
    MPIR_ERR_CHECK(mpi_errno);

    MPIDI_ZC_free_all();

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
