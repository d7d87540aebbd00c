/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/*
 * native - what an exchange through /dev/zc would take on this processor, without loading it
 *
 *   native [--turns N]
 *
 * The sum of its parts, each measured here: entering the kernel by an ioctl, the mmap lock
 * and two mappings looked up (by msync() of two mappings, which does only that), the TLB
 * flushes (by mprotect() of pages that are there, and of as many that are not), and the loop
 * over entries and descriptors (replica.c, in memory of our own). Such a sum lacks the
 * instructions in between; with cold caches it hangs upon how the frames lie, too. What that
 * makes is measured for UFFDIO_MOVE, which this kernel has and any user may call (on memory
 * registered for write protection, whose missing pages nothing traps). What it makes for the
 * exchange is not known.
 *
 * The replica of UFFDIO_MOVE is of Linux 6.18. On any other series its sum, and what is made
 * of it, are left out.
 *
 * Prints JSON lines: impl uffd_move and memcpy are measured, uffd_move_replica and
 * kmod_replica are loops without the rest; parts; and ranges over how the frames lie:
 * metric predicted (the sum), measured_by_predicted (how far off it is for UFFDIO_MOVE), and
 * for kmod scaled: its sum times that, an assumption that nothing has tested.
 */
#include "pagemap.h"
#include "replica.h"
#include "uffd.h"
#include "uffd_move.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

/* Of whose UFFDIO_MOVE there is a replica: all pages of a table under one lock, one flush. */
static const char kReplicated[] = "6.18";

enum { kMostTurns = 1000, kSinglyFlushed = 33, kTable = 512 };
enum temperature { HOT, COLD };

static const size_t kSizes[] = {16, 64, 256, 1024};
#define SIZES (sizeof(kSizes) / sizeof(kSizes[0]))

static const char *const kTemperatures[] = {"hot", "cold"};
static int turns_of[] = {400, 25};

struct sample {
    double ns[kMostTurns];
    int count;
};

/* ---- time ---- */

static double nothing;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double at(const struct sample *sample, int percent)
{
    return sample->ns[(sample->count - 1) * percent / 100];
}

/*
 * Three times the last level's size, so that none of what was there is left; of what one
 * processor has of it: machines tell the sum of all.
 */
static void evict(void)
{
    static char *memory;
    static size_t bytes;
    long last = sysconf(_SC_LEVEL3_CACHE_SIZE);

    if (!memory) {
        bytes = 3 * (size_t)(last > 0 && last < 64 << 20 ? last : 64 << 20);
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            abort();
    }
    for (size_t i = 0; i < bytes; i += 64)
        memory[i]++;
}

