/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the mpiexec has that started this process, as far as /proc tells: hosts of a test are of one
 * kernel.
 *
 *     const struct launcher before = launcher_look();
 */
#ifndef ZC_LAUNCHER_H
#define ZC_LAUNCHER_H

#include "check.h"
#include <dirent.h>
#include <string.h>

struct launcher {
    long pid;
    int descriptors;
    int processes; /* children, and those of these, and so on, but for */
    int ended;     /* which have not been waited for */
    long memory;   /* KiB of its own that are there */
};

static inline int entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    CHECK(dir, "%s", folder);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/** launcher_parent - of the process @pid, the name of its program, and its state; 0: it has gone */
static inline long launcher_parent(long pid, char name[64], char *state)
{
    char path[64];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%63[^)]) %c %ld", name, state, &parent) != 3)
        parent = 0;
    fclose(file);
    return parent;
}

static inline long launcher_find(void)
{
    char name[64] = "", state;
    long pid = getppid();
    for (long parent; pid > 1 && (parent = launcher_parent(pid, name, &state)) != 0; pid = parent)
        if (strstr(name, "mpiexec"))
            return pid;
    return 0;
}

static inline int launcher_is_above(long launcher, long pid)
{
    char name[64], state;
    while (pid > 1 && pid != launcher)
        pid = launcher_parent(pid, name, &state);
    return pid == launcher;
}

/** memory_of - KiB that are there and are no file's nor another process's */
static inline long memory_of(long pid)
{
    char path[64], line[256];
    long memory = -1;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    CHECK(file, "%s", path);
    while (fgets(line, sizeof line, file) && sscanf(line, "RssAnon: %ld", &memory) != 1)
        continue;
    fclose(file);
    CHECK(memory > 0, "%s says nothing of memory", path);
    return memory;
}

static inline struct launcher launcher_look(void)
{
    struct launcher it = {.pid = launcher_find()};
    char folder[64], name[64], state = 0;
    CHECK(it.pid, "no mpiexec has started this process");
    snprintf(folder, sizeof folder, "/proc/%ld/fd", it.pid);
    it.descriptors = entries_of(folder);
    it.memory = memory_of(it.pid);
    DIR *dir = opendir("/proc");
    CHECK(dir, "/proc");
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const long pid = atol(entry->d_name);
        if (pid > 0 && launcher_is_above(it.pid, launcher_parent(pid, name, &state)))
            (*(state == 'Z' ? &it.ended : &it.processes))++;
    }
    closedir(dir);
    return it;
}

#endif
