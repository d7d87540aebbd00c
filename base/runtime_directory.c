/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* faccessat() with AT_EACCESS */
#include "runtime_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum zcm_runtime examine(const char *runtime)
{
    struct stat s;

    if (!runtime || !*runtime)
        return ZCM_RUNTIME_UNSET;
    if (*runtime != '/')
        return ZCM_RUNTIME_RELATIVE;
    if (stat(runtime, &s) != 0)
        return ZCM_RUNTIME_MISSING;
    if (!S_ISDIR(s.st_mode))
        return ZCM_RUNTIME_NO_DIRECTORY;
    if (s.st_uid != geteuid())
        return ZCM_RUNTIME_OF_ANOTHER;
    if (s.st_mode & 022)
        return ZCM_RUNTIME_OPEN_TO_OTHERS;
    if (faccessat(AT_FDCWD, runtime, W_OK | X_OK, AT_EACCESS) != 0)
        return ZCM_RUNTIME_NOT_WRITABLE;
    return ZCM_RUNTIME_USED;
}

static int fits(int length, char *path, size_t size)
{
    if (length >= 0 && (size_t)length < size)
        return 1;
    if (size > 0)
        *path = '\0';
    return 0;
}

enum zcm_runtime zcm_runtime_directory(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const enum zcm_runtime what = examine(runtime);

    if (what == ZCM_RUNTIME_USED)
        fits(snprintf(path, size, "%s/zcm", runtime), path, size);
    else
        fits(snprintf(path, size, "/tmp/zcm-%u", (unsigned)geteuid()), path, size);
    return what;
}

const char *zcm_runtime_text(enum zcm_runtime what)
{
    switch (what) {
    case ZCM_RUNTIME_USED:
        return "it is used";
    case ZCM_RUNTIME_UNSET:
        return "it is not set";
    case ZCM_RUNTIME_RELATIVE:
        return "it is not an absolute path";
    case ZCM_RUNTIME_MISSING:
        return "it does not exist";
    case ZCM_RUNTIME_NO_DIRECTORY:
        return "it is not a directory";
    case ZCM_RUNTIME_OF_ANOTHER:
        return "it belongs to another user";
    case ZCM_RUNTIME_OPEN_TO_OTHERS:
        return "others can write to it";
    case ZCM_RUNTIME_NOT_WRITABLE:
        return "it cannot be written to";
    }
    return "";
}

int zcm_runtime_place(int n, char *path, size_t size)
{
    char ours[PATH_MAX], usual[ZCM_RUNTIME_PLACES][64];
    int i;

    zcm_runtime_directory(ours, sizeof ours);
    if (n == 0)
        return fits(snprintf(path, size, "%s", ours), path, size) ? 0 : -1;
    snprintf(usual[0], sizeof usual[0], "/run/user/%u/zcm", (unsigned)geteuid());
    snprintf(usual[1], sizeof usual[1], "/tmp/zcm-%u", (unsigned)geteuid());
    for (i = 0; n == 1 && i < ZCM_RUNTIME_PLACES; i++)
        if (strcmp(ours, usual[i]) == 0)
            return fits(snprintf(path, size, "%s", usual[1 - i]), path, size) ? 0 : -1;
    return -1;
}