/* Runs it again and again; @after puts things back, and is not timed. */
static struct sample measure(enum temperature temperature, void (*run)(void *),
                             void (*after)(void *), void *arg)
{
    static struct sample sample;
    const int turns = turns_of[temperature];

    sample.count = 0;
    for (int i = -2; i < turns; i++) {
        double begin, took;

        if (temperature == COLD)
            evict();
        begin = now();
        run(arg);
        took = now() - begin - nothing;
        if (after)
            after(arg);
        if (i >= 0)
            sample.ns[sample.count++] = took > 0 ? took : 0;
    }
    qsort(sample.ns, sample.count, sizeof(*sample.ns), compare);
    return sample;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* ---- output ---- */

static void print(enum temperature temperature, const char *impl, const char *frames, size_t pages,
                  const struct sample *sample)
{
    printf("{\"bench\":\"kmod\",\"case\":\"native_%s\",\"impl\":\"%s\",%s%s%s\"bytes\":%zu,"
           "\"metric\":\"time_per_call\",\"unit\":\"ns\",\"median\":%.0f,\"p10\":%.0f,"
           "\"p90\":%.0f,\"n\":%d}\n",
           kTemperatures[temperature], impl, frames ? "\"frames\":\"" : "", frames ? frames : "",
           frames ? "\"," : "", pages * PAGE_SIZE, at(sample, 50), at(sample, 10), at(sample, 90),
           sample->count);
}

static void print_part(enum temperature temperature, const char *name, double ns)
{
    printf("{\"bench\":\"kmod\",\"case\":\"native_%s\",\"impl\":\"part\",\"part\":\"%s\","
           "\"metric\":\"time_of_part\",\"unit\":\"ns\",\"median\":%.0f}\n",
           kTemperatures[temperature], name, ns);
}

struct range {
    double low, high;
};

static void print_range(enum temperature temperature, const char *impl, const char *metric,
                        const char *unit, size_t pages, const struct range *range)
{
    printf("{\"bench\":\"kmod\",\"case\":\"native_%s\",\"impl\":\"%s\",\"bytes\":%zu,"
           "\"metric\":\"%s\",\"unit\":\"%s\",\"low\":%.2f,\"high\":%.2f}\n",
           kTemperatures[temperature], impl, pages * PAGE_SIZE, metric, unit, range->low,
           range->high);
}

/* ---- parts: the way into the kernel ---- */

static int null_device;
static char *two_mappings;

static void call_nothing(void *arg)
{
    (void)arg;
    syscall(SYS_getppid);
}

static void call_ioctl(void *arg)
{
    (void)arg;
    ioctl(null_device, 0, arg);
}

/* Of anonymous memory it only looks at the mappings, under the mmap lock. */
static void look_up_two(void *arg)
{
    (void)arg;
    if (msync(two_mappings, 2 * PAGE_SIZE, MS_ASYNC))
        abort();
}

static double entry_ns(enum temperature temperature)
{
    struct sample sample = measure(temperature, call_nothing, NULL, NULL);
    double bare = at(&sample, 50), by_ioctl, looked_up;

    sample = measure(temperature, call_ioctl, NULL, NULL);
    by_ioctl = at(&sample, 50);
    sample = measure(temperature, look_up_two, NULL, NULL);
    looked_up = at(&sample, 50);
    print_part(temperature, "system call that does nothing", bare);
    print_part(temperature, "ioctl that does nothing", by_ioctl);
    print_part(temperature, "system call that looks up two mappings", looked_up);
    return by_ioctl + (looked_up > bare ? looked_up - bare : 0);
}

/* ---- parts: the TLB ---- */

struct stretch {
    char *at;
    size_t pages;
    bool written;
};

/*
 * Takes the right to write away. Where pages were written, all processors have to forget
 * their entries; where they were only read, as many entries are gone through, and are
 * what they were before.
 */
static void protect(void *arg)
{
    const struct stretch *s = arg;

    if (mprotect(s->at, s->pages * PAGE_SIZE, PROT_READ))
        abort();
}

static void unprotect(void *arg)
{
    const struct stretch *s = arg;
    volatile char *page = s->at;

    if (mprotect(s->at, s->pages * PAGE_SIZE, PROT_READ | PROT_WRITE))
        abort();
    for (size_t i = 0; i < s->pages; i++, page += PAGE_SIZE) {
        if (s->written)
            *page = 1;
        else
            (void)*page;
    }
}

static double protect_ns(size_t pages, bool written)
{
    const size_t room = 3 * HUGE_SIZE;
    char *map = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct stretch s = {.pages = pages, .written = written};
    struct sample sample;

    if (map == MAP_FAILED)
        abort();
    /* From a boundary of 2 MiB on, so that one table serves. */
    s.at = (char *)(((uintptr_t)map + HUGE_SIZE) / HUGE_SIZE * HUGE_SIZE);
    madvise(s.at, HUGE_SIZE, MADV_NOHUGEPAGE);
    unprotect(&s);
    sample = measure(HOT, protect, unprotect, &s);
    munmap(map, room);
    return at(&sample, 50);
}

static double flush_of(size_t pages, const char *what, const char *with)
{
    const double took = protect_ns(pages, true) - protect_ns(pages, false);
    char name[80];

    snprintf(name, sizeof(name), "flush of %s, %s", what, with);
    print_part(HOT, name, took > 0 ? took : 0);
    return took > 0 ? took : 0;
}

/* Of 16 pages one by one, and of everything. */
struct flushes {
    double sixteen, all;
};

static struct flushes measure_flushes(const char *with)
{
    return (struct flushes){.sixteen = flush_of(16, "16 pages", with),
                            .all = flush_of(2 * kSinglyFlushed, "everything", with)};
}

static bool peer_ends;

static void *compute(void *arg)
{
    volatile uint64_t *sum = arg;

    while (!__atomic_load_n(&peer_ends, __ATOMIC_RELAXED))
        ++*sum;
    return NULL;
}

static void keep_on(pthread_t thread, int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(thread, sizeof(set), &set);
}

/* While a thread of this process runs on another processor, which has to be interrupted. */
static void measure_flushes_with_peer(void)
{
    static uint64_t sum;
    cpu_set_t was;
    pthread_t peer;
    int processors[2], count = 0;

    sched_getaffinity(0, sizeof(was), &was);
    for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET(i, &was))
            processors[count++] = i;
    if (count < 2 || pthread_create(&peer, NULL, compute, &sum))
        return;
    keep_on(pthread_self(), processors[0]);
    keep_on(peer, processors[1]);
    measure_flushes("another thread computing");
    __atomic_store_n(&peer_ends, true, __ATOMIC_RELAXED);
    pthread_join(peer, NULL);
    sched_setaffinity(0, sizeof(was), &was);
}

