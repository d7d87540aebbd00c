/* SPDX-License-Identifier: BSD-3-Clause */
#include "procfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long file_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n;

    if (fd < 0)
        return -errno;
    while (used < room - 1 && (n = read(fd, text + used, room - 1 - used)) != 0) {
        if (n < 0) {
            int error = errno;

            close(fd);
            return -error;
        }
        used += n;
    }
    close(fd);
    text[used] = 0;
    return used;
}

int file_write(const char *path, const char *format, ...)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;
    char text[256];
    va_list args;
    int n;

    if (fd < 0)
        return -errno;
    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (write(fd, text, n) != n)
        error = -errno;
    close(fd);
    return error;
}

long file_number(const char *path, const char *key)
{
    static char text[64 * 1024];
    const char *at = text;
    size_t len = key ? strlen(key) : 0;

    if (file_read(path, text, sizeof(text)) <= 0)
        return -1;
    for (; key; at++) {
        at = strstr(at, key);
        if (!at)
            return -1;
        /* A whole word at the beginning of a line. */
        if ((at == text || at[-1] == '\n') && (at[len] == ':' || isspace(at[len]))) {
            at += len + 1;
            break;
        }
    }
    return strtol(at, NULL, 10);
}

struct smaps_sum {
    const char *field;
    long kib;
    int mappings;
};

static void read_smaps(struct smaps_sum *sum, const char *at, size_t len)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    uintptr_t from = (uintptr_t)at, to = from + len, start, end;
    size_t field_len = strlen(sum->field);
    bool inside = false;
    char line[512];

    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = start < to && from < end;
            sum->mappings += inside;
        } else if (inside && !strncmp(line, sum->field, field_len) && line[field_len] == ':') {
            sum->kib += strtol(line + field_len + 1, NULL, 10);
        }
    }
    fclose(file);
}

long smaps_kib(const char *field, const void *at, size_t len)
{
    struct smaps_sum sum = {.field = field};

    read_smaps(&sum, at, len);
    return sum.kib;
}

int mappings_of(const void *at, size_t len)
{
    struct smaps_sum sum = {.field = "Size"};

    read_smaps(&sum, at, len);
    return sum.mappings;
}

long rss_pages(void)
{
    char text[128];
    long total = 0, resident = 0;

    if (file_read("/proc/self/statm", text, sizeof(text)) <= 0 ||
        sscanf(text, "%ld %ld", &total, &resident) != 2)
        return -1;
    return resident;
}

long rss_anon_pages(void)
{
    long kib = file_number("/proc/self/status", "RssAnon");

    return kib < 0 ? -1 : kib / 4;
}

void drain_lru(void)
{
    if (file_write("/proc/sys/vm/compact_memory", "1"))
        usleep(1000);
}

bool is_root(void)
{
    return geteuid() == 0;
}
