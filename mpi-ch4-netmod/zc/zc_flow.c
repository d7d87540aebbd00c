/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_flow.h"
#include "zc_foreign.h"
#include "zc_path.h"
#include "zc_peer.h"
#include "zc_sender.h"

/* Costs are multiples of this. */
#define GRAIN 32
/* A window grows by this at least. */
#define GROWTH_MIN 65536
/* No connection to another world begins with more than this part of what is left to begin with. */
#define FOREIGN_FEW 4
/* The least that one begins with while there is as much. */
#define FOREIGN_MIN (8 * MPIDI_ZC_CELL_MIN)

int32_t MPIDI_ZC_flow_initial_window(size_t budget, int nr_processes, int nr_vcis)
{
    if (budget == SIZE_MAX) {
        return MPIDI_ZC_UNLIMITED;
    }
    const size_t lanes = MPL_MAX((size_t) nr_processes * nr_vcis, 1);
    const size_t share = budget / 2 / lanes;
    return MPL_MIN(share, (size_t) MPIDI_ZC_WINDOW_MAX) & ~(MPIDI_ZC_CELL_MIN - 1);
}

int MPIDI_ZC_flow_await_requests(const MPIDI_ZC_vci_t * vci)
{
    int mpi_errno = MPI_SUCCESS;

    while (__atomic_load_n(&vci->nr_held, __ATOMIC_RELAXED) >= MPIDI_ZC_HELD_MAX) {
        mpi_errno = MPID_Progress_test(NULL);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- the half of the budget that windows grow from ---- */

static size_t room_to_grow(void)
{
    const size_t granted = __atomic_load_n(&MPIDI_ZC_global.granted, __ATOMIC_RELAXED);
    const size_t growth = MPIDI_ZC_global.window_growth;
    return granted < growth ? growth - granted : 0;
}

/* Reserves @least to @most bytes of it. Returns 0 if there are not so many. */
static uint32_t reserve(size_t least, size_t most)
{
    size_t granted = __atomic_load_n(&MPIDI_ZC_global.granted, __ATOMIC_RELAXED), bytes;

    do {
        const size_t growth = MPIDI_ZC_global.window_growth;
        const size_t room = granted < growth ? growth - granted : 0;
        bytes = MPL_MIN(room, most) & ~(size_t) (GRAIN - 1);
        if (bytes < least) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&MPIDI_ZC_global.granted, &granted, granted + bytes,
                                          false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return bytes;
}

static void give_back(uint32_t bytes)
{
    __atomic_fetch_sub(&MPIDI_ZC_global.granted, bytes, __ATOMIC_RELAXED);
}

static uint32_t grant(MPIDI_ZC_inbound_t * in, size_t least, size_t most)
{
    const size_t most_here = MPIDI_ZC_UNLIMITED - 1 - in->window;
    const uint32_t bytes = reserve(least, MPL_MIN(most, most_here));
    in->window += bytes;
    return bytes;
}

/* Returns a fair part of @bytes for a connection to another world: there is one for each process
 * and VCI. All of the processes that CH4 knows count, on all VCIs, since each may send. */
static uint32_t foreign_window(size_t bytes)
{
    const size_t known = (size_t) MPIDI_ZC_foreign_known() * MPIDI_global.n_vcis;
    const size_t connections = MPL_MAX(MPIDI_ZC_sender_windows(), known);
    const size_t share = bytes / MPL_MAX(FOREIGN_FEW, 2 * connections);
    return MPL_MAX(FOREIGN_MIN, MPL_MIN(MPIDI_ZC_WINDOW_MAX, share));
}

/* A half of it, which windows do not grow from, is what connections to other worlds begin with.
 * Each takes its part of what earlier ones have left, so there is something for the last one, no
 * matter whether CH4 has learned of all processes together or of one after the other. */
static size_t for_new_windows(void)
{
    return MPIDI_ZC_global.window_growth / 2;
}

static size_t left_for_new_windows(void)
{
    const size_t begun = __atomic_load_n(&MPIDI_ZC_global.begun, __ATOMIC_RELAXED);
    return begun < for_new_windows() ? for_new_windows() - begun : 0;
}

/* Returns what windows may grow by. */
static size_t room_beside_new_windows(void)
{
    const size_t room = room_to_grow();
    const size_t kept = likely(MPIDI_ZC_foreign_known() == 0) ? 0 : left_for_new_windows();
    return room > kept ? room - kept : 0;
}

/* Takes back what a window has grown by, out of what is owed, if that half has become scarce. One
 * that has begun with more than connections do now gives the difference back, too. */
static void take_back(MPIDI_ZC_inbound_t * in, uint64_t sender)
{
    const uint32_t initial = sender & MPIDI_ZC_FOREIGN ? foreign_window(for_new_windows()) :
        MPIDI_ZC_global.window;

    if (in->window > initial && in->held <= in->window / 4 &&
        room_beside_new_windows() < MPIDI_ZC_global.window_growth / 4) {
        const uint32_t bytes = MPL_MIN(in->owed, in->window - initial);
        in->owed -= bytes;
        in->window -= bytes;
        give_back(bytes);
    }
}

static bool is_limited(void)
{
    return MPIDI_ZC_global.window != MPIDI_ZC_UNLIMITED;
}

void MPIDI_ZC_flow_close(MPIDI_ZC_inbound_t * in, uint32_t begun)
{
    if (is_limited()) {
        give_back(in->window - in->held);
    }
    __atomic_fetch_sub(&MPIDI_ZC_global.begun, begun, __ATOMIC_RELAXED);
    in->window = in->owed = 0;
}

/* ---- returning credit ---- */

static void sent(void *request, ucs_status_t status, void *user_data)
{
    MPL_free(user_data);
    ucp_request_free(request);
}

/* Returns the lane to @sender. NULL: there is none, or none that can be used. */
static MPIDI_ZC_lane_t *lane_back(MPIDI_ZC_vci_t * vci, uint64_t sender, uint64_t * self)
{
    if (sender & MPIDI_ZC_FOREIGN) {
        MPIDI_ZC_addr_t *foreign = MPIDI_ZC_foreign_sender(sender);
        *self = sender;
        return foreign ? &foreign->lane : NULL;
    }
    MPIDI_ZC_addr_t *peer = &MPIDI_ZC_AV(&MPIDIU_get_av(0, sender));
    MPIDI_ZC_lane_t *lane = MPIDI_ZC_lane_of(peer, vci->number);
    *self = peer->self;
    return MPIDI_ZC_lane_endpoint(peer, lane, vci->number) == MPI_SUCCESS ? lane : NULL;
}

/* Where ranks may leave, these packets are counted (zc_path.h). */
static void note_sent(const MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    if (unlikely(MPIDI_ZC_global.paths) && !(sender & MPIDI_ZC_FOREIGN)) {
        MPIDI_ZC_path_credit_sent((int) sender, vci->number);
    }
}

static void note_received(const MPIDI_ZC_vci_t * vci, uint64_t sender)
{
    if (unlikely(MPIDI_ZC_global.paths) && !(sender & MPIDI_ZC_FOREIGN)) {
        MPIDI_ZC_path_credit_received((int) sender, vci->number);
    }
}

/* False: the credit is not sent, for lack of memory or of a connection, or in finalize. (Where
 * messages are parked there is no endpoint.) */
static bool send_credit(MPIDI_ZC_vci_t * vci, uint64_t sender, int32_t bytes)
{
    MPIDI_ZC_credit_t credit = {.bytes = bytes };
    MPIDI_ZC_lane_t *lane = lane_back(vci, sender, &credit.sender);
    const ucp_request_param_t at_once = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };

    /* In finalize nothing may be under way that no flush waits for (zc_teardown.c). */
    if (!lane || !lane->ep || MPIDI_ZC_global.closing) {
        return false;
    }
    vci->stats.credit_packets++;
    if (ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_CREDIT, NULL, 0, &credit, sizeof(credit),
                        &at_once) == NULL) {
        note_sent(vci, sender);
        return true;
    }
    MPIDI_ZC_credit_t *kept = MPL_malloc(sizeof(*kept), MPL_MEM_OTHER);
    if (!kept) {
        return false;
    }
    *kept = credit;
    const ucp_request_param_t later = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
            UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = sent,
        .user_data = kept,
    };
    ucs_status_ptr_t request = ucp_am_send_nbx(lane->ep, MPIDI_ZC_AM_CREDIT, NULL, 0, kept,
                                               sizeof(*kept), &later);
    if (!UCS_PTR_IS_PTR(request)) {
        MPL_free(kept);
    }
    if (UCS_PTR_IS_ERR(request)) {
        return false;
    }
    note_sent(vci, sender);
    return true;
}

