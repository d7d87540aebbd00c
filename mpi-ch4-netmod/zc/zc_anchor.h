/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ANCHOR_H_INCLUDED
#define ZC_ANCHOR_H_INCLUDED

/* Two movers that come back (zc_path.h) have each other's old address. So each has an *anchor*, a rank
 * that has promised to stay until all have bound the mover:
 *
 *   mover                                       anchor                                 third rank
 *     │ ─────── ASK ──────────────────────────▶   │
 *     │ ◀────── STAYS ──────────────────────────  │  or GOES, if it leaves: another is asked
 *     ⋮  detached                                 │
 *     │ ─────── REBIND ───────────────────────▶   │  no rank may begin to leave from here on
 *     │ ◀────── BOUND ──────────────────────────  │
 *     │ ◀────── INTRODUCE the third rank ───────  │  as soon as it is there, and does not leave
 *     │ ─────── REBIND ────────────────────────────────────────────────────────────────▶  │
 *     │ ◀────── BOUND ──────────────────────────────────────────────────────────────────  │
 *     │ ─────── DONE, when all are bound ─────▶   │
 *
 * A mover connects to no other ranks, since UCP 1.13 may end a process that destroys a worker to which
 * another one is just connecting. A rank that leaves cannot be asked. If it may still stay, as it has no
 * anchor itself, lower ranks wait for that, and higher ones do not: of ranks that leave at once, all of
 * them, the highest stays. Ranks of which the holder says that they are about to leave are asked last.
 *
 * All functions are called inside the locks of all VCIs (zc_vci_locks.h), or by the landing thread inside
 * the gate, and outside callbacks of UCP, unless their comment says otherwise. */

#include "zc_path.h"

void MPIDI_ZC_anchor_init(void);

/* ---- the mover ---- */

/* @rank is to leave as well, when this process is told to next. */
void MPIDI_ZC_anchor_is_company(int rank);

/* That time is over. */
void MPIDI_ZC_anchor_forget_company(void);

/* Looks for an anchor, for the attempt @round to leave. */
void MPIDI_ZC_anchor_seek(uint32_t round);

/* Asks another rank, if the answer of the last cannot come any more. */
void MPIDI_ZC_anchor_progress(void);

/* Returns the rank that has not answered yet, or -1. The lock of VCI 0 suffices. */
int MPIDI_ZC_anchor_asked(void);

/* Is there none that could be? */
bool MPIDI_ZC_anchor_is_missing(void);

/* This process does not leave. */
void MPIDI_ZC_anchor_stay(void);

/* This process is detached. When it is back it may be the anchor of others. */
void MPIDI_ZC_anchor_left(void);

/* Returns the rank by which this process comes back, or -1: there is no other rank. */
int MPIDI_ZC_anchor_of_this(void);

/* This process is bound by all ranks. */
void MPIDI_ZC_anchor_release(void);

/* ---- the anchor ---- */

/* Is this process the anchor of another? Then it has to stay. */
bool MPIDI_ZC_anchor_is_needed(void);

/* Has one of them come back, and not all ranks have bound it? Then no rank may begin to leave. */
bool MPIDI_ZC_anchor_is_waited_for(void);

/* Tells @rank, which this process is the anchor of, and which has come back, of all that are there. */
void MPIDI_ZC_anchor_introduce_all(int rank);

/* Tells all such ranks of @subject, to which there is a path now. */
void MPIDI_ZC_anchor_introduce_to_all(int subject);

/* @rank needs this process no more. */
void MPIDI_ZC_anchor_forget(int rank);

/* ---- messages that have arrived: ASK, and STAYS or GOES ---- */

void MPIDI_ZC_anchor_handle_ask(int rank, const MPIDI_ZC_path_message_t * message);
void MPIDI_ZC_anchor_handle_answer(int rank, const MPIDI_ZC_path_message_t * message);

#endif /* ZC_ANCHOR_H_INCLUDED */
