/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_REFUSAL_H_INCLUDED
#define ZC_REFUSAL_H_INCLUDED

#include "page.h"
#include "zc/zc.h"
#include "zc_ioctl.h"

namespace zc {

/** The reason that is counted for what the module did not exchange. */
zc_reason_t refusal_reason(zc_cause cause);

/**
 * refused_part - what to copy before the exchange goes on
 * @cause: why the module stopped
 * @rest:  what it was asked for and has not exchanged, beginning with the
 *         page that stopped it
 * @again: refusals since the last page that was exchanged
 *
 * A page, or as much as the cause is likely to hold for. How far it does hold
 * would have to be asked of /proc; instead the part doubles at each refusal, so
 * that the calls in vain grow with the logarithm of what is refused, and what
 * is copied needlessly is at most as much as what had to be.
 */
range refused_part(zc_cause cause, range rest, unsigned again);

} // namespace zc

#endif /* ZC_REFUSAL_H_INCLUDED */
