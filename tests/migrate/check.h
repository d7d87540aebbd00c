/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_MIGRATE_CHECK_H_INCLUDED
#define ZC_TESTS_MIGRATE_CHECK_H_INCLUDED

#include <stdio.h>
#include <stdlib.h>

/** CHECK - end this process, naming its `rank` and the line, unless @condition holds */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: line %d: ", rank, __LINE__);                                 \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
