/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDU_DEVICE_GATE_H_INCLUDED
#define MPIDU_DEVICE_GATE_H_INCLUDED

/* Keeps the application and a thread of the device out of each other's way,
 * at every thread level and without a lock on the application's side.
 *
 * Either any number of application threads are inside MPI, or the device's
 * thread is. The application always wins: it announces itself and waits for the
 * device's thread to notice; that thread only enters when nobody is inside. Both
 * sides write their own word before they read the other's (Dekker), so both
 * accesses are sequentially consistent. */

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    int enabled;                /* set and cleared inside MPI_Init and MPI_Finalize only */
    int app_inside;             /* calls of the application that are in MPI */
    int device_inside;          /* also the futex that the application sleeps on */
    int waiting;                /* calls that sleep, or are about to */
    unsigned long entries;      /* how often the application has entered; wraps */
} __attribute__ ((aligned(64))) MPIDU_device_gate_t;

extern MPIDU_device_gate_t MPIDU_device_gate;

/* The device's thread leaves within microseconds unless it has lost its
 * processor; then sleeping, not spinning, gives it one. */
static inline void MPIDU_device_gate_wait(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    for (int i = 0; i < 1000; i++) {
        if (!__atomic_load_n(&gate->device_inside, __ATOMIC_SEQ_CST)) {
            return;
        }
    }
    __atomic_fetch_add(&gate->waiting, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&gate->device_inside, __ATOMIC_SEQ_CST)) {
        syscall(SYS_futex, &gate->device_inside, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    }
    __atomic_fetch_sub(&gate->waiting, 1, __ATOMIC_SEQ_CST);
}

static inline void MPIDU_device_gate_enter(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    __atomic_fetch_add(&gate->app_inside, 1, __ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&gate->device_inside, __ATOMIC_SEQ_CST), 0)) {
        MPIDU_device_gate_wait();
    }
    __atomic_store_n(&gate->entries, __atomic_load_n(&gate->entries, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
}

static inline void MPIDU_device_gate_exit(void)
{
    __atomic_fetch_sub(&MPIDU_device_gate.app_inside, 1, __ATOMIC_RELEASE);
}

static inline void MPIDU_device_gate_leave(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    __atomic_store_n(&gate->device_inside, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&gate->waiting, __ATOMIC_SEQ_CST)) {
        syscall(SYS_futex, &gate->device_inside, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
    }
}

/* For the device's thread: true if it is inside now. */
static inline int MPIDU_device_gate_try(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    __atomic_store_n(&gate->device_inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&gate->app_inside, __ATOMIC_SEQ_CST) != 0) {
        MPIDU_device_gate_leave();
        return 0;
    }
    return 1;
}

/* For the device's thread: is the application in MPI, or waiting for us? */
static inline int MPIDU_device_gate_app_inside(void)
{
    return __atomic_load_n(&MPIDU_device_gate.app_inside, __ATOMIC_RELAXED) != 0;
}

#define MPIDU_DEVICE_GATE_ENTER()                                       \
    do {                                                                \
        if (MPIDU_device_gate.enabled) {                                \
            MPIDU_device_gate_enter();                                  \
        }                                                               \
    } while (0)

#define MPIDU_DEVICE_GATE_EXIT()                                        \
    do {                                                                \
        if (MPIDU_device_gate.enabled) {                                \
            MPIDU_device_gate_exit();                                   \
        }                                                               \
    } while (0)

#endif /* MPIDU_DEVICE_GATE_H_INCLUDED */
