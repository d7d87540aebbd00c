/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PARKED_H_INCLUDED
#define ZC_PARKED_H_INCLUDED

/* Messages to a rank whose path is not open (zc_path.h) are parked: they have their numbers, their
 * requests are incomplete, and UCP gets them in the same order when the path is open again.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_impl.h"

typedef struct MPIDI_ZC_parked {
    struct MPIDI_ZC_parked *next;
    unsigned id;
    const void *header, *data;  /* stay until the callback of @param is called */
    size_t header_length, count;
    ucp_request_param_t param;  /* with a callback, which accepts NULL for UCP's request */
} MPIDI_ZC_parked_t;

typedef struct {
    MPIDI_ZC_parked_t *first, *last;
    uint32_t nr_announced;      /* that are going to be */
} MPIDI_ZC_parked_list_t;

/* Parks a message to @peer on @vci, as ucp_am_send_nbx() would send it, with the same result: a pointer if
 * the callback of @param is going to be called, or an error. */
ucs_status_ptr_t MPIDI_ZC_park(const MPIDI_ZC_addr_t * peer, int vci, unsigned id,
                               const void *header, size_t header_length, const void *data,
                               size_t count, const ucp_request_param_t * param);

/* Hands all messages of @list to UCP. Calls the callbacks of those that it sends at once. Those to a process
 * of another world that is lost end with an error; @foreign: the connection, or NULL. */
void MPIDI_ZC_unpark(MPIDI_ZC_parked_list_t * list, ucp_ep_h ep, struct MPIDI_ZC_foreign *foreign);

/* Calls all callbacks with the error @status. */
void MPIDI_ZC_parked_fail(MPIDI_ZC_parked_list_t * list, ucs_status_t status);

/* Frees messages that will never be sent. */
void MPIDI_ZC_parked_drop(MPIDI_ZC_parked_list_t * list);

/* Sends an active message to @peer, or parks it if @ep, its endpoint on @vci, is NULL. */
MPL_STATIC_INLINE_PREFIX ucs_status_ptr_t MPIDI_ZC_send_or_park(const MPIDI_ZC_addr_t * peer,
                                                                int vci, ucp_ep_h ep, unsigned id,
                                                                const void *header,
                                                                size_t header_length,
                                                                const void *data, size_t count,
                                                                const ucp_request_param_t * param)
{
    return likely(ep) ? ucp_am_send_nbx(ep, id, header, header_length, data, count, param) :
        MPIDI_ZC_park(peer, vci, id, header, header_length, data, count, param);
}

#endif /* ZC_PARKED_H_INCLUDED */