bool MPIDI_ZC_flow_open(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        uint32_t * begun)
{
    if (!is_limited()) {
        return send_credit(vci, sender, MPIDI_ZC_UNLIMITED);
    }
    *begun = grant(in, GRAIN, foreign_window(left_for_new_windows()));
    __atomic_fetch_add(&MPIDI_ZC_global.begun, *begun, __ATOMIC_RELAXED);
    in->owed += *begun;
    if (in->owed > 0 && send_credit(vci, sender, in->owed)) {
        in->owed = 0;
    }
    return true;                /* what is not sent now is sent when a message of it is matched */
}

void MPIDI_ZC_flow_return(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender)
{
    if (!is_limited()) {
        in->owed = 0;
        return;
    }
    take_back(in, sender);
    /* What cannot be sent now is sent when the next message is matched. */
    if (in->owed > 0 && send_credit(vci, sender, in->owed)) {
        in->owed = 0;
    }
}

ucs_status_t MPIDI_ZC_credit_handler(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length,
                                     const ucp_am_recv_param_t * param)
{
    MPIDI_ZC_vci_t *vci = arg;
    MPIDI_ZC_credit_t credit;

    if (length == sizeof(credit)) {
        memcpy(&credit, data, sizeof(credit));
        MPIDI_ZC_lane_t *lane = NULL;
        if (credit.sender & MPIDI_ZC_FOREIGN) {
            lane = MPIDI_ZC_foreign_lane(credit.sender);
        } else if (credit.sender < (uint64_t) MPIR_Process.size) {
            lane = MPIDI_ZC_lane_of(&MPIDI_ZC_AV(&MPIDIU_get_av(0, credit.sender)), vci->number);
        }
        if (lane) {
            MPIDI_ZC_flow_credit(lane, credit.bytes);
            note_received(vci, credit.sender);
        }
    }
    return UCS_OK;
}

