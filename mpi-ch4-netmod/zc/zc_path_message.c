/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_path_message.h"
#include "zc_channel.h"
#include "zc_foreign_path.h"
#include "zc_peer.h"

static struct {
    struct {
        MPIDI_ZC_path_received_t *first, *last;
    } arrived[MPIDI_CH4_MAX_VCIS];      /* to be handled, by VCI */
    unsigned nr_arrived;        /* atomic: of all VCIs */
    bool untold;                /* atomic: a message could not be sent */
    uint32_t own_incarnation;
} messages;

void MPIDI_ZC_path_messages_init(void)
{
    memset(&messages, 0, sizeof(messages));
}

void MPIDI_ZC_path_messages_free(void)
{
    MPIDI_ZC_path_received_t *message;

    while ((message = MPIDI_ZC_path_take_message()) != NULL) {
        MPL_free(message);
    }
}

bool MPIDI_ZC_path_messages_wait(void)
{
    return __atomic_load_n(&messages.nr_arrived, __ATOMIC_RELAXED) > 0 ||
        __atomic_load_n(&messages.untold, __ATOMIC_RELAXED);
}

MPIDI_ZC_path_received_t *MPIDI_ZC_path_take_message(void)
{
    for (int v = 0; messages.nr_arrived > 0 && v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_path_received_t *first = messages.arrived[v].first;
        if (first) {
            messages.arrived[v].first = first->next;
            __atomic_fetch_sub(&messages.nr_arrived, 1, __ATOMIC_RELAXED);
            return first;
        }
    }
    return NULL;
}

static void set_untold(bool untold)
{
    __atomic_store_n(&messages.untold, untold, __ATOMIC_RELAXED);
}

void MPIDI_ZC_path_set_own_incarnation(uint32_t incarnation)
{
    messages.own_incarnation = incarnation;
}

uint32_t MPIDI_ZC_path_own_incarnation(void)
{
    return messages.own_incarnation;
}

ucs_status_t MPIDI_ZC_path_send(ucp_ep_h ep, int rank, MPIDI_ZC_path_message_t message,
                                const void *data, size_t length)
{
    const struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_path_of(rank)->foreign;

    message.sender = foreign ? MPIDI_ZC_foreign_path_self(foreign) : (uint64_t) MPIR_Process.rank;
    message.receiver = foreign ? (uint32_t) MPIDI_ZC_foreign_path_id(foreign) : (uint32_t) rank;
    return ep ? MPIDI_ZC_channel_send_short(ep, MPIDI_ZC_AM_PATH, &message, sizeof(message), data,
                                            length) : UCS_ERR_NOT_CONNECTED;
}

ucs_status_t MPIDI_ZC_path_answer(ucp_ep_h ep, const MPIDI_ZC_path_received_t * received,
                                  MPIDI_ZC_path_message_t message)
{
    const uint64_t sender = received->message.sender;
    const bool is_foreign = sender & MPIDI_ZC_FOREIGN;

    message.sender = is_foreign ? MPIDI_ZC_FOREIGN : (uint64_t) MPIR_Process.rank;
    message.receiver = is_foreign ? received->message.subject : (uint32_t) sender;
    message.connection = is_foreign ? sender : 0;
    return MPIDI_ZC_channel_send_short(ep, MPIDI_ZC_AM_PATH, &message, sizeof(message), NULL, 0);
}

ucp_ep_h MPIDI_ZC_path_endpoint(int rank)
{
    const struct MPIDI_ZC_foreign *foreign = MPIDI_ZC_path_of(rank)->foreign;
    const int vci = MPIDI_ZC_path_of(rank)->vci;

    MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(vci));
    MPIDI_ZC_addr_t *peer = foreign ? MPIDI_ZC_foreign_path_peer(foreign) :
        &MPIDI_ZC_AV(&MPIDIU_get_av(0, rank));
    if (peer) {
        (void) MPIDI_ZC_lane_endpoint(peer, &peer->lane, vci);
    }
    if (foreign) {
        return MPIDI_ZC_foreign_path_endpoint(foreign);
    }
    const ucp_ep_h kept = MPIDI_ZC_path_of(rank)->lanes[0].ep;
    return kept ? kept : peer->lane.ep;
}

#define PAUSE_ROOM (MPIDI_CH4_MAX_VCIS * sizeof(MPIDI_ZC_path_numbers_t) + MPIDI_ZC_LIVENESS_ROOM)

/* Writes what PAUSE and PARKS carry to @room, and returns how long that is. */
static size_t fill_pause(const MPIDI_ZC_path_t * path, MPIDI_ZC_tell_t kind, char *room)
{
    MPIDI_ZC_path_numbers_t numbers[MPIDI_CH4_MAX_VCIS];
    const void *offer = NULL;

    const size_t length = MPIDI_ZC_path_numbers(path, numbers);
    const size_t more = path->foreign && kind == MPIDI_ZC_TELL_PAUSE ?
        MPIDI_ZC_liveness_offer(&offer) : 0;
    memcpy(room, numbers, length);
    if (more > 0) {
        memcpy(room + length, offer, more);
    }
    return length + more;
}

