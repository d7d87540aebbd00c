/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDU_DEVICE_GATE_H_INCLUDED
#define MPIDU_DEVICE_GATE_H_INCLUDED

/* Keeps the application and a thread of the device out of each other's way,
 * at every thread level and without a lock on the application's side.
 *
 * Either any number of application threads are inside MPI, or the device's
 * thread is. The application always wins: it announces itself and waits for the
 * device's thread to notice; that thread only enters when nobody is inside. Each
 * side writes its own word before it reads the other's (Dekker), which takes a
 * full memory barrier on both. A barrier costs the application 30 ns or more just
 * before and after a system call, so where its calls never overlap (below
 * MPI_THREAD_MULTIPLE) the device's thread pays for both, with membarrier(2):
 * when that returns, every call has either been seen or will see the thread. */

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    int enabled;                /* set and cleared inside MPI_Init and MPI_Finalize only */
    int one_sided;              /* the device's thread makes the barriers of both */
    int app_inside;             /* calls of the application that are in MPI */
    int device_inside;          /* also the futex that the application sleeps on */
    int waiting;                /* calls that sleep, or are about to */
    unsigned long entries;      /* how often the application has entered; wraps */
    void (*on_exit)(void);      /* NULL, or called when a call of the application has left */
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
    if (gate->one_sided) {
        __atomic_store_n(&gate->app_inside,
                         __atomic_load_n(&gate->app_inside, __ATOMIC_RELAXED) + 1,
                         __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        __atomic_fetch_add(&gate->app_inside, 1, __ATOMIC_SEQ_CST);
    }
    if (__builtin_expect(__atomic_load_n(&gate->device_inside, __ATOMIC_SEQ_CST), 0)) {
        MPIDU_device_gate_wait();
    }
    __atomic_store_n(&gate->entries, __atomic_load_n(&gate->entries, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
}

static inline void MPIDU_device_gate_exit(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    if (gate->one_sided) {
        __atomic_store_n(&gate->app_inside,
                         __atomic_load_n(&gate->app_inside, __ATOMIC_RELAXED) - 1,
                         __ATOMIC_RELEASE);
    } else {
        __atomic_fetch_sub(&gate->app_inside, 1, __ATOMIC_RELEASE);
    }
    void (*on_exit)(void) = __atomic_load_n(&gate->on_exit, __ATOMIC_RELAXED);
    if (__builtin_expect(on_exit != NULL, 0)) {
        on_exit();
    }
}

/* For the device: @function is to be called, outside MPI, by whoever leaves it next, and
 * by others until it is taken back with NULL. */
static inline void MPIDU_device_gate_set_on_exit(void (*function)(void))
{
    __atomic_store_n(&MPIDU_device_gate.on_exit, function, __ATOMIC_RELAXED);
}

/* Whether the device's thread may make the barriers of both sides. The first time costs 15 ms
 * in a process that has threads already (the kernel waits for all processors), and nothing in
 * one that has none: so call it early. */
static inline int MPIDU_device_gate_prepare(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* Closes the gate behind the caller, who is in MPI, and puts it into use.
 * @calls_overlap: several threads may be in MPI at once. */
static inline void MPIDU_device_gate_enable(int calls_overlap)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    gate->one_sided = !calls_overlap && MPIDU_device_gate_prepare();
    gate->app_inside = 1;
    __atomic_store_n(&gate->enabled, 1, __ATOMIC_SEQ_CST);
}

/* Takes it out of use; the device's thread has ended. */
static inline void MPIDU_device_gate_disable(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    __atomic_store_n(&gate->enabled, 0, __ATOMIC_SEQ_CST);
    gate->app_inside = 0;
    gate->on_exit = NULL;
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
    if (gate->one_sided) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    }
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
