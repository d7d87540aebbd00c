/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_LANDING_THREAD_H_INCLUDED
#define ZC_LANDING_THREAD_H_INCLUDED

/* A thread of the netmod lands messages while the application computes.
 *
 * The gate (mpidu_device_gate.h, a patch of ours) keeps the thread out while the application is in
 * MPI, and the application out while the thread makes progress: for microseconds, or as long as a
 * step of a collective takes. The code that both run therefore needs no lock, and an application
 * below MPI_THREAD_MULTIPLE pays for none.
 *
 *   WATCHING   The application is in MPI, or may enter it soon. The thread sleeps, and looks at
 *              intervals (zc_watch.h), since MPI has no "left the library" event. If it slept on
 *              the network, every message that the application receives would wake it in vain and
 *              delay the message's sender.
 *   LISTENING  The application is away. The thread makes progress until the network is quiet, and
 *              then sleeps in poll() on the descriptors of the UCX workers and of the channels.
 *   RESTING    Processes outnumber processors, and LANDING_THREAD is auto. The thread sleeps until
 *              that ends: processes of other worlds that this one is connected with come and go.
 *   ENDED      MPI_Finalize has stopped the thread.
 *
 *                  a look finds the application away
 *     WATCHING ───────────────────────────────────────────▶ LISTENING ──┐
 *      ▲    │  ◀───────────────────────────────────────────  │    ▲     │ an event of the network,
 *      │    │      the application is in MPI, or has          │    └─────┘ or the timer
 *      │    │      entered it since it set the timer          │
 *      │    │                                                │
 *      │    └─────── processes outnumber processors ─────────┤
 *      │                                                     ▼
 *      └──────────── they do so no longer (*) ──────────── RESTING
 *
 *     Every state ── MPI_Finalize ──▶ ENDED
 *     (*) If the thread then looks and finds the application away, it goes on to LISTENING.
 *
 * In every state the thread also sleeps on a wake-up timer. While it watches, an application that
 * leaves MPI with a large transfer under way sets the timer to 50 µs, and so does one that leaves
 * MPI with a collective under way while the thread listens.
 *
 * While the thread watches, short messages may wait to leave together (zc_bundle.h). It sends those
 * that the application has left waiting.
 *
 * A thread that has a processor to spare finds out now and then whether that one is idle (zc_spare.h). If
 * it is not, it works as one that has none.
 *
 * The thread never polls for longer than there are events. During a transfer that the application
 * has asked for it keeps off the processor of the application's main thread: a process that waits
 * in MPI elsewhere loses some time instead, and the transfer is hidden behind the work. */

#include <stdbool.h>
#include "mpidu_device_gate.h"
#include "zc_share.h"

/* Starts the thread, in MPI_Init, whose end opens the gate. */
int MPIDI_ZC_landing_thread_start(void);

/* Stops the thread, in MPI_Finalize: waits for its end, and opens the gate for good. */
void MPIDI_ZC_landing_thread_stop(void);

/* The thread sleeps on nothing of UCX from here on, until MPIDI_ZC_landing_thread_go_on(). It is
 * called inside MPI, and does nothing in the thread itself or where there is none. */
void MPIDI_ZC_landing_thread_suspend(void);

/* The thread sleeps on the workers that there are now. */
int MPIDI_ZC_landing_thread_go_on(void);

/* Adapts the thread to a change in the processors that the processes of this host can have. */
void MPIDI_ZC_landing_thread_share(MPIDI_ZC_share_t share);

/* The gate calls this when the application has left MPI. It may set the wake-up timer. */
void MPIDI_ZC_landing_thread_on_exit(void);

/* Makes the thread look soon, even if it sleeps on the network: there is something to do that
 * causes no event of the network. */
void MPIDI_ZC_landing_thread_look(void);

/* Has the gate call MPIDI_ZC_landing_thread_on_exit(): a large transfer has begun, and the
 * application may leave MPI before its end. */
static inline void MPIDI_ZC_landing_thread_wanted(void)
{
    if (MPIDU_device_gate.enabled) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_on_exit);
    }
}

#endif /* ZC_LANDING_THREAD_H_INCLUDED */
