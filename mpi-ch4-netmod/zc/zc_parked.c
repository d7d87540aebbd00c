/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_parked.h"
#include "zc_channel.h"
#include "zc_foreign_path.h"
#include "zc_path.h"
#include "zc_peer.h"

static uint32_t is_announced(const MPIDI_ZC_parked_t * parked)
{
    return (parked->param.flags & UCP_AM_SEND_FLAG_RNDV) != 0;
}

ucs_status_ptr_t MPIDI_ZC_park(const MPIDI_ZC_addr_t * peer, int vci, unsigned id,
                               const void *header, size_t header_length, const void *data,
                               size_t count, const ucp_request_param_t * param)
{
    const int path = MPIDI_ZC_global.paths ? MPIDI_ZC_path_to(peer) : -1;
    if (path < 0 || MPIDI_ZC_path_is_open(path)) {
        return UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED);
    }
    MPIDI_ZC_parked_list_t *list = MPIDI_ZC_path_parked(path, vci);
    MPIDI_ZC_parked_t *parked = MPL_malloc(sizeof(*parked), MPL_MEM_OTHER);

    if (unlikely(!parked)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    *parked = (MPIDI_ZC_parked_t) {
        .id = id,
        .header = header,
        .header_length = header_length,
        .data = data,
        .count = count,
        .param = *param,
    };
    if (list->first) {
        list->last->next = parked;
    } else {
        list->first = parked;
    }
    list->last = parked;
    list->nr_announced += is_announced(parked);
    MPIDI_ZC_VCI(vci).stats.parked++;
    return parked;
}

/* The caller frees it. */
static MPIDI_ZC_parked_t *take_first(MPIDI_ZC_parked_list_t * list)
{
    MPIDI_ZC_parked_t *first = list->first;

    list->first = first->next;
    list->nr_announced -= is_announced(first);
    return first;
}

void MPIDI_ZC_unpark(MPIDI_ZC_parked_list_t * list, ucp_ep_h ep, struct MPIDI_ZC_foreign *foreign)
{
    while (list->first) {
        MPIDI_ZC_parked_t *parked = take_first(list);
        ucs_status_ptr_t request = ucp_am_send_nbx(ep, parked->id, parked->header,
                                                   parked->header_length, parked->data,
                                                   parked->count, &parked->param);
        if (unlikely(UCS_PTR_IS_ERR(request)) && foreign &&
            UCS_PTR_STATUS(request) != UCS_ERR_NO_MEMORY) {
            MPIDI_ZC_foreign_path_refused(foreign, UCS_PTR_STATUS(request));
        } else if (unlikely(UCS_PTR_IS_ERR(request))) {
            /* It has its number, so all that follows would wait for it. */
            MPIDI_ZC_channel_must_send(UCS_PTR_STATUS(request));
        }
        /* (With UCP_OP_ATTR_FLAG_NO_IMM_CMPL, UCX 1.13 ignores a datatype.) */
        if (!UCS_PTR_IS_PTR(request)) {
            parked->param.cb.send(NULL, UCS_PTR_STATUS(request), parked->param.user_data);
        }
        MPL_free(parked);
    }
}

void MPIDI_ZC_parked_fail(MPIDI_ZC_parked_list_t * list, ucs_status_t status)
{
    while (list->first) {
        MPIDI_ZC_parked_t *parked = take_first(list);
        parked->param.cb.send(NULL, status, parked->param.user_data);
        MPL_free(parked);
    }
}

void MPIDI_ZC_parked_drop(MPIDI_ZC_parked_list_t * list)
{
    while (list->first) {
        MPL_free(take_first(list));
    }
}
