/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIDU_DEVICE_GATE_H_INCLUDED
#define MPIDU_DEVICE_GATE_H_INCLUDED

/* The gate keeps the application and a thread of the device out of MPI while the other is inside,
 * at every thread level and without a lock on the application's side.
 *
 * Either any number of application threads are inside MPI, or the device's
 * thread is. The application always wins: it announces itself and waits for the
 * device's thread to notice; that thread only enters when no call is inside. Each
 * side writes its own word before it reads the other's (Dekker), which takes a
 * full memory barrier on both. A barrier costs the application 30 ns or more just
 * before and after a system call, so where its calls never overlap (below
 * MPI_THREAD_MULTIPLE) the device's thread pays for both, with membarrier(2):
 * when that returns, every call has either been seen or will see the thread.
 *
 * Functions of the user, those that delete attributes above all, never run on the device's
 * thread: it would not be the thread that the user knows, and the rest of the program goes on
 * meanwhile. What would call one there is put off as a duty, and the next call of the
 * application does it. */

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A duty is part of the object that it is about. */
typedef struct MPIDU_device_gate_duty {
    struct MPIDU_device_gate_duty *next;
    void (*run)(struct MPIDU_device_gate_duty *);
} MPIDU_device_gate_duty_t;

/* One cache line. */
typedef struct {
    int enabled;                /* set and cleared inside MPI_Init and MPI_Finalize only */
    int one_sided;              /* the device's thread makes the barriers of both */
    int app_inside;             /* calls of the application that are in MPI */
    int device_inside;          /* the device's thread is about to enter, or inside; also the futex
                                 * that the application sleeps on */
    int device_works;           /* it is inside */
    int waiting;                /* calls that sleep, or are about to */
    unsigned long entries;      /* how often the application has entered; wraps */
    void (*on_exit)(void);      /* NULL, or called when a call of the application has left */
    MPIDU_device_gate_duty_t *duties;   /* the last one first */
    pthread_t device;           /* the thread of the device; while it works */
} __attribute__ ((aligned(64))) MPIDU_device_gate_t;

extern MPIDU_device_gate_t MPIDU_device_gate;

/* Waits until the device's thread has left. It does so within microseconds unless it has lost its
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

/* Is the device's thread inside? Then, inside, the caller is that thread. */
static inline int MPIDU_device_gate_device_works(void)
{
    return __builtin_expect(__atomic_load_n(&MPIDU_device_gate.device_works, __ATOMIC_ACQUIRE), 0);
}

/* Is the caller that thread? */
static inline int MPIDU_device_gate_is_device(void)
{
    return MPIDU_device_gate_device_works() &&
        pthread_equal(pthread_self(), __atomic_load_n(&MPIDU_device_gate.device, __ATOMIC_RELAXED));
}

/* Has the application run @duty, inside. The device's thread calls this, inside. */
static inline void MPIDU_device_gate_put_off(MPIDU_device_gate_duty_t * duty,
                                             void (*run)(MPIDU_device_gate_duty_t *))
{
    duty->run = run;
    duty->next = __atomic_load_n(&MPIDU_device_gate.duties, __ATOMIC_RELAXED);
    __atomic_store_n(&MPIDU_device_gate.duties, duty, __ATOMIC_RELAXED);
}

/* Does the duties, the first one first. What they call may enter MPI again, and finds none of
 * them. */
static inline void MPIDU_device_gate_do_duties(void)
{
    MPIDU_device_gate_duty_t *last = __atomic_exchange_n(&MPIDU_device_gate.duties, NULL,
                                                         __ATOMIC_ACQ_REL);
    MPIDU_device_gate_duty_t *first = NULL;
    while (last) {
        MPIDU_device_gate_duty_t *before = last->next;
        last->next = first;
        first = last;
        last = before;
    }
    while (first) {
        MPIDU_device_gate_duty_t *duty = first;
        first = duty->next;
        duty->run(duty);
    }
}

static inline void MPIDU_device_gate_enter(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    if (MPIDU_device_gate_is_device()) {
        return;
    }
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
    if (__builtin_expect(__atomic_load_n(&gate->duties, __ATOMIC_RELAXED) != NULL, 0)) {
        MPIDU_device_gate_do_duties();
    }
}

static inline void MPIDU_device_gate_exit(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    if (MPIDU_device_gate_is_device()) {
        return;
    }
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

/* Has every call of the application run @function when it has left MPI, until the device sets
 * NULL. */
static inline void MPIDU_device_gate_set_on_exit(void (*function)(void))
{
    __atomic_store_n(&MPIDU_device_gate.on_exit, function, __ATOMIC_RELAXED);
}

/* These two surround a function of the user that may leave by longjmp() or an exception, and never
 * return: it runs outside. Where calls overlap, it is not known whether the caller is inside at
 * all. True: the caller was inside, and has to step in again. */
static inline int MPIDU_device_gate_step_out(int calls_overlap)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    if (!gate->enabled || calls_overlap || MPIDU_device_gate_device_works() ||
        __atomic_load_n(&gate->app_inside, __ATOMIC_RELAXED) == 0) {
        return 0;
    }
    MPIDU_device_gate_exit();
    return 1;
}

static inline void MPIDU_device_gate_step_in(int was_inside)
{
    if (was_inside) {
        MPIDU_device_gate_enter();
    }
}

/* Can the device's thread make the barriers of both sides? The first call takes 15 ms in a process
 * that has threads already (the kernel waits for all processors), and no time in one that has none,
 * so it should be early. */
static inline int MPIDU_device_gate_prepare(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* Puts the gate into use, and closes it behind the caller, which is in MPI.
 * @calls_overlap: several threads may be in MPI at once. */
static inline void MPIDU_device_gate_enable(int calls_overlap)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    gate->one_sided = !calls_overlap && MPIDU_device_gate_prepare();
    gate->app_inside = 1;
    __atomic_store_n(&gate->enabled, 1, __ATOMIC_SEQ_CST);
}

/* Takes the gate out of use. The device's thread has ended. */
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
    __atomic_store_n(&gate->device_works, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gate->device_inside, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&gate->waiting, __ATOMIC_SEQ_CST)) {
        syscall(SYS_futex, &gate->device_inside, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
    }
}

/* Tries to enter, as the device's thread. True: it is inside now. */
static inline int MPIDU_device_gate_try(void)
{
    MPIDU_device_gate_t *gate = &MPIDU_device_gate;
    __atomic_store_n(&gate->device_inside, 1, __ATOMIC_SEQ_CST);
    /* Without memory for it there is no barrier, and what the other thread does is not known. */
    const int ordered = !gate->one_sided ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    if (!ordered || __atomic_load_n(&gate->app_inside, __ATOMIC_SEQ_CST) != 0) {
        MPIDU_device_gate_leave();
        return 0;
    }
    __atomic_store_n(&gate->device, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&gate->device_works, 1, __ATOMIC_RELEASE);
    return 1;
}

/* Is the application in MPI, or does it wait for the device's thread, which calls this? */
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
