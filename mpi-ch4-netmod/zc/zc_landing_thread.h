/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_LANDING_THREAD_H_INCLUDED
#define ZC_LANDING_THREAD_H_INCLUDED

/* Lands messages while the application computes.
 *
 * The gate (mpidu_device_gate.h, a patch of ours) keeps the thread out while the
 * application is in MPI, and the application out while the thread progresses: for
 * microseconds, or as long as a step of a collective takes. So the code that both run needs
 * no lock, and an application that stays below MPI_THREAD_MULTIPLE pays for none.
 *
 * The thread sleeps on the UCX workers' file descriptors, but only while the
 * application stays out of MPI: with the application polling in there, every
 * message would wake the thread for nothing and delay its own sender. MPI has no
 * "left the library" event, so the thread looks (zc_watch.h says when):
 *
 *        ┌────────── the application is in MPI ───────────┐
 *        ▼                                                │
 *     WATCHING  sleep, look     ───── not entered ────▶ LISTENING  poll(their fds)
 *       ▲                     since the last look         │      ▲
 *       │                                                 └──────┘ an event: land, and advance
 *       └── the bell: an application that leaves MPI sets it to 50 µs
 *
 * While it watches, short messages may wait to leave with others (zc_bundle.h): those that the
 * application has left waiting, it sends.
 *
 * With LANDING_THREAD=auto it rests while processes outnumber processors: those of other worlds
 * that this one is connected with come and go.
 *
 * It never spins. During a transfer that the application has asked for, it keeps off the
 * processor of the application's main thread: whoever waits in MPI elsewhere loses some
 * time instead, and the transfer hides behind the work. */

#include <stdbool.h>
#include "mpidu_device_gate.h"
#include "zc_share.h"

/* Start: in MPI_Init, whose end opens the gate. Stop: in MPI_Finalize; waits for
 * the thread and opens the gate for good. */
int MPIDI_ZC_landing_thread_start(void);
void MPIDI_ZC_landing_thread_stop(void);

/* How many processors there are has changed. */
void MPIDI_ZC_landing_thread_share(MPIDI_ZC_share_kind_t kind);

/* Called by the gate when the application has left MPI. */
void MPIDI_ZC_landing_thread_ring(void);

/* There is something to do that the network will not tell of: the thread looks soon, even if it
 * sleeps on the network. */
void MPIDI_ZC_landing_thread_look(void);

/* Something large has begun that the application may not wait for inside MPI. */
static inline void MPIDI_ZC_landing_thread_wanted(void)
{
    if (MPIDU_device_gate.enabled) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_ring);
    }
}

#endif /* ZC_LANDING_THREAD_H_INCLUDED */
