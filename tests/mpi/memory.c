/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of memory can receive late large messages: what can be rebound and
 * what must be refused and copied. Each kind receives several times, so that
 * its address is foreseen; the bytes around it stay as they were.
 */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

enum { GO = 1, DATA = 2, TIMES = 5 };
static const size_t bytes = (1 << 20) + 4096 + 24; /* ragged at the end */
static const size_t room = 4 << 20;

static int messages;
static unsigned char in_data[2 << 20] = {1}, in_bss[2 << 20];

/* Receives TIMES messages at @at, which has @before and @after bytes of its own around. */
static void receive_at(unsigned char *at, size_t before, size_t after, const char *kind)
{
    memset(at - before, 0x5a, before);
    memset(at + bytes, 0x5a, after);
    for (int i = 0; i < TIMES; i++, messages++) {
        const uint64_t seed = check_seed + (uint64_t)messages;
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        check_sleep_ms(8);
        MPI_Recv(at, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(at, bytes, seed, kind);
        for (size_t b = 0; b < before; b++)
            CHECK(at[(ptrdiff_t)b - (ptrdiff_t)before] == 0x5a, "%s: %zu bytes before changed",
                  kind, before - b);
        for (size_t b = 0; b < after; b++)
            CHECK(at[bytes + b] == 0x5a, "%s: %zu bytes past the end changed", kind, b);
    }
}

static unsigned char *map(size_t length, int flags, int fd)
{
    void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void anonymous(void)
{
    unsigned char *p = map(room, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    CHECK(p, "mmap: %s", strerror(errno));
    receive_at(p + 100, 100, 100, "private anonymous memory");
    receive_at(p, 0, 100, "page-aligned memory");
    /* Never touched before: page tables empty. */
    unsigned char *fresh = map(room, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    CHECK(fresh, "mmap: %s", strerror(errno));
    receive_at(fresh + 16, 0, 0, "untouched memory");
    /* Two mappings of different kinds under one buffer. */
    CHECK(mmap(p + (512 << 10), 512 << 10, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
          "mmap: %s", strerror(errno));
    receive_at(p + 16, 16, 100, "half private, half shared memory");
    munmap(fresh, room);
    munmap(p, room);
}

static void huge_pages(void)
{
    unsigned char *p = map(2 * room, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    CHECK(p, "mmap: %s", strerror(errno));
    unsigned char *aligned = p + (-(uintptr_t)p & (2 * MIB - 1));
    if (madvise(aligned, room, MADV_HUGEPAGE) == 0)
        receive_at(aligned + 4096 + 16, 100, 100, "transparent huge pages");
    munmap(p, 2 * room);
    unsigned char *q = map(room, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
    if (q) { /* where the system has such pages at all */
        receive_at(q + 16, 16, 100, "hugetlb memory");
        munmap(q, room);
    }
}

static void locked(void)
{
    unsigned char *p = map(room, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    CHECK(p, "mmap: %s", strerror(errno));
    if (mlock(p, room) == 0)
        receive_at(p + 16, 16, 100, "locked memory");
    munmap(p, room);
}

/* The file must hold what was received if the mapping is shared, and must not if it is private. */
static void file_backed(int flags, const char *kind)
{
    char name[] = "/tmp/zc-memory-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0, "mkstemp: %s", strerror(errno));
    unlink(name);
    CHECK(ftruncate(fd, (off_t)room) == 0, "ftruncate: %s", strerror(errno));
    unsigned char *p = map(room, flags, fd);
    CHECK(p, "mmap: %s", strerror(errno));
    receive_at(p + 4096 + 16, 100, 100, kind);
    unsigned char *file = check_malloc(bytes);
    CHECK(pread(fd, file, bytes, 4096 + 16) == (ssize_t)bytes, "pread: %s", strerror(errno));
    if (flags & MAP_SHARED) {
        check_content(file, bytes, check_seed + (uint64_t)messages - 1, "file behind the buffer");
    } else {
        for (size_t b = 0; b < bytes; b++)
            CHECK(file[b] == 0, "a private mapping wrote to its file, byte %zu", b);
    }
    free(file);
    munmap(p, room);
    close(fd);
}

static void on_stack(void)
{
    unsigned char buf[(1 << 20) + (64 << 10)];
    receive_at(buf + 100, 100, 100, "the stack");
}

static void in_arena(void)
{
    /* Within a larger block: neighbours on both sides are live data of others. */
    unsigned char *p = check_malloc(room);
    receive_at(p + 70000, 70000, room - 70000 - bytes, "the middle of a block");
    free(p);
}

static void receive_all(void)
{
    anonymous();
    huge_pages();
    locked();
    file_backed(MAP_PRIVATE, "a private file mapping");
    file_backed(MAP_SHARED, "a shared file mapping");
    on_stack();
    in_arena();
    receive_at(in_data + 100, 100, 100, "initialised data");
    receive_at(in_bss + 100, 100, 100, "zero-initialised data");
}

/* The receiver alone knows how often: a GO that is not empty ends it. */
static void serve(void)
{
    char *buf = check_malloc(bytes);
    for (int i = 0;; i++) {
        MPI_Status status;
        int stop;
        pattern_fill(buf, bytes, check_seed + (uint64_t)i);
        MPI_Recv(&(char){0}, 1, MPI_BYTE, 0, GO, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &stop);
        if (stop)
            break;
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (check_rank == 0) {
        receive_all();
        MPI_Send("", 1, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    } else if (check_rank == 1) {
        serve();
    }
    return check_finish();
}
