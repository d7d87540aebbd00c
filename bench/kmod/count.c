/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * count - instructions of an exchange through /dev/zc, beside mremap, UFFDIO_MOVE and memcpy
 *
 *   count [--prefix TEXT] [--most PAGES]
 *
 * For a machine that counts them: QEMU with -icount shift=0, where the time
 * stamp counter advances by one for each instruction executed, the kernel's
 * and interrupts' included (tests/run kmod --icount). Elsewhere it ends
 * with a reason: what it measured would be time. Sizes and rivals take turns, so
 * that none has a quieter machine; the median of several turns is printed, as one
 * JSON object per line, each behind TEXT, in between a TAP frame.
 *
 *   case pages            small pages, both ranges at the same place of their 2 MiB: mremap
 *                         may move whole page tables
 *   case pages_elsewhere  small pages, at different places
 *   case huge_pages       whole huge pages
 *   case entry            one call that has nothing to do
 *   case batch_*          N exchanges of 16 pages each: as one vector, as N calls, as one
 *                         submission of N commands through io_uring
 *
 * instructions_per_page divides by the pages of one range. An exchange brings as many
 * pages the other way.
 */
#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"
#include "rivals.h"
#include "uring.h"
#include "zc_ioctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

typedef unsigned long long count_t;

enum { kMostTurns = 31, kWarmUp = 2, kBatchPages = 16, kMostBatch = 64 };

static const char *prefix = "";
static count_t nothing; /* what two readings cost */
static double ticks_per_instruction;

struct sample {
    count_t of[kMostTurns];
    int count;
};

/* ---- counting ---- */

static count_t begin_count(void)
{
    _mm_lfence();
    return __rdtsc();
}

static count_t end_count(count_t begin)
{
    count_t took = __rdtsc() - begin;

    return (count_t)((took > nothing ? took - nothing : 0) / ticks_per_instruction + 0.5);
}

