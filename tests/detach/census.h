/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CENSUS_H
#define CENSUS_H

/* What this process holds of the system. */

#include <stdio.h>

typedef struct {
    long rss_kib;  /* resident memory */
    long heap_kib; /* in use, of malloc() */
    int mappings;  /* lines of /proc/self/maps */
    int shared;    /* of those, shared memory that is no file */
    int threads;
    int descriptors;
    int sockets;   /* of the descriptors, as are: */
    int anonymous; /* epoll, eventfd, timerfd, io_uring */
} census_t;

census_t census_take(void);

/* Prints every descriptor, for the reader of a failure. */
void census_print_descriptors(FILE *to);

#endif
