/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_TORTURE_DISTURB_H
#define ZC_TESTS_TORTURE_DISTURB_H

/* Everything else that happens to memory, at random. */

#include "crew.h"

/** Opens what it needs; before any thread runs. */
void disturb_open(void);

/** One of the things, and back to as it was. For several threads. */
void disturb(struct crew_member *self);

/** What was done how often, as notes. */
void disturb_report(void);

#endif
