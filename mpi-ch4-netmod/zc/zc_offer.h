/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_OFFER_H_INCLUDED
#define ZC_OFFER_H_INCLUDED

/* This file keeps the messages that this process offers on its channels (zc_channel.h), until their
 * receivers have decided how they are sent, and libzclane has sent those that are frames. It is
 * private to zc_channel.c; what begins an offer, and what answers it, is in zc_channel.h.
 *
 * All functions are called inside the lock of the VCI, or by the landing thread inside the gate. */

#include "zc_handshake.h"

/* No number of an offer. */
#define MPIDI_ZC_NO_OFFER UINT32_MAX

/* libzclane has sent, or will never send, the frame of @token, which is not NULL. */
void MPIDI_ZC_offer_sent(struct MPIDI_ZC_channels *c, void *token, int status);

/* Ends all that is offered on @channel, which libzclane does not serve any more, with an error. */
void MPIDI_ZC_offers_end(MPIDI_ZC_channel_t * channel);

#endif /* ZC_OFFER_H_INCLUDED */
