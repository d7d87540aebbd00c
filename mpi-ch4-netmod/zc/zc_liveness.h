/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_LIVENESS_H_INCLUDED
#define ZC_LIVENESS_H_INCLUDED

/* Whether a process of another world that is away (zc_path.h) still lives. It has no connection that
 * could be lost then. Ranks of its own world end with it, by their launcher; those of other worlds would
 * wait for it for ever. So its holder, which lives as long as it does, takes connections on its behalf:
 *
 *   holder                     mover                                  peer, of another world
 *     ── LIVES port token ──▶    │                                      │
 *                                │ ── PAUSE, with hosts, port, token ─▶ │
 *     ◀────────────────────────────────────────────────────── connects ─│
 *     ── token ───────────────────────────────────────────────────────▶ │ the process is *watched*
 *                                ⋮ away                                 │
 *     ── end of the connection ───────────────────────────────────────▶ │ it has ended
 *
 *   SEEKING ──── token ────▶ WATCHED ──── end ────▶ OVER
 *      │ no address is left
 *      ▼
 *   UNWATCHED
 *
 * The token proves that it is that holder, and not what has the same address in another network. The
 * addresses of the holder's host are tried one after the other, each without waiting for the end of the
 * one before (as RFC 8305 has it). What is unwatched, or has not been found after some time, is waited for
 * as long as it is away: it is counted (`unwatched`), and reported once.
 *
 * The paths to a process, one for each VCI, share what they watch.
 *
 * All functions are called inside the locks of all VCIs, or by the landing thread inside the gate, unless their
 * comment says otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the mover ---- */

/* The holder takes connections at @port of this host, on which it sends @token. It is gone if its host gives
 * no sign for so many @seconds. */
void MPIDI_ZC_liveness_set(uint16_t port, uint64_t token, uint16_t seconds);

#define MPIDI_ZC_LIVENESS_ROOM 256

/* Returns what PAUSE carries of that, in *@offer, and how long it is, at most MPIDI_ZC_LIVENESS_ROOM bytes;
 * 0: the holder takes none. */
size_t MPIDI_ZC_liveness_offer(const void **offer);

/* ---- the peer ---- */

typedef struct MPIDI_ZC_liveness MPIDI_ZC_liveness_t;

/* Begins to watch the process that has sent the @offer, @length bytes long and at any alignment, unless that is
 * watched already. NULL: there is no memory, which is counted. */
MPIDI_ZC_liveness_t *MPIDI_ZC_liveness_watch(const void *offer, size_t length);

/* Has the process ended? It looks every few milliseconds, however often it is called. */
bool MPIDI_ZC_liveness_is_over(MPIDI_ZC_liveness_t * watch);

/* Forgets @watch, which may be NULL, when it has been called as often as MPIDI_ZC_liveness_watch() has returned it.
 * It is called inside the lock of any VCI, in callbacks of UCP, too. */
void MPIDI_ZC_liveness_forget(MPIDI_ZC_liveness_t * watch);

#endif /* ZC_LIVENESS_H_INCLUDED */
