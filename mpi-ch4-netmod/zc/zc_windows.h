/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WINDOWS_H_INCLUDED
#define ZC_WINDOWS_H_INCLUDED

/* Windows that UCX reaches, while their ranks leave and come back (zc_path.h). There is something to do
 * only with MPIR_CVAR_CH4_ZC_DETACH.
 *
 * While a path is not open, puts and gets take the way of all that UCX does not do: they are active
 * messages, and parked. Those that UCX has begun are complete before the path is PAUSED, since both
 * sides flush its endpoint; so neither an operation nor an answer to one is under way then. MPI
 * demands no order between puts and gets but by synchronisation, which waits for both kinds.
 * Accumulates are active messages for good where ranks may leave (zc_atomic.h).
 *
 * The memory of a rank that has left is not registered, and no key to it is valid. A key belongs to an
 * incarnation of its rank. A rank that has none for the present one asks for it at the next put or get, and
 * goes on by active messages until it has come:
 *
 *   origin                                              target
 *     │ ◀────── REBIND, or the origin is back ──────────  │
 *     │ ═══════ a put, as an active message ═══════════▶  │
 *     │ ─────── WANTS, the window ─────────────────────▶  │ registers its memory, if it is not yet
 *     │ ◀────── KEY ────────────────────────────────────  │
 *     │ ═══════ a put of UCX ══════════════════════════▶  │
 *
 * WANTS is only sent while the path is open, and UCP keeps its order, so it is answered before what
 * follows it on the path: KEY has arrived when the path is PAUSED. A KEY of another incarnation, or to a
 * window that has been freed, is dropped. If the memory cannot be registered, KEY has no data, and active
 * messages go on until one of the two has left again.
 *
 * A process of a window is known by the number of the path to it, so all that is the same for processes of
 * other worlds. One of those may have left before there was a path to it. Then its first key is of a later
 * incarnation than the path knows of, and is valid.
 *
 * A window is of one VCI, and its operations are; WANTS and KEY go by VCI 0. So who asks, or changes the list
 * of windows, which is that of all VCIs, takes the lock of VCI 0 beside that of the window (zc_vci_locks.h).
 *
 * The functions that have a window are called inside the lock of its VCI, all others inside the locks of all
 * VCIs, or by the landing thread inside the gate, and all outside callbacks of UCP. */

#include "zc_path_message.h"
#include "zc_win.h"

/* Is called in MPI_Init. */
void MPIDI_ZC_windows_init(void);

/* Notes @win, whose targets have not been filled in, if ranks may leave. False: there is no memory. */
bool MPIDI_ZC_windows_add(MPIR_Win * win);

/* @win is being freed, or could not be made. */
void MPIDI_ZC_windows_remove(MPIR_Win * win);

/* Notes the first key to the memory of @rank. */
void MPIDI_ZC_windows_keep(MPIR_Win * win, int rank, const char *packed, uint32_t incarnation);

/* Is the key that is kept for @rank valid, and the path to it open? If only the first is not so, it asks
 * for a key. */
bool MPIDI_ZC_windows_connectable(MPIR_Win * win, int rank);

/* All operations of UCX on @path are complete at the other process. */
void MPIDI_ZC_windows_flushed(int path);

/* The endpoint of @path is going to be closed: the other process is back, or is lost. */
void MPIDI_ZC_windows_forget(int path);

/* There is no key to the memory of the process that @path is to, or it cannot be used: counts that for @vci,
 * whose lock the caller has, and reports it once. */
void MPIDI_ZC_windows_refused(int path, int vci);

/* This process leaves: gives up its memory, and all keys. */
void MPIDI_ZC_windows_leave(void);

/* Messages that have arrived. */
void MPIDI_ZC_windows_handle_wants(int path, const MPIDI_ZC_path_message_t * message);
void MPIDI_ZC_windows_handle_key(int path, const MPIDI_ZC_path_received_t * received);

#endif /* ZC_WINDOWS_H_INCLUDED */
