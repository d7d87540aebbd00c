/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PROCESSORS_H_INCLUDED
#define ZC_PROCESSORS_H_INCLUDED

/* The processors that this process may run on, and those of the processes of the job beside it:
 * of the ranks of its host, which tell each other in memory that they share while MPI is
 * initialised, and of other ranks and connected processes of other worlds on the same machine,
 * in other containers say, whose masks come with their addresses. All masks are those
 * of the threads that initialised MPI, at that time; what a cgroup's cpu.max allows is not
 * asked for.
 *
 * Two questions are answered from them (zc_share.h): has each rank of this host a processor, and
 * this one another for its landing thread; and has each process of this machine one, or must a
 * waiting process give way? Used inside the lock of VCI 0. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "zc_share.h"

/* Of a mask: of 8192 processors, as many as Linux can be built for. */
#define MPIDI_ZC_PROCESSORS_WORDS 128

/* Learns those of this host's ranks, which all call it. */
int MPIDI_ZC_processors_init(void);

/* This process's, without zeros at the end: *@words of them. */
const uint64_t *MPIDI_ZC_processors_own(int *words);

/* One more process on this machine, @near: on this host. @mask: what it said, or NULL:
 * it has not yet, and is taken to be where this process is. NULL: no memory; it does not
 * count. */
typedef struct MPIDI_ZC_beside MPIDI_ZC_beside_t;
MPIDI_ZC_beside_t *MPIDI_ZC_processors_add(const uint64_t * mask, int words, bool near);

/* It has said now, or has gone. @beside may be NULL. */
void MPIDI_ZC_processors_set(MPIDI_ZC_beside_t * beside, const uint64_t * mask, int words);
void MPIDI_ZC_processors_remove(MPIDI_ZC_beside_t * beside);

/* This process's share, among those of its host, or of the whole machine. */
MPIDI_ZC_share_t MPIDI_ZC_processors_of_host(void);
MPIDI_ZC_share_t MPIDI_ZC_processors_of_machine(void);

void MPIDI_ZC_processors_free(void);

#endif /* ZC_PROCESSORS_H_INCLUDED */