static bool send_kept(int rank, MPIDI_ZC_tell_t kind)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
    const MPIDI_ZC_path_t *self = MPIDI_ZC_path_of(MPIR_Process.rank);
    const bool rebinds = kind == MPIDI_ZC_TELL_REBIND;
    const bool counts = kind == MPIDI_ZC_TELL_PAUSE || kind == MPIDI_ZC_TELL_PARKS;
    char pause[PAUSE_ROOM];
    const void *data = rebinds ? self->addresses : pause;
    const size_t length = rebinds ? self->addresses_length :
        counts ? fill_pause(path, kind, pause) : 0;
    MPIDI_ZC_path_message_t message = {
        .kind = kind,
        .round = path->round,
        .incarnation = kind == MPIDI_ZC_TELL_BOUND ? path->incarnation : messages.own_incarnation,
    };

    switch (kind) {
        case MPIDI_ZC_TELL_PAUSE:
            message.round = path->own_round;
            if (path->round != path->own_round || !path->leads) {
                message.leader_round = path->round;
                message.leads = path->leads;
            }
            break;
        case MPIDI_ZC_TELL_REBIND:
            if (path->foreign) {
                message.subject = (uint32_t) MPIDI_ZC_upid_self()->id;
            }
            break;
        case MPIDI_ZC_TELL_ASK:
            message.round = path->asked;
            break;
        case MPIDI_ZC_TELL_STAYS:
        case MPIDI_ZC_TELL_GOES:
            message.round = path->asks;
            break;
        case MPIDI_ZC_TELL_KNOWS:
            message.round = path->other_round;
            break;
        case MPIDI_ZC_TELL_RESUME:
            message.round = path->given_up;
            message.known_round = path->known;
            break;
        case MPIDI_ZC_TELL_REFUSE:
            message.round = path->refused;
            message.refusal = path->refused_why;
            message.connection = path->foreign ? MPIDI_ZC_foreign_path_other(path->foreign) : 0;
            break;
        default:
            break;
    }
    return MPIDI_ZC_path_send(MPIDI_ZC_path_endpoint(rank), rank, message, data, length) == UCS_OK;
}

/* Sends what could not be sent. */
static void tell_rank_again(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    if (path->lost || (path->foreign && MPIDI_ZC_foreign_path_is_over(path->foreign))) {
        path->untold = 0;
    }
    for (uint32_t kind = 0; path->untold >> kind; kind++) {
        if (path->untold >> kind & 1) {
            if (!send_kept(rank, kind)) {
                set_untold(true);
                return;
            }
            path->untold &= ~(1u << kind);
        }
    }
}

void MPIDI_ZC_path_tell(int rank, MPIDI_ZC_tell_t kind)
{
    MPIDI_ZC_path_of(rank)->untold |= 1u << kind;
    tell_rank_again(rank);
}

void MPIDI_ZC_path_tell_again(void)
{
    set_untold(false);
    for (int rank = 0; rank < MPIDI_ZC_paths_number(); rank++) {
        if (MPIDI_ZC_path_of(rank) && MPIDI_ZC_path_of(rank)->untold) {
            tell_rank_again(rank);
        }
    }
}

ucs_status_t MPIDI_ZC_path_handler(void *arg, const void *header, size_t header_length,
                                   void *data, size_t length, const ucp_am_recv_param_t * param)
{
    if (!MPIDI_ZC_global.paths || header_length != sizeof(MPIDI_ZC_path_message_t)) {
        return UCS_OK;          /* without DETACH here: the mover waits in vain, and stays */
    }
    const int vci = ((MPIDI_ZC_vci_t *) arg)->number;
    MPIDI_ZC_path_message_t message;
    memcpy(&message, header, sizeof(message));
    if (message.receiver != (message.sender & MPIDI_ZC_FOREIGN ?
                             (uint32_t) MPIDI_ZC_upid_self()->id : (uint32_t) MPIR_Process.rank)) {
        return UCS_OK;          /* the address is of one that the sender did not mean */
    }
    MPIDI_ZC_path_received_t *received = MPL_malloc(sizeof(*received) + length, MPL_MEM_OTHER);
    if (unlikely(!received)) {
        /* Both sides would wait for ever. */
        MPID_Abort(NULL, MPI_ERR_OTHER, 1, "no memory for a message of a rank that leaves");
    }
    *received = (MPIDI_ZC_path_received_t) {.message = message,.length = length };
    memcpy(received->data, data, length);
    if (messages.arrived[vci].first) {
        messages.arrived[vci].last->next = received;
    } else {
        messages.arrived[vci].first = received;
    }
    messages.arrived[vci].last = received;
    __atomic_fetch_add(&messages.nr_arrived, 1, __ATOMIC_RELAXED);
    return UCS_OK;
}
