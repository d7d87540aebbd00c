/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROCESSORS_H_INCLUDED
#define ZC_PROCESSORS_H_INCLUDED

/* This file keeps the masks of the processors that this process and other processes of the job on
 * the same machine may run on. The ranks of a host exchange theirs in memory that they share while
 * MPI is initialised. The masks of other ranks, and of connected processes of other worlds, on the
 * same machine (in other containers, for example) arrive with their addresses. All masks are those
 * of the threads that initialised MPI, at that time. A cgroup's cpu.max is not considered.
 *
 * The masks answer two questions (zc_share.h). Can each rank of this host have a processor, and
 * this one another for its landing thread? Can each process of this machine have one, or must a
 * process that waits give way? All functions are called inside the lock of VCI 0. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "zc_share.h"

/* The words of a mask: for 8192 processors, as many as Linux can be built for. */
#define MPIDI_ZC_PROCESSORS_WORDS 128

/* Exchanges the masks of this host's ranks, which all call it. */
int MPIDI_ZC_processors_init(void);

/* Returns this process's mask, which has *@words words, without zeros at the end. */
const uint64_t *MPIDI_ZC_processors_own(int *words);

/* Another process on this machine. */
typedef struct MPIDI_ZC_neighbour MPIDI_ZC_neighbour_t;

/* Adds a process, which is on this host if @near. @mask: its mask, or NULL while that is not
 * known; the process is then assumed to run where this one does. Returns NULL if there is no
 * memory; then the process is not considered. */
MPIDI_ZC_neighbour_t *MPIDI_ZC_processors_add(const uint64_t * mask, int words, bool near);

/* Sets the mask of a process, or removes a process. @neighbour may be NULL. */
void MPIDI_ZC_processors_set(MPIDI_ZC_neighbour_t * neighbour, const uint64_t * mask, int words);
void MPIDI_ZC_processors_remove(MPIDI_ZC_neighbour_t * neighbour);

/* Return this process's share of the processors, among the processes of its host or of the
 * machine. */
MPIDI_ZC_share_t MPIDI_ZC_processors_of_host(void);
MPIDI_ZC_share_t MPIDI_ZC_processors_of_machine(void);

void MPIDI_ZC_processors_free(void);

#endif /* ZC_PROCESSORS_H_INCLUDED */
