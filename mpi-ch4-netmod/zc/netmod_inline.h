/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NETMOD_INLINE_H_INCLUDED
#define NETMOD_INLINE_H_INCLUDED

/* Point-to-point communication enters zc through zc_pt2pt.h. Everything travels as active messages
 * (zc_am.h) except for puts and gets (zc_rma.h). The rest is CH4's own fallback. */
#include "zc_pt2pt.h"
#include "zc_am.h"
#include "zc_pready.h"
#include "zc_progress.h"
#include "zc_request.h"
#include "zc_proc.h"
#include "zc_rma.h"

#include "netmod_am_fallback_coll.h"

#include "zc_noinline.h"

#endif /* NETMOD_INLINE_H_INCLUDED */