/* A step's flush of @pages pages on @sides sides (zc_tlb_flush(); the kernel's own for one). */
static double flush_ns(const struct flushes *f, size_t pages, int sides)
{
    return sides * pages > kSinglyFlushed ? f->all : f->sixteen * sides * pages / 16;
}

static double flushes_ns(const struct flushes *f, size_t pages, int sides)
{
    const size_t whole = pages / kTable, rest = pages % kTable;

    return whole * flush_ns(f, kTable, sides) + (rest ? flush_ns(f, rest, sides) : 0);
}

/* ---- UFFDIO_MOVE, and the copy ---- */

struct moved {
    int fd;
    char *a, *b;
    size_t pages;
    bool turned, failed;
};

static char *window(size_t pages)
{
    char *map = mmap(NULL, pages * PAGE_SIZE + 2 * HUGE_SIZE, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *from;

    if (map == MAP_FAILED)
        abort();
    from = (char *)(((uintptr_t)map + HUGE_SIZE) / HUGE_SIZE * HUGE_SIZE);
    if (mprotect(from, pages * PAGE_SIZE, PROT_READ | PROT_WRITE))
        abort();
    madvise(from, pages * PAGE_SIZE, MADV_NOHUGEPAGE);
    return from;
}

static void move(void *arg)
{
    struct moved *m = arg;
    struct move call = {.to = (uintptr_t)(m->turned ? m->a : m->b),
                        .from = (uintptr_t)(m->turned ? m->b : m->a),
                        .len = m->pages * PAGE_SIZE};

    m->turned = !m->turned;
    while (!m->failed && ioctl(m->fd, MOVE_IOCTL, &call)) {
        if (errno != EAGAIN)
            m->failed = true;
        if (call.moved > 0) {
            call.to += call.moved;
            call.from += call.moved;
            call.len -= call.moved;
        }
    }
}

static int open_mover(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = MOVE_FEATURE};
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void copy(void *arg)
{
    struct moved *m = arg;

    memcpy(m->b, m->a, m->pages * PAGE_SIZE);
}

/* ---- the replica ---- */

struct repeated {
    struct replica *replica;
    size_t pages;
};

static void run_exchange(void *arg)
{
    struct repeated *r = arg;

    replica_exchange(r->replica, r->pages);
}

static void run_move(void *arg)
{
    struct repeated *r = arg;

    replica_move(r->replica, r->pages);
}

static const char *const kFrames[] = {"in_order", "scattered", "as_here"};

static double replica_ns(enum temperature temperature, const char *impl, enum frames frames,
                         size_t pages, uint64_t *const here[2])
{
    const bool exchange = !strcmp(impl, "kmod_replica");
    struct repeated r = {.replica = replica_open(pages, frames, exchange, here[0], here[1]),
                         .pages = pages};
    struct sample sample = measure(temperature, exchange ? run_exchange : run_move, NULL, &r);

    if (!replica_right(r.replica)) {
        fprintf(stderr, "native: %s has lost pages\n", impl);
        exit(1);
    }
    replica_close(r.replica);
    print(temperature, impl, kFrames[frames], pages, &sample);
    return at(&sample, 50);
}

/* ---- all of it ---- */

/* The frames of a window's pages; false where one may not know. */
static bool frames_of(const char *window, size_t pages, uint64_t *frames)
{
    for (size_t i = 0; i < pages; i++) {
        frames[i] = pfn_of(window + i * PAGE_SIZE);
        if (!frames[i] || frames[i] >= replica_frames())
            return false;
    }
    return true;
}

static void widen(struct range *range, double to)
{
    if (!range->high || to < range->low)
        range->low = to;
    if (to > range->high)
        range->high = to;
}

/* Is this kernel, of that release, of the series the replica was made after? */
static bool is_replicated(const char *release)
{
    const size_t length = strlen(kReplicated);

    return !strncmp(release, kReplicated, length) &&
           !(release[length] >= '0' && release[length] <= '9');
}

static bool estimate(enum temperature temperature, double entry, const struct flushes *alone,
                     bool replicated, int uffd, size_t pages)
{
    struct moved m = {.fd = uffd, .a = window(pages), .b = window(pages), .pages = pages},
                 c = {.a = window(pages), .b = window(pages), .pages = pages};
    struct range sum = {0}, error = {0}, least = {0}, scaled = {0};
    uint64_t *here[2] = {malloc(pages * sizeof(uint64_t)), malloc(pages * sizeof(uint64_t))};
    struct sample sample;
    double measured;
    int kinds;

    memset(m.a, 1, pages * PAGE_SIZE);
    memset(c.a, 1, pages * PAGE_SIZE);
    memset(c.b, 1, pages * PAGE_SIZE);
    kinds = frames_of(m.a, pages, here[0]) && frames_of(c.a, pages, here[1]) ? FRAMES_KINDS
                                                                             : FRAMES_AS_HERE;
    if (uffd_register(uffd, m.a, pages * PAGE_SIZE, UFFDIO_REGISTER_MODE_WP) ||
        uffd_register(uffd, m.b, pages * PAGE_SIZE, UFFDIO_REGISTER_MODE_WP)) {
        fprintf(stderr, "native: no registration for write protection: %s\n", strerror(errno));
        return false;
    }
    sample = measure(temperature, move, NULL, &m);
    if (m.failed) {
        fprintf(stderr, "native: UFFDIO_MOVE: %s\n", strerror(errno));
        return false;
    }
    print(temperature, "uffd_move", NULL, pages, &sample);
    measured = at(&sample, 50);
    for (int f = 0; f < kinds; f++) {
        double both = entry + flushes_ns(alone, pages, 2) +
                      replica_ns(temperature, "kmod_replica", f, pages, here),
               one;

        widen(&least, both);
        if (!replicated)
            continue;
        one = entry + flushes_ns(alone, pages, 1) +
              replica_ns(temperature, "uffd_move_replica", f, pages, here);
        widen(&sum, one);
        widen(&error, measured / one);
        widen(&scaled, both * measured / one);
    }
    print_range(temperature, "kmod", "predicted", "ns", pages, &least);
    if (replicated) {
        print_range(temperature, "uffd_move", "predicted", "ns", pages, &sum);
        print_range(temperature, "uffd_move", "measured_by_predicted", "ratio", pages, &error);
        print_range(temperature, "kmod", "scaled", "ns", pages, &scaled);
    }
    sample = measure(temperature, copy, NULL, &c);
    print(temperature, "memcpy", NULL, pages, &sample);
    munmap(m.a, pages * PAGE_SIZE);
    munmap(m.b, pages * PAGE_SIZE);
    munmap(c.a, pages * PAGE_SIZE);
    munmap(c.b, pages * PAGE_SIZE);
    free(here[0]);
    free(here[1]);
    return true;
}

int main(int argc, char **argv)
{
    struct flushes alone;
    struct utsname name;
    struct sample sample;
    bool replicated;
    int uffd;

    if (argc == 3 && !strcmp(argv[1], "--turns")) {
        turns_of[HOT] = atoi(argv[2]);
        turns_of[COLD] = turns_of[HOT] > 16 ? turns_of[HOT] / 16 : 1;
    } else if (argc != 1) {
        fprintf(stderr, "usage: native [--turns N]\n");
        return 2;
    }
    if (turns_of[HOT] < 1 || turns_of[HOT] > kMostTurns) {
        fprintf(stderr, "native: 1 to %d turns\n", kMostTurns);
        return 2;
    }
    uffd = open_mover();
    if (uffd < 0) {
        fprintf(stderr,
                "native: no UFFDIO_MOVE to check it by (Linux 6.8; userfaultfd(2) may be "
                "forbidden in containers): %s\n",
                strerror(errno));
        return 77;
    }
    null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    two_mappings = window(2);
    if (null_device < 0 || mprotect(two_mappings, PAGE_SIZE, PROT_READ))
        return 1;
    uname(&name);
    replicated = is_replicated(name.release);
    if (!replicated)
        fprintf(stderr,
                "native: this is Linux %s; the loop of UFFDIO_MOVE that its time is compared"
                " with is that of %s: its sum is left out\n",
                name.release, kReplicated);
    sample = measure(HOT, do_nothing, NULL, NULL);
    nothing = at(&sample, 10);
    printf("{\"context\":{\"bench\":\"kmod-native\",\"kernel\":\"%s\",\"cpus\":%ld,"
           "\"last_level_cache\":%ld,\"clock_ns\":%.0f,\"replica_of\":\"%s\","
           "\"replica_fits\":%s}}\n",
           name.release, sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_LEVEL3_CACHE_SIZE), nothing,
           kReplicated, replicated ? "true" : "false");
    alone = measure_flushes("one thread");
    measure_flushes_with_peer();
    for (enum temperature t = HOT; t <= COLD; t++) {
        double entry = entry_ns(t);

        for (size_t i = 0; i < SIZES; i++)
            if (!estimate(t, entry, &alone, replicated, uffd, kSizes[i]))
                return 77;
    }
    return 0;
}
