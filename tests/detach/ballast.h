/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_DETACH_BALLAST_H_INCLUDED
#define ZC_TESTS_DETACH_BALLAST_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

/* Memory of a program's own: no two of its pages are equal, and they change one after the other. */
typedef struct {
    uint64_t *words;
    size_t pages;
    size_t next;     /* page, to be changed */
    uint64_t rounds; /* all pages have been changed so often */
} ballast_t;

/* Ends the process if there is no memory. */
void ballast_fill(ballast_t *ballast, size_t mib);
/* The next COUNT pages. */
void ballast_change(ballast_t *ballast, size_t count);
/* Ends the process if a byte is not what it was. */
void ballast_check(const ballast_t *ballast);

#endif
