/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_REQUEST_H_INCLUDED
#define ZC_REQUEST_H_INCLUDED

#include "zc_impl.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_init(MPIR_Request * req)
{
    MPIDI_ZC_AM_REQUEST(req).message = NULL;
    MPIDI_ZC_AM_REQUEST(req).stream = NULL;
    MPIDI_ZC_AM_REQUEST(req).header = NULL;
}

/* Has nothing to free: a send's buffers are freed when UCP has completed it, and an arrival when
 * it is delivered. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_finalize(MPIR_Request * req)
{
}

#endif /* ZC_REQUEST_H_INCLUDED */
