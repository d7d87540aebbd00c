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

/* Nothing is left here: a send's buffers go when UCP is done with them, an
 * arrival goes when it is delivered. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_finalize(MPIR_Request * req)
{
}

#endif /* ZC_REQUEST_H_INCLUDED */
