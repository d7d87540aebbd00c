/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_peer.h"
#include "zc_foreign.h"
#include "zc_path.h"

/* A process that is reached over the network has died, or the connection to it is lost. There is
 * no request that could report that to the application, which may wait for something else. The
 * launcher detects the death of a process that is reached over shared memory; UCX cannot. */
void MPIDI_ZC_peer_lost(int rank, const char *why)
{
    char text[MPI_MAX_ERROR_STRING];

    snprintf(text, sizeof(text), "zc: rank %d has lost its connection to rank %d: %s",
             MPIR_Process.rank, rank, why);
    if (!MPIDI_ZC_global.closing) {
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, text);
    } else if (!MPIDI_ZC_global.rank_died && !MPIDI_ZC_global.over) {
        /* In finalize there is nothing left to be lost by it. */
        fprintf(stderr, "%s; MPI_Finalize waits for nobody any more\n", text);
        MPIDI_ZC_global.rank_died = true;
    }
}

/* @arg: peer_and_vci() */
static void peer_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    const int rank = (int) ((intptr_t) arg / MPIDI_CH4_MAX_VCIS);
    const int vci = (int) ((intptr_t) arg % MPIDI_CH4_MAX_VCIS);

    if (!MPIDI_ZC_path_expects_loss(rank, vci, ep)) {
        MPIDI_ZC_peer_lost(rank, ucs_status_string(status));
    }
}

static void *peer_and_vci(int rank, int vci)
{
    return (void *) ((intptr_t) rank * MPIDI_CH4_MAX_VCIS + vci);
}

static const ucp_address_t *address_of(int rank, int vci)
{
    const int nr_others = MPIDI_global.n_vcis - 1;
    const void *later = MPIDI_ZC_path_address(rank, vci);
    const void *address = unlikely(later) ? later : vci == 0 ? MPIDI_ZC_upid_of(rank)->address :
        MPIDI_ZC_global.lane_addresses +
        ((size_t) rank * nr_others + vci - 1) * MPIDI_ZC_global.lane_stride;
    return address;
}

bool MPIDI_ZC_peer_is_local(int rank)
{
    return MPIR_Process.node_map[rank] == MPIR_Process.node_map[MPIR_Process.rank];
}

/* @near: the process is reached over shared memory. */
static ucs_status_t make_endpoint(int rank, bool near, int vci, ucp_ep_h * ep)
{
    /* UCX 1.13 calls the handler for a lost connection in mode NONE, too. With
     * UCP_ERR_HANDLING_MODE_PEER it would not write a rendezvous' data to where the
     * receiver wants it (no rma_bw lane: TCP cannot revoke memory), but send 64 KiB at a
     * time through a buffer, which is a quarter slower when both directions are busy. But only
     * those endpoints can be closed alone, when their rank leaves. (UCX has no errors of a process
     * with itself.) */
    const bool closes_alone = MPIDI_ZC_global.params.detach && rank != MPIR_Process.rank;
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            (near ? 0 : UCP_EP_PARAM_FIELD_ERR_HANDLER),
        .address = address_of(rank, vci),
        .err_mode = closes_alone && !near ? UCP_ERR_HANDLING_MODE_PEER :
            UCP_ERR_HANDLING_MODE_NONE,
        .err_handler = {.cb = peer_failed,.arg = peer_and_vci(rank, vci)},
    };
    ucs_status_t status = ucp_ep_create(MPIDI_ZC_VCI(vci).worker, &params, ep);
    MPIDI_ZC_VCI(vci).stats.endpoints += status == UCS_OK;
    return status;
}

/* Is the process reached over shared memory? */
static bool is_near(int rank)
{
    return MPIDI_ZC_peer_is_local(rank) && MPIDI_ZC_global.transport.shared_memory;
}

ucs_status_t MPIDI_ZC_peer_endpoint(int rank, int vci, ucp_ep_h * ep)
{
    return make_endpoint(rank, is_near(rank), vci, ep);
}

static void ignore_loss(void *arg, ucp_ep_h ep, ucs_status_t status)
{
}

ucs_status_t MPIDI_ZC_peer_endpoint_for_answer(const void *address, ucp_ep_h * ep)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
            UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = ignore_loss},
    };
    return ucp_ep_create(MPIDI_ZC_VCI(0).worker, &params, ep);
}

