/* SPDX-License-Identifier: BSD-3-Clause */
#include "census.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int nr = 0;
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        nr += task->d_name[0] != '.';
    }
    if (tasks) {
        closedir(tasks);
    }
    return nr;
}

/* Calls @look for every descriptor but the one it reads with. */
static void for_descriptors(void (*look)(void *arg, int fd, const char *what), void *arg)
{
    DIR *descriptors = opendir("/proc/self/fd");
    char what[256];
    for (const struct dirent *entry; descriptors && (entry = readdir(descriptors));) {
        const int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd == dirfd(descriptors)) {
            continue;
        }
        const ssize_t length =
            readlinkat(dirfd(descriptors), entry->d_name, what, sizeof(what) - 1);
        what[length < 0 ? 0 : length] = '\0';
        look(arg, fd, what);
    }
    if (descriptors) {
        closedir(descriptors);
    }
}

static void count_descriptor(void *arg, int fd, const char *what)
{
    census_t *census = arg;
    (void)fd;
    census->descriptors++;
    census->sockets += strncmp(what, "socket:", 7) == 0;
    census->anonymous += strncmp(what, "anon_inode:", 11) == 0;
}

static void count_mappings(census_t *census)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[1024];
    while (maps && fgets(line, sizeof(line), maps)) {
        census->mappings++;
        /* 7f0000000000-7f0000001000 rw-s 00000000 ... */
        const char *rights = strchr(line, ' ');
        census->shared += rights && rights[4] == 's';
    }
    if (maps) {
        fclose(maps);
    }
}

census_t census_take(void)
{
    census_t census = {.threads = count_threads()};
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm) {
        if (fscanf(statm, "%ld %ld", &pages, &resident) != 2) {
            resident = 0;
        }
        fclose(statm);
    }
    census.rss_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
    const struct mallinfo2 heap = mallinfo2();
    census.heap_kib = (long)((heap.uordblks + heap.hblkhd) / 1024);
    count_mappings(&census);
    for_descriptors(count_descriptor, &census);
    return census;
}

static void print_descriptor(void *arg, int fd, const char *what)
{
    fprintf(arg, "  descriptor %d: %s\n", fd, what);
}

void census_print_descriptors(FILE *to)
{
    for_descriptors(print_descriptor, to);
}
