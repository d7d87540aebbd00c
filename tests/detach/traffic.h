/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRAFFIC_H
#define TRAFFIC_H

/* What a message contains follows from its sender, its receiver and its number, so that the
 * receiver can check every byte of it. Sizes are those of a program: most messages are short, some
 * are so long that UCX only announces them, and the receiver fetches them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t from, to;
    uint64_t number;
} traffic_name_t;

/* Returns the bytes of the message, 1 or more. */
size_t traffic_size(traffic_name_t name);

void traffic_fill(traffic_name_t name, void *data, size_t length);

/* Returns whether @data is what traffic_fill() makes. */
bool traffic_check(traffic_name_t name, const void *data, size_t length);

#endif
