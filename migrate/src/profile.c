/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "zcm/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime_directory.h"

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* mkdir, and make sure that nobody else could have put it there or can get in. */
static int private_directory(const char *path)
{
    struct stat s;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return -errno;
    if (lstat(path, &s) != 0)
        return -errno;
    if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
        return -EPERM;
    return 0;
}

/* Until the last descriptor of this opening of the file is closed: fork() shares it, exec does not.
 */
static int lock_for_life(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &whole) != 0 ? -errno : 0;
}

static int default_directory(char *path, size_t size)
{
    const char *given = getenv("ZCM_PROFILE_DIR");
    int n;
    int err;

    if (given && *given) {
        n = snprintf(path, size, "%s", given);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
    }
    zcm_runtime_directory(path, size);
    n = (int)strlen(path);
    if (n == 0 || (size_t)n + sizeof "/ranks" > size)
        return -ENAMETOOLONG;
    err = private_directory(path);
    if (err == 0)
        memcpy(path + n, "/ranks", sizeof "/ranks");
    return err;
}

static int file_name(char *path, size_t size, const char *directory, uint64_t job, uint32_t rank)
{
    int n = snprintf(path, size, "%s/%016" PRIx64 ".%" PRIu32 ".%ld", directory, job, rank,
                     (long)getpid());
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int zcm_profile_create(const char *directory, uint64_t job, const char *job_name, uint32_t rank,
                       uint32_t world, uint32_t hosts_max, struct zcm_profile **out)
{
    char in[PATH_MAX - 64];
    char path[PATH_MAX];
    char partial[PATH_MAX + 8];
    struct zcm_profile *p;
    uint64_t size;
    int err;
    int fd;

    if (!out || job == 0 || world == 0 || world > ZCM_PROFILE_MAX_WORLD || rank >= world ||
        hosts_max == 0 || hosts_max > world + 65536u ||
        (job_name && strlen(job_name) >= ZCM_PROFILE_NAME))
        return -EINVAL;
    if (directory) {
        if (strlen(directory) >= sizeof in)
            return -ENAMETOOLONG;
        strcpy(in, directory);
    } else {
        err = default_directory(in, sizeof in);
        if (err)
            return err;
    }
    err = private_directory(in);
    if (err)
        return err;
    err = file_name(path, sizeof path, in, job, rank);
    if (err)
        return err;
    snprintf(partial, sizeof partial, "%s.new", path);

    size = zcm_profile_size(world, hosts_max);
    fd = open(partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    /* Allocated, not only promised: a full /run is an error here, not a SIGBUS later. */
    err = posix_fallocate(fd, 0, (off_t)size);
    if (err) {
        err = -err;
        goto err_unlink;
    }
    err = lock_for_life(fd);
    if (err)
        goto err_unlink;
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        err = -errno;
        goto err_unlink;
    }
    p->magic = ZCM_PROFILE_MAGIC;
    p->version = ZCM_PROFILE_VERSION;
    p->size = size;
    p->job = job;
    p->rank = rank;
    p->world = world;
    p->pid = (uint32_t)getpid();
    p->hosts_max = hosts_max;
    p->lock = fd;
    if (job_name)
        strcpy(p->job_name, job_name);
    p->counters.epoch = 1;
    p->counters.start_ns = now_ns();
    if (rename(partial, path) != 0) {
        err = -errno;
        munmap(p, size);
        goto err_unlink;
    }
    *out = p;
    return 0;

err_unlink:
    unlink(partial);
    close(fd);
    return err;
}

int zcm_profile_world(struct zcm_profile *p, uint64_t epoch, const uint32_t *host_of,
                      const char *const *names, uint32_t hosts)
{
    uint32_t *table;
    char *text;
    uint32_t i;

    if (!p)
        return 0;
    if (!host_of || !names || hosts == 0)
        return -EINVAL;
    if (hosts > p->hosts_max)
        return -ENOSPC;
    for (i = 0; i < p->world; i++) {
        if (host_of[i] >= hosts)
            return -EINVAL;
    }
    table = (uint32_t *)((char *)(p + 1) + ZCM_PROFILE_RING * sizeof(struct zcm_profile_message));
    text = (char *)(table + p->world);
    zcm_profile_begin_(p);
    p->counters.epoch = epoch;
    p->counters.hosts = hosts;
    memcpy(table, host_of, p->world * sizeof *table);
    for (i = 0; i < hosts; i++) {
        char *name = text + (size_t)i * ZCM_PROFILE_NAME;
        size_t length = strnlen(names[i], ZCM_PROFILE_NAME - 1);
        memcpy(name, names[i], length);
        memset(name + length, 0, ZCM_PROFILE_NAME - length);
    }
    zcm_profile_end_(p);
    return 0;
}

void zcm_profile_close(struct zcm_profile *p, const char *directory)
{
    char usual[PATH_MAX - 64];
    char path[PATH_MAX];

    if (!p)
        return;
    zcm_profile_flags(p, ZCM_PROFILE_ENDED);
    if (!directory && default_directory(usual, sizeof usual) == 0)
        directory = usual;
    if (directory && file_name(path, sizeof path, directory, p->job, p->rank) == 0)
        unlink(path);
    close(p->lock);
    munmap(p, p->size);
}