/* Two instructions a turn. */
static void known_loop(count_t turns)
{
    __asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

static count_t least_ticks(count_t turns)
{
    count_t best = ~0ull;

    for (int i = 0; i < 200; i++) {
        count_t begin = begin_count(), took;

        if (turns)
            known_loop(turns);
        took = __rdtsc() - begin;
        if (took < best)
            best = took;
    }
    return best;
}

/* Two lengths of a known loop, without what an interrupt adds: exact, or this is not icount. */
static bool calibrate(void)
{
    count_t some, more;

    ticks_per_instruction = 1;
    nothing = least_ticks(0);
    some = least_ticks(1000);
    more = least_ticks(11000);
    ticks_per_instruction = (double)(more - some) / 20000;
    printf("# calibration: %llu ticks for nothing, %llu for 2000 instructions, %llu for 22000: "
           "%.4f ticks per instruction\n",
           nothing, some - nothing, more - nothing, ticks_per_instruction);
    return ticks_per_instruction > 0.999 && ticks_per_instruction < 1.001;
}

static int compare(const void *a, const void *b)
{
    count_t x = *(const count_t *)a, y = *(const count_t *)b;

    return x < y ? -1 : x > y;
}

static void print(const char *name, const char *impl, size_t pages, struct sample *sample)
{
    const count_t *s = sample->of;
    const int n = sample->count;

    qsort(sample->of, n, sizeof(*sample->of), compare);
    for (int per_page = 0; per_page < 2; per_page++) {
        double by = per_page ? pages : 1;

        if (!by)
            continue;
        printf("%s{\"bench\":\"kmod\",\"case\":\"%s\",\"impl\":\"%s\",\"bytes\":%zu,"
               "\"metric\":\"instructions_per_%s\",\"unit\":\"instructions\",\"median\":%.*f,"
               "\"p10\":%.*f,\"p90\":%.*f,\"n\":%d}\n",
               prefix, name, impl, pages * PAGE_SIZE, per_page ? "page" : "call", per_page,
               s[n / 2] / by, per_page, s[n / 10] / by, per_page, s[n - 1 - n / 10] / by, n);
    }
}

/* ---- one range ---- */

static void compare_rivals(const char *name, const struct layout *layout)
{
    static struct sample samples[RIVALS];
    struct rival rivals[RIVALS];
    const size_t bytes = layout->pages * PAGE_SIZE;
    const int turns = layout->pages > 2048 ? 9 : kMostTurns;

    memset(samples, 0, sizeof(samples));
    for (enum rival_name r = 0; r < RIVALS; r++)
        rival_open(&rivals[r], r, layout);
    for (int turn = -kWarmUp; turn < turns; turn++) {
        for (enum rival_name r = 0; r < RIVALS; r++) {
            count_t begin, took;

            if (rivals[r].missing)
                continue;
            begin = begin_count();
            rival_run(&rivals[r], r, bytes);
            took = end_count(begin);
            rival_check(&rivals[r], r, bytes);
            if (turn >= 0)
                samples[r].of[samples[r].count++] = took;
        }
    }
    for (enum rival_name r = 0; r < RIVALS; r++) {
        if (!rivals[r].missing)
            print(name, rivals[r].name, layout->pages, &samples[r]);
        rival_close(&rivals[r], r, layout);
    }
}

static void tell_missing(void)
{
    const struct layout layout = {.pages = 1};
    struct rival rival;

    for (enum rival_name r = 0; r < RIVALS; r++) {
        rival_open(&rival, r, &layout);
        if (rival.missing)
            printf("# %s is left out: %s\n", rival.name, rival.missing);
        rival_close(&rival, r, &layout);
    }
}

/* ---- nothing to do ---- */

static void count_entry(void)
{
    static struct sample exchange, features, smallest;
    struct zc_exchange x = {.size = sizeof(x), .range_size = sizeof(struct zc_range)};
    struct zc_features f = {.size = sizeof(f)};

    for (int turn = -kWarmUp; turn < kMostTurns; turn++) {
        count_t begin = begin_count();

        syscall(SYS_getppid);
        smallest.of[smallest.count] = end_count(begin);
        begin = begin_count();
        ioctl(device(), ZC_IOC_EXCHANGE, &x);
        exchange.of[exchange.count] = end_count(begin);
        begin = begin_count();
        ioctl(device(), ZC_IOC_FEATURES, &f);
        features.of[features.count] = end_count(begin);
        if (turn >= 0) {
            smallest.count++;
            exchange.count++;
            features.count++;
        }
    }
    print("entry_getppid", "kernel", 0, &smallest);
    if (device() >= 0) {
        print("entry_no_ranges", "kmod", 0, &exchange);
        print("entry_features", "kmod", 0, &features);
    }
}

/* ---- many ranges ---- */

static struct zc_range ranges[kMostBatch];
static struct zc_exchange exchanges[kMostBatch];
static struct uring ring;

static void describe(char *a, char *b, int count, bool one_each)
{
    for (int i = 0; i < count; i++) {
        ranges[i] = (struct zc_range){.a = (uintptr_t)a + 2 * i * kBatchPages * PAGE_SIZE,
                                      .b = (uintptr_t)b + 2 * i * kBatchPages * PAGE_SIZE,
                                      .length = kBatchPages * PAGE_SIZE};
        exchanges[i] = (struct zc_exchange){.size = sizeof(exchanges[i]),
                                            .range_size = sizeof(ranges[i]),
                                            .count = one_each ? 1 : count,
                                            .ranges = (uintptr_t)&ranges[i]};
    }
}

static void as_vector(int count)
{
    (void)count;
    if (ioctl(device(), ZC_IOC_EXCHANGE, &exchanges[0]))
        FAIL("vector: cause %u", exchanges[0].cause);
}

static void as_calls(int count)
{
    for (int i = 0; i < count; i++)
        if (ioctl(device(), ZC_IOC_EXCHANGE, &exchanges[i]))
            FAIL("call: cause %u", exchanges[i].cause);
}

static void as_commands(int count)
{
    struct io_uring_cqe cqe;

    for (int i = 0; i < count; i++) {
        struct zc_uring_cmd command = {.exchange = (uintptr_t)&exchanges[i]};

        uring_command(uring_sqe(&ring), device(), ZC_URING_EXCHANGE, &command);
    }
    if (uring_submit(&ring))
        FAIL("io_uring: errno %d", errno);
    for (int i = 0; i < count; i++) {
        if (uring_next(&ring, &cqe) || cqe.res)
            FAIL("command: %d", cqe.res);
    }
}

static void count_batches(void)
{
    static const struct {
        const char *name;
        void (*run)(int count);
        bool one_each;
    } ways[] = {
        {"vector", as_vector, false}, {"calls", as_calls, true}, {"uring", as_commands, true}};
    const struct layout layout = {.pages = 2 * kMostBatch * kBatchPages, .offset = 77};
    struct rival memory;

    rival_open(&memory, RIVAL_KMOD, &layout);
    if (memory.missing)
        return;
    for (int count = 1; count <= kMostBatch; count *= 2) {
        static struct sample samples[3];

        memset(samples, 0, sizeof(samples));
        for (int turn = -kWarmUp; turn < kMostTurns; turn++) {
            for (int way = 0; way < 3; way++) {
                count_t begin, took;

                if (way == 2 && !ring.sqes)
                    continue;
                describe(memory.a, memory.b, count, ways[way].one_each);
                begin = begin_count();
                ways[way].run(count);
                took = end_count(begin);
                if (turn >= 0)
                    samples[way].of[samples[way].count++] = took;
            }
        }
        for (int way = 0; way < 3; way++) {
            char name[64];

            snprintf(name, sizeof(name), "batch_%s_%dx%d", ways[way].name, count, kBatchPages);
            if (samples[way].count)
                print(name, "kmod", (size_t)count * kBatchPages, &samples[way]);
        }
    }
    rival_close(&memory, RIVAL_KMOD, &layout);
}

/* ---- all of it ---- */

static void print_context(void)
{
    char thp[80] = "?", *end;
    struct utsname name;

    uname(&name);
    file_read("/sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof(thp));
    if ((end = strchr(thp, '\n')))
        *end = 0;
    printf("%s{\"context\":{\"bench\":\"kmod\",\"kernel\":\"%s\",\"cpus\":%ld,\"thp\":\"%s\","
           "\"counter\":\"QEMU -icount, tsc\",\"ticks_per_instruction\":%.4f,"
           "\"ticks_for_nothing\":%llu}}\n",
           prefix, name.release, sysconf(_SC_NPROCESSORS_ONLN), thp, ticks_per_instruction,
           nothing);
}

int main(int argc, char **argv)
{
    size_t most = 16384;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--prefix") && i + 1 < argc) {
            prefix = argv[++i];
        } else if (!strcmp(argv[i], "--most") && i + 1 < argc) {
            most = strtoul(argv[++i], NULL, 0);
        } else {
            fprintf(stderr, "usage: %s [--prefix TEXT] [--most PAGES]\n", argv[0]);
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("TAP version 13\n");
    if (!calibrate()) {
        printf(
            "1..0 # SKIP this machine does not count instructions (QEMU with -icount shift=0)\n");
        return 4;
    }
    printf("1..1\n");
    if (uring_open(&ring, kMostBatch, 0))
        ring.sqes = NULL;
    print_context();
    tell_missing();
    count_entry();
    for (size_t pages = 2; pages <= most; pages *= 2) {
        compare_rivals("pages", &(struct layout){.pages = pages});
        compare_rivals("pages_elsewhere", &(struct layout){.pages = pages, .offset = 77});
    }
    for (size_t huge = 1; huge <= 32 && huge * HUGE_PAGES <= most; huge *= 2)
        compare_rivals("huge_pages", &(struct layout){.pages = huge * HUGE_PAGES, .huge = true});
    count_batches();
    printf("%sok 1 - instructions were counted\n", device() < 0 ? "not " : "");
    if (device() < 0)
        printf("# no /dev/zc: only the rivals were counted\n");
    return device() < 0;
}
