/* SPDX-License-Identifier: BSD-3-Clause */
/* Files by which a program and its holders (holder.c) tell each other how far they are. */
#ifndef ZC_MARKS_H
#define ZC_MARKS_H

#include "check.h"
#include <sys/stat.h>

static inline void mark(const char *file, const char *suffix)
{
    char name[4096];
    snprintf(name, sizeof name, "%s%s", file, suffix);
    FILE *made = fopen(name, "w");
    CHECK(made, "cannot make %s", name);
    fclose(made);
}

/** found - how many of the ranks' files @file.<rank> there are */
static inline int found(const char *file)
{
    char name[4096];
    struct stat status;
    int number = 0;
    for (int rank = 0; rank < check_ranks; rank++) {
        snprintf(name, sizeof name, "%s.%d", file, rank);
        number += stat(name, &status) == 0;
    }
    return number;
}

#endif
