/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_EXCHANGE_H
#define ZC_TESTS_EXCHANGE_H

/* Exchanges between areas; the oracle (area.h) follows what the module says it did. */

#include "area.h"
#include "zcdev.h"

/** Some pages of an area. */
struct part {
    struct area *area;
    size_t first;
};

/**
 * exchange - exchange @pages pages, going on after RACED and INTERRUPTED
 *
 * Return: the last call's outcome, with the bytes done by all of them.
 */
struct zcdev_outcome exchange(struct part a, struct part b, size_t pages);

/** Must be exchanged to its end; then both areas are read. */
void exchange_all(struct part a, struct part b, size_t pages);

/** Must stop after @done pages because of @cause; then both areas are read. */
void exchange_stops(struct part a, struct part b, size_t pages, enum zc_cause cause, size_t done);

/** Pages of @a and @b are exchanged without a copy: the frames change places. */
void exchange_frames(struct part a, struct part b, size_t pages);

/** The whole area. */
static inline struct part whole(struct area *area)
{
    return (struct part){area, 0};
}
static inline struct part part(struct area *area, size_t first)
{
    return (struct part){area, first};
}

#endif
