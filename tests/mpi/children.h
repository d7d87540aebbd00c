/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of which processes of several worlds take part, parents and the children that they
 * spawn, while holders (holder.c) tell some of either to leave. It is called
 *
 *     PROGRAM FILE NUMBER CHILDREN TOLD TIMES WHAT...
 *
 * and makes FILE.ready, from when on the parents are told, and goes on until there are NUMBER files
 * FILE.<rank> and FILE-child.<rank>, of those that have left TIMES. The CHILDREN have holders if
 * TOLD is a list of ranks ("0,1"), not "-". A child has its kind before FILE. With children-N among
 * WHAT those of the first kind have N VCIs.
 */
#ifndef ZC_CHILDREN_H
#define ZC_CHILDREN_H

#include "marks.h"
#include <libgen.h>

enum { MOST_ARGUMENTS = 64 };

static struct {
    const char *kind; /* of a child; NULL: a parent */
    const char *file;
    int number, children, times;
    const char *told;
    char **what;
    int whats;
} job;

/** job_read - @kinds: of children, the last NULL. It is called before MPI_Init() */
static inline void job_read(int argc, char **argv, const char *const *kinds)
{
    for (int i = 0; kinds[i] && argc > 1; i++)
        if (!strcmp(argv[1], kinds[i]))
            job.kind = kinds[i];
    const int shift = job.kind != NULL;
    CHECK(argc > 6 + shift, "usage: %s FILE NUMBER CHILDREN TOLD TIMES WHAT...", argv[0]);
    job.file = argv[1 + shift];
    job.number = atoi(argv[2 + shift]);
    job.children = atoi(argv[3 + shift]);
    job.told = argv[4 + shift];
    job.times = atoi(argv[5 + shift]);
    job.what = argv + 6 + shift;
    job.whats = argc - 6 - shift;
    if (job.kind)
        unsetenv("MPIR_CVAR_CH4_ZC_STATS_FILE"); /* of a rank of the same number */
}

static inline int job_is_child(void)
{
    return job.kind != NULL;
}

static inline int job_wants(const char *what)
{
    for (int i = 0; i < job.whats; i++)
        if (!strcmp(job.what[i], what))
            return 1;
    return 0;
}

/** job_vcis_of - children of @kind, as a setting, or NULL */
static inline const char *job_vcis_of(const char *kind)
{
    static char setting[64];
    for (int i = 0; !strcmp(kind, "child") && i < job.whats; i++) {
        if (!strncmp(job.what[i], "children-", 9)) {
            snprintf(setting, sizeof setting, "MPIR_CVAR_CH4_NUM_VCIS=%s", job.what[i] + 9);
            return setting;
        }
    }
    return NULL;
}

/** job_start - so many of this program, as @kind, by a holder if @told; the caller frees nothing */
static inline MPI_Comm job_start(const char *kind, int number, const char *told, MPI_Comm by)
{
    static char self[4096], holder[4096 + 16], times[16], file[4096], count[16];
    char *arguments[MOST_ARGUMENTS];
    int n = 0;
    MPI_Comm comm;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0, "no /proc/self/exe");
    self[length] = '\0';
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", self);
    snprintf(holder, sizeof holder, "%s/holder", dirname(folder));
    snprintf(times, sizeof times, "%d", job.times);
    snprintf(file, sizeof file, "%s-child", job.file);
    snprintf(count, sizeof count, "%d", job.number);
    const char *setting = job_vcis_of(kind);
    char *command = told ? holder : self;
    if (setting) {
        arguments[n++] = (char *)setting;
        arguments[n++] = command;
        command = "/usr/bin/env";
    }
    if (told) {
        char *by_holder[] = {"-r", (char *)told, "-n", times, "-u", file, "-w", "20", "--", self};
        for (size_t i = 0; i < sizeof by_holder / sizeof *by_holder; i++)
            arguments[n++] = by_holder[i];
    }
    char *own[] = {(char *)kind, (char *)job.file, count, "0", "-", times};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        arguments[n++] = own[i];
    for (int i = 0; i < job.whats; i++)
        arguments[n++] = job.what[i];
    arguments[n] = NULL;
    MPI_Comm_spawn(command, arguments, number, MPI_INFO_NULL, 0, by, &comm, MPI_ERRCODES_IGNORE);
    return comm;
}

/** job_have_children - of the first kind; returns the intercommunicator of both, on both sides */
static inline MPI_Comm job_have_children(void)
{
    MPI_Comm inter;
    MPI_Comm_get_parent(&inter);
    return job_is_child() ? inter
                          : job_start("child", job.children,
                                      strcmp(job.told, "-") ? job.told : NULL, MPI_COMM_WORLD);
}

/** job_through - how many ranks' holders are. @ranks: of parents and children */
static inline int job_through(int ranks)
{
    char name[4096];
    struct stat status;
    int number = 0;
    for (int i = 0; i < ranks; i++) {
        snprintf(name, sizeof name, "%s%s.%d", job.file, i < check_ranks ? "" : "-child",
                 i < check_ranks ? i : i - check_ranks);
        number += stat(name, &status) == 0;
    }
    return number;
}

#endif
