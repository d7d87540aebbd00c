/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCM_STATE_H_INCLUDED
#define ZCM_STATE_H_INCLUDED

/**
 * The state of an instrumented program: what zcm-instrument(1) writes beside it
 *
 *     zcm_state_local(3, &step, sizeof step);      // where the live variables of this frame are
 *     zcm_state_ready();                           // registers the state, or restores it
 *     if (zcm_safe_point() != 0) ...
 *
 * The roots are the variables that are live at the safe point. Heap blocks are found by
 * following their pointers when the state is taken; a pointer is saved as the block, variable or
 * part of the program that it points into, and an offset there.
 *
 * Threads: that which initialised MPI. Errors are printed with the name of the culprit. If the
 * state cannot be taken, the request is refused and the job goes on; if it cannot be restored, the
 * process ends, which refuses the move.
 */

#include <mpi.h>
#include <stddef.h>
#include <zcm/zcm.h>

/** zcm_state_init - calls zcm_init() if MPI_Init() has returned MPI_SUCCESS. Return: @code. */
int zcm_state_init(int code);

/**
 * zcm_state_local - where root number @root is now, and its length in bytes
 *
 * The memory is the caller's. It has to be current at the next zcm_state_ready() only.
 */
void zcm_state_local(int root, const volatile void *at, size_t bytes);

/** zcm_state_arguments - the second argument of main(): pointers may lead to what it leads to */
void zcm_state_arguments(const void *argv);

/**
 * zcm_state_buffer - @at is in the buffer of a persistent request: its block is saved, whether a
 * pointer of the program leads there or not. Return: @at.
 */
void *zcm_state_buffer(const void *at);

/** zcm_state_ready - before each zcm_safe_point(). In a resumed process the first call restores. */
void zcm_state_ready(void);

/* As malloc(3) and the others; the blocks are known by number and size, and begin as zeros. */
void *zcm_state_malloc(size_t bytes);
void *zcm_state_calloc(size_t count, size_t bytes);
void *zcm_state_realloc(void *at, size_t bytes);
void *zcm_state_aligned_alloc(size_t alignment, size_t bytes);
int zcm_state_posix_memalign(void **at, size_t alignment, size_t bytes);
char *zcm_state_strdup(const char *text);
void zcm_state_free(void *at);

#endif
