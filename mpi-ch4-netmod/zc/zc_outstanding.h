/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_OUTSTANDING_H_INCLUDED
#define ZC_OUTSTANDING_H_INCLUDED

/* One-sided operations between this process and one of another world, which end when that is lost. They
 * are on lists of the connection (zc_connection.h).
 *
 *                    by active messages                      by UCX, with a request
 *   origin           begun                                   begun
 *                      │ the target answers   ──▶ done         │ UCX has completed it   ──▶ done
 *                      ▼ the target is lost                    ▼ the target is lost
 *                    UCP has returned the message?           an error
 *                      yes: an error
 *                      no: `lost`, and an error when it has
 *
 * Over shared memory UCX waits for ever for one that has died, so there is an error at once. The callback
 * of UCX, if it ever comes, finds `lost`, and frees the request.
 *
 *   target           a datatype has come, but not the data that follow it: ends without an effect when
 *                    the origin is lost, and nothing comes any more
 *
 * The window knows of the error, which the call that waits for the operation returns (patches/0123).
 *
 * All functions are called inside the lock of the VCI. */

#include "zc_impl.h"

/* Does a message for @handler_id begin an operation, whose request waits for the target? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_outstanding_begins(int handler_id)
{
    switch (handler_id) {
        case MPIDIG_PUT_REQ:
        case MPIDIG_PUT_DT_REQ:
        case MPIDIG_GET_REQ:
        case MPIDIG_ACC_REQ:
        case MPIDIG_ACC_DT_REQ:
        case MPIDIG_GET_ACC_REQ:
        case MPIDIG_GET_ACC_DT_REQ:
        case MPIDIG_CSWAP_REQ:
            return true;
        default:
            return false;
    }
}

/* Does a message for @handler_id ask for the data that follow a datatype? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_outstanding_asks(int handler_id)
{
    return handler_id == MPIDIG_PUT_DT_ACK || handler_id == MPIDIG_ACC_DT_ACK ||
        handler_id == MPIDIG_GET_ACC_DT_ACK;
}

/* Does it bring these? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_outstanding_brings(int handler_id)
{
    return handler_id == MPIDIG_PUT_DAT_REQ || handler_id == MPIDIG_ACC_DAT_REQ ||
        handler_id == MPIDIG_GET_ACC_DAT_REQ;
}

/* Does it end an operation? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_outstanding_answers(int handler_id)
{
    return handler_id == MPIDIG_PUT_ACK || handler_id == MPIDIG_GET_ACK ||
        handler_id == MPIDIG_ACC_ACK || handler_id == MPIDIG_GET_ACC_ACK ||
        handler_id == MPIDIG_CSWAP_ACK;
}

/* Is it one of one-sided communication, of any kind? */
MPL_STATIC_INLINE_PREFIX bool MPIDI_ZC_outstanding_is_message(int handler_id)
{
    return handler_id >= MPIDIG_PUT_REQ && handler_id <= MPIDIG_WIN_UNLOCKALL_ACK;
}

/* The target of @req, an operation of this process, is lost. @returns: UCP returns all messages to it. */
void MPIDI_ZC_outstanding_lost(MPIR_Request * req, bool returns);

/* UCP has returned the message of @req, whose target is lost. */
void MPIDI_ZC_outstanding_returned(MPIR_Request * req);

/* @req is for an operation that UCX is about to do. */
MPL_STATIC_INLINE_PREFIX void MPIDI_ZC_outstanding_init_native(MPIR_Request * req)
{
    MPIDI_ZC_AM_REQUEST(req).native = true;
    MPIDI_ZC_AM_REQUEST(req).lost = false;
    MPIDI_ZC_AM_REQUEST(req).ack.at = NULL;
}

/* UCX has begun, and not completed, what @req is for: an operation on the process of @rank. */
void MPIDI_ZC_outstanding_native(MPIR_Win * win, int rank, MPIR_Request * req);

/* UCX has completed one of the parts of that. */
void MPIDI_ZC_outstanding_native_done(MPIR_Request * req);

#endif /* ZC_OUTSTANDING_H_INCLUDED */