/* ---- messages that wait ---- */

static void count_held(MPIDI_ZC_vci_t * vci, int32_t bytes)
{
    vci->stats.unexpected_bytes += bytes;
    vci->stats.unexpected_bytes_max = MPL_MAX(vci->stats.unexpected_bytes_max,
                                              vci->stats.unexpected_bytes);
}

/* Enlarges the window of a sender that will be without credit soon. */
static void grow(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender, size_t bytes)
{
    if (unlikely(sender & MPIDI_ZC_FOREIGN) && !MPIDI_ZC_foreign_sender(sender)) {
        return;                 /* credit could not be sent to it */
    }
    const size_t most = MPL_MIN(MPL_MAX(bytes, (size_t) GROWTH_MIN), room_beside_new_windows());
    const uint32_t granted = most < GRAIN ? 0 : grant(in, GRAIN, most);

    if (granted > 0 && send_credit(vci, sender, granted + in->owed)) {
        in->owed = 0;
    } else {
        in->owed += granted;
    }
}

void MPIDI_ZC_flow_hold(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                        int32_t cost)
{
    count_held(vci, cost);
    in->held += cost;
    if (unlikely(in->held > in->window / 2) && is_limited()) {
        grow(vci, in, sender, in->window);
    }
}

void MPIDI_ZC_flow_release(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                           int32_t cost)
{
    count_held(vci, -cost);
    if (in) {
        in->held -= cost;
        MPIDI_ZC_flow_consumed(vci, in, sender, cost);
    } else if (is_limited()) {
        give_back(cost);
    }
}

void MPIDI_ZC_flow_short(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost)
{
    MPIDI_ZC_flow_return(vci, in, sender);
    if (is_limited() && in->window < MPIDI_ZC_WINDOW_MAX) {
        grow(vci, in, sender, MPL_MIN(4 * (size_t) cost, MPIDI_ZC_WINDOW_MAX - in->window));
    }
}

/* Returns the room for a message that @sender has announced. The first ones of another world, which
 * has no window yet, may take of what is kept for that. */
static int64_t room_for_announced(const MPIDI_ZC_inbound_t * in, uint64_t sender)
{
    int64_t room = room_beside_new_windows();

    if (sender & MPIDI_ZC_FOREIGN) {
        room = MPL_MAX(room, (int64_t) foreign_window(left_for_new_windows()) - in->held);
    }
    return room;
}

bool MPIDI_ZC_flow_admit(MPIDI_ZC_vci_t * vci, MPIDI_ZC_inbound_t * in, uint64_t sender,
                         int32_t cost)
{
    vci->stats.senders_held++;
    if (is_limited() && (cost > room_for_announced(in, sender) || grant(in, cost, cost) == 0)) {
        /* The credit that it is owed may be enough for its next message. */
        MPIDI_ZC_flow_return(vci, in, sender);
        vci->stats.unexpected_refusals++;
        return false;
    }
    count_held(vci, cost);
    in->held += cost;
    /* It would not have been announced had it not been out of credit. */
    if (is_limited()) {
        grow(vci, in, sender, MPL_MAX((size_t) in->window, 4 * (size_t) cost));
    }
    return true;
}
