/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * stepped - single calls for bench/kmod/where to step through
 *
 * Prints where the module's functions are, waits for the debugger to come, and
 * makes each call some times: the last time with its argument at kMark, where
 * the debugger stops it, after a line "# case NAME".
 */
#include "pagemap.h"
#include "rivals.h"
#include "zc_ioctl.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { kWarmUp = 6 };
#define kMark ((void *)0x20000000000ul)

/* Of the kernel only the module's: the rest does not move (no KASLR), but is a lot. */
static void print_symbols(bool all)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    char line[512], name[300], type;
    unsigned long at;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "%lx %c %299s", &at, &type, name) == 3 && strchr("tTwW", type) &&
            (all || strstr(line, "[zc]")))
            printf("# %016lx %s%s\n", at, name, strstr(line, "[zc]") ? " [zc]" : "");
    if (file)
        fclose(file);
}

static void call(const char *name, int fd, unsigned long command, const void *arg, size_t size)
{
    char other[256] __attribute__((aligned(8)));

    for (int i = 0; i < kWarmUp; i++) {
        memcpy(other, arg, size);
        ioctl(fd, command, other);
    }
    printf("# case %s\n", name);
    memcpy(kMark, arg, size);
    ioctl(fd, command, kMark);
}

static bool exchange(const char *name, const struct layout *layout)
{
    struct rival memory;
    struct zc_range range;
    struct zc_exchange x = {.size = sizeof(x), .range_size = sizeof(range), .count = 1};
    const struct zc_exchange *result = kMark;

    rival_open(&memory, RIVAL_KMOD, layout);
    if (memory.missing)
        return false;
    range = (struct zc_range){
        .a = (uintptr_t)memory.a, .b = (uintptr_t)memory.b, .length = layout->pages * PAGE_SIZE};
    x.ranges = (uintptr_t)&range;
    call(name, device(), ZC_IOC_EXCHANGE, &x, sizeof(x));
    rival_close(&memory, RIVAL_KMOD, layout);
    return result->done == range.length;
}

int main(int argc, char **argv)
{
    struct zc_features features = {.size = sizeof(features)};
    bool good;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("TAP version 13\n1..1\n");
    if (mmap(kMark, PAGE_SIZE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != kMark) {
        printf("not ok 1 - set-up\n");
        return 1;
    }
    print_symbols(argc > 1 && !strcmp(argv[1], "--symbols"));
    printf("# ready\n");
    /* Sleeping takes no time here. */
    for (volatile unsigned long i = 0; i < 50000000; i++)
        ;
    call("null", open("/dev/null", O_RDWR | O_CLOEXEC), ZC_IOC_FEATURES, &features,
         sizeof(features));
    call("features", device(), ZC_IOC_FEATURES, &features, sizeof(features));
    good = exchange("huge", &(struct layout){.pages = HUGE_PAGES, .huge = true});
    good = exchange("2", &(struct layout){.pages = 2}) && good;
    good = exchange("16", &(struct layout){.pages = 16}) && good;
    printf("%sok 1 - calls were made\n", good ? "" : "not ");
    return !good;
}
