/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_LANDING_THREAD_H_INCLUDED
#define ZC_LANDING_THREAD_H_INCLUDED

/* Lands messages while the application computes.
 *
 * The thread sleeps on the UCX worker's file descriptor, but only while the
 * application stays out of MPI: an application that polls would pay for every
 * wake-up with latency. MPI has no "left the library" event, so the thread
 * looks, at growing intervals, whether the application still moves:
 *
 *        ┌───────── application entered MPI ──────────┐
 *        ▼                                            │
 *     WATCHING  sleep 50 µs … 1 ms  ── no activity ─▶ LISTENING  poll(worker fd)
 *                                                     │      ▲
 *                                                     └──────┘ an event: progress,
 *                                                              under the VCI lock
 *
 * It never spins. */

#include "zc_impl.h"

/* Start: at the end of initialisation, before the application's first call.
 * Stop: waits for the thread; no VCI lock may be held. */
int MPIDI_ZC_landing_thread_start(void);
void MPIDI_ZC_landing_thread_stop(void);

#endif /* ZC_LANDING_THREAD_H_INCLUDED */