int MPIDI_ZC_lane_connect_first(int rank, MPIDI_ZC_lane_t * lane, int vci, ucp_ep_h * ep)
{
    int mpi_errno = MPI_SUCCESS;
    const bool near = is_near(rank);

    ucs_status_t status = make_endpoint(rank, near, vci, ep);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_ep_create");
    lane->bulk_apart = !near && rank != MPIR_Process.rank && MPIDI_ZC_global.params.bulk_apart;
    MPIDI_ZC_lane_share_anew(lane);
    lane->channels = !near && rank != MPIR_Process.rank && MPIDI_ZC_global.params.channels;
    lane->short_max = near ? MPIDI_ZC_SHORT_MAX_LOCAL : MPIDI_ZC_SHORT_MAX;
    lane->bundles = !near && MPIDI_ZC_global.params.bundle;
    lane->one_copy = near && MPIDI_ZC_global.transport.one_copy;

  fn_exit:
    return mpi_errno;
  fn_fail:
    *ep = NULL;
    goto fn_exit;
}

int MPIDI_ZC_lane_connect(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci)
{
    if (unlikely(lane->paused)) {
        return MPI_SUCCESS;
    }
    if (unlikely(peer->self & MPIDI_ZC_FOREIGN)) {
        return peer->foreign ? MPIDI_ZC_foreign_open(peer->foreign) : MPIDI_ZC_LOST;
    }
    return MPIDI_ZC_lane_connect_first(MPIDI_ZC_world_rank_of(peer), lane, vci, &lane->ep);
}

/* Returns a place for one more endpoint in @vci's table; 0: there is no memory for it. */
static uint32_t reserve(MPIDI_ZC_vci_t * vci)
{
    for (uint32_t i = 1; MPIDI_ZC_global.paths && i <= vci->bulk.nr; i++) {
        if (!vci->bulk.eps[i]) {
            return i;           /* it was that of a rank that has left */
        }
    }
    if (vci->bulk.nr + 1 >= vci->bulk.room) {
        const uint32_t room = MPL_MAX(8, 2 * vci->bulk.room);
        ucp_ep_h *eps = MPL_realloc(vci->bulk.eps, room * sizeof(*eps), MPL_MEM_OTHER);
        if (!eps) {
            return 0;
        }
        vci->bulk.eps = eps;
        vci->bulk.room = room;
    }
    return ++vci->bulk.nr;
}

void MPIDI_ZC_lane_connect_bulk(const MPIDI_ZC_addr_t * peer, MPIDI_ZC_lane_t * lane, int vci)
{
    static bool reported;
    MPIDI_ZC_vci_t *own = &MPIDI_ZC_VCI(vci);
    const int rank = MPIDI_ZC_world_rank_of(peer);
    const int used = MPIR_Process.rank < rank ? 0 : 1;
    /* One that only the higher rank has could not be flushed by the lower. */
    const int wanted = MPIDI_ZC_global.paths ? 2 : used + 1;
    const uint32_t place = reserve(own);
    ucs_status_t status = place ? UCS_OK : UCS_ERR_NO_MEMORY;
    ucp_ep_h eps[2] = { NULL, NULL };

    for (int made = 0; made < wanted && status == UCS_OK; made++) {
        status = make_endpoint(rank, false, vci, &eps[made]);
        own->stats.bulk_endpoints += status == UCS_OK;
        if (status == UCS_OK && MPIDI_ZC_global.paths) {
            MPIDI_ZC_path_add_bulk(rank, vci, eps[made]);
        }
    }
    if (place) {
        own->bulk.eps[place] = status == UCS_OK ? eps[used] : NULL;
    }
    if (likely(status == UCS_OK)) {
        lane->bulk = place;
        return;
    }
    lane->bulk_apart = false;
    own->stats.bulk_refusals++;
    if (!reported) {
        reported = true;
        fprintf(stderr, "zc: rank %d sends bulk to rank %d over the connection of all else: no "
                "other one can be made (%s); the statistics count further cases\n",
                MPIR_Process.rank, rank, ucs_status_string(status));
    }
}
