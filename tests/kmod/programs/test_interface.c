/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* The structures, their sizes and flags, and what is answered to wrong ones. */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "pagemap.h"
#include "procfs.h"
#include "zcdev.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPages = 4 };

/* A valid exchange of two areas, for tests that spoil one thing of it. */
static struct area a, b;
static struct zc_range range;
static struct zc_exchange valid;

static void make_valid(void)
{
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, kPages, 0, 7);
    range = (struct zc_range){.a = (uintptr_t)a.at,
                              .b = (uintptr_t)b.at,
                              .length = kPages * PAGE_SIZE,
                              .cause = 77,
                              .done = 78};
    valid = (struct zc_exchange){.size = sizeof(valid),
                                 .range_size = sizeof(range),
                                 .count = 1,
                                 .ranges = (uintptr_t)&range,
                                 .done = 79,
                                 .stopped = 80,
                                 .cause = 81};
}

static int call(void *exchange)
{
    return ioctl(zcdev_open(), ZC_IOC_EXCHANGE, exchange) ? errno : 0;
}

/* Refused before anything is looked at: nothing moved, no range was written to. */
static void refused(void *exchange, int want)
{
    int error = call(exchange);

    CHECK(error == want, "errno %d, not %d", error, want);
    area_check_both(&a, &b, "refused");
    CHECK(range.cause == 77 && range.done == 78, "range %u %llu", range.cause,
          (unsigned long long)range.done);
}

static void accepted(void *exchange)
{
    int error = call(exchange);

    CHECK(error == 0, "errno %d", error);
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check_both(&a, &b, "accepted");
    CHECK(range.cause == ZC_CAUSE_NONE && range.done == kPages * PAGE_SIZE, "range %u %llu",
          range.cause, (unsigned long long)range.done);
}

TEST(valid_exchange, "interface: a valid exchange is made, and all outputs are set")
{
    make_valid();
    accepted(&valid);
    CHECK(valid.done == kPages * PAGE_SIZE && valid.stopped == 1 && valid.cause == ZC_CAUSE_NONE,
          "done %llu, stopped %u, cause %u", (unsigned long long)valid.done, valid.stopped,
          valid.cause);
    CHECK(valid.size == sizeof(valid) && valid.range_size == sizeof(range) && valid.count == 1 &&
              valid.flags == 0 && valid.ranges == (uintptr_t)&range,
          "inputs were changed");
}

TEST(size_too_small, "interface: a size below the structure's first version is EINVAL")
{
    static const uint32_t sizes[] = {0, 1, 4, 8, 24, 32, 39};

    make_valid();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        valid.size = sizes[i];
        refused(&valid, EINVAL);
    }
}

TEST(size_larger_zero,
     "interface: a larger structure with zeros behind is accepted, and left alone")
{
    struct {
        struct zc_exchange x;
        uint64_t more[3];
    } larger;

    make_valid();
    memset(&larger, 0, sizeof(larger));
    larger.x = valid;
    larger.x.size = sizeof(larger);
    accepted(&larger);
    CHECK(!larger.more[0] && !larger.more[1] && !larger.more[2], "written to");
}

TEST(size_larger_page, "interface: a structure of a whole page is accepted, a larger one is E2BIG")
{
    static char bytes[2 * 4096] __attribute__((aligned(4096)));
    struct zc_exchange *large = (void *)bytes;

    make_valid();
    *large = valid;
    large->size = PAGE_SIZE + 1;
    refused(large, E2BIG);
    large->size = ~0u;
    refused(large, E2BIG);
    large->size = PAGE_SIZE;
    accepted(large);
}

TEST(size_larger_nonzero, "interface: a larger structure with anything but zeros behind is E2BIG")
{
    struct {
        struct zc_exchange x;
        unsigned char more[16];
    } larger;

    make_valid();
    for (size_t i = 0; i < sizeof(larger.more); i++) {
        memset(&larger, 0, sizeof(larger));
        larger.x = valid;
        larger.x.size = sizeof(larger);
        larger.more[i] = 1;
        refused(&larger, E2BIG);
    }
}

TEST(size_beyond_memory, "interface: a structure that ends in unmapped memory is EFAULT")
{
    char *at =
        mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct zc_exchange *edge;

    NEED(at != MAP_FAILED && !munmap(at + PAGE_SIZE, PAGE_SIZE));
    make_valid();
    edge = (void *)(at + PAGE_SIZE - sizeof(*edge));
    *edge = valid;
    edge->size = sizeof(*edge) + 8;
    refused(edge, EFAULT);
    edge->size = sizeof(*edge);
    accepted(edge);
}

TEST(flags_unknown, "interface: each unknown flag of the exchange is EINVAL")
{
    make_valid();
    for (int bit = 0; bit < 32; bit++) {
        valid.flags = 1u << bit;
        refused(&valid, EINVAL);
    }
}

TEST(range_flags_unknown,
     "interface: each unknown flag of a range is EINVAL, and it is not exchanged")
{
    make_valid();
    for (int bit = 0; bit < 32; bit++) {
        range.flags = 1u << bit;
        refused(&valid, EINVAL);
    }
}

TEST(range_size_too_small, "interface: a range size below the first version is EINVAL")
{
    static const uint32_t sizes[] = {0, 1, 8, 24, 32, 39};

    make_valid();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        valid.range_size = sizes[i];
        refused(&valid, EINVAL);
    }
    valid.range_size = PAGE_SIZE + 8;
    refused(&valid, E2BIG);
    valid.range_size = ~0u;
    refused(&valid, E2BIG);
}

TEST(range_size_larger, "interface: larger ranges are stepped over, and must have zeros behind")
{
    static struct {
        struct zc_range r;
        uint64_t more[2];
    } ranges[kPages];
    int error;

    make_valid();
    for (size_t i = 0; i < kPages; i++) {
        ranges[i].r = range;
        ranges[i].r.a = (uintptr_t)area_page(&a, i);
        ranges[i].r.b = (uintptr_t)area_page(&b, kPages - 1 - i);
        ranges[i].r.length = PAGE_SIZE;
    }
    valid.range_size = sizeof(ranges[0]);
    valid.count = kPages;
    valid.ranges = (uintptr_t)ranges;
    ranges[2].more[1] = 1;
    error = call(&valid);
    CHECK(error == E2BIG, "errno %d", error);
    CHECK(valid.stopped == 2 && valid.done == 2 * PAGE_SIZE && valid.cause == ZC_CAUSE_NONE,
          "stopped %u, done %llu, cause %u", valid.stopped, (unsigned long long)valid.done,
          valid.cause);
    for (size_t i = 0; i < 2; i++)
        area_exchanged(&a, i, &b, kPages - 1 - i, 1);
    area_check_both(&a, &b, "stopped at the third");
    CHECK(ranges[1].r.done == PAGE_SIZE && ranges[2].r.done == 78 && ranges[3].r.done == 78,
          "outputs");

    ranges[2].more[1] = 0;
    valid.count = 2;
    valid.ranges = (uintptr_t)&ranges[2];
    CHECK(call(&valid) == 0, "errno %d", errno);
    for (size_t i = 2; i < kPages; i++)
        area_exchanged(&a, i, &b, kPages - 1 - i, 1);
    area_check_both(&a, &b, "all");
}

TEST(count_zero, "interface: no ranges at all is a success, wherever they are not")
{
    make_valid();
    valid.count = 0;
    valid.ranges = 1;
    CHECK(call(&valid) == 0, "errno %d", errno);
    CHECK(valid.done == 0 && valid.stopped == 0 && valid.cause == ZC_CAUSE_NONE,
          "done %llu, stopped %u, cause %u", (unsigned long long)valid.done, valid.stopped,
          valid.cause);
    area_check(&a, "none");
}

TEST(pointer_exchange, "interface: a structure that is not there is EFAULT")
{
    static const uintptr_t wrong[] = {0,
                                      8,
                                      0x7ffffffff000,
                                      0x7fffffffffff,
                                      0x800000000000,
                                      0xffff800000000000,
                                      0xffffffff81000000,
                                      0xfffffffffffff000,
                                      0xffffffffffffffff};

    make_valid();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        refused((void *)wrong[i], EFAULT);
}

TEST(pointer_ranges, "interface: ranges that are not there are EFAULT")
{
    static const uint64_t wrong[] = {0,
                                     8,
                                     0x7ffffffff000,
                                     0x800000000000,
                                     0xffff800000000000,
                                     0xffffffff81000000,
                                     0xffffffffffffffd8};

    make_valid();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        valid.ranges = wrong[i];
        refused(&valid, EFAULT);
        CHECK(valid.stopped == 0 && valid.done == 0 && valid.cause == ZC_CAUSE_NONE,
              "stopped %u, done %llu, cause %u", valid.stopped, (unsigned long long)valid.done,
              valid.cause);
    }
}

TEST(pointer_ranges_end,
     "interface: where the ranges end in unmapped memory, those before are done")
{
    char *at =
        mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct zc_range *ranges;
    int error;

    NEED(at != MAP_FAILED && !munmap(at + PAGE_SIZE, PAGE_SIZE));
    make_valid();
    ranges = (void *)(at + PAGE_SIZE - sizeof(range));
    ranges[0] = range;
    valid.ranges = (uintptr_t)ranges;
    valid.count = ~0u;
    error = call(&valid);
    CHECK(error == EFAULT, "errno %d", error);
    CHECK(valid.stopped == 1 && valid.done == kPages * PAGE_SIZE, "stopped %u, done %llu",
          valid.stopped, (unsigned long long)valid.done);
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check_both(&a, &b, "first range");
}

/* Where outputs cannot be stored the exchange may have been made; no page may be lost by it. */
static void made_or_not(int error)
{
    CHECK(error == EFAULT, "errno %d", error);
    if (area_wrong(&a, 0, kPages) != kPages)
        area_exchanged(&a, 0, &b, 0, kPages);
    area_check_both(&a, &b, "made or not");
}

TEST(output_read_only, "interface: outputs in read-only memory are EFAULT, and no page is lost")
{
    char *at =
        mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    NEED(at != MAP_FAILED);
    make_valid();
    memcpy(at, &valid, sizeof(valid));
    NEED(!mprotect(at, PAGE_SIZE, PROT_READ));
    made_or_not(call(at));

    memcpy(at + PAGE_SIZE, &range, sizeof(range));
    NEED(!mprotect(at + PAGE_SIZE, PAGE_SIZE, PROT_READ));
    valid.ranges = (uintptr_t)(at + PAGE_SIZE);
    made_or_not(call(&valid));
}

TEST(misaligned_structures, "interface: structures at odd addresses work")
{
    static char bytes[256];
    struct zc_exchange x;

    make_valid();
    valid.ranges = (uintptr_t)(bytes + 101);
    memcpy(bytes + 1, &valid, sizeof(valid));
    memcpy(bytes + 101, &range, sizeof(range));
    CHECK(call(bytes + 1) == 0, "errno %d", errno);
    memcpy(&x, bytes + 1, sizeof(x));
    CHECK(x.done == kPages * PAGE_SIZE && x.stopped == 1, "done %llu", (unsigned long long)x.done);
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check(&a, "odd addresses");
}

/*
 * The structures lie in the first page of a itself: what is stored lands in
 * whichever page is there by then. All other bytes are the oracle's.
 */
TEST(structures_inside, "interface: structures within the memory exchanged: no other byte changes")
{
    const size_t used = sizeof(range) + sizeof(valid);
    struct zc_exchange *x;
    char want[PAGE_SIZE];
    int error;

    make_valid();
    memcpy(want, b.at, PAGE_SIZE);
    memcpy(a.at, &range, sizeof(range));
    x = (void *)(a.at + sizeof(range));
    *x = valid;
    x->ranges = (uintptr_t)a.at;
    error = call(x);
    CHECK(error == 0, "errno %d", error);
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check_part(&a, 1, kPages - 1, "a, behind the first page");
    area_check_part(&b, 1, kPages - 1, "b, behind the first page");
    CHECK(!memcmp(a.at + used, want + used, PAGE_SIZE - used), "other bytes of a's page changed");
    CHECK(((struct zc_range *)b.at)->a == (uintptr_t)a.at &&
              ((struct zc_exchange *)(b.at + sizeof(range)))->count == 1,
          "the inputs are not where their page went");
    CHECK(((struct zc_range *)a.at)->done == kPages * PAGE_SIZE && x->stopped == 1,
          "the outputs are not where they were asked for");
}

TEST(features, "interface: the features are those of this module and machine")
{
    struct {
        struct zc_features f;
        uint64_t more;
    } f = {.f = {.size = sizeof(struct zc_features)}, .more = 5};
    int fd = zcdev_open();

    CHECK(!ioctl(fd, ZC_IOC_FEATURES, &f), "errno %d", errno);
    CHECK(f.f.causes == ZC_CAUSE_COUNT && f.f.page_size == PAGE_SIZE && f.f.huge_size == HUGE_SIZE,
          "causes %u, page %u, huge %u", f.f.causes, f.f.page_size, f.f.huge_size);
    CHECK(f.f.features == (ZC_FEATURE_EXCHANGE | ZC_FEATURE_HUGE | ZC_FEATURE_URING),
          "features %#llx", (unsigned long long)f.f.features);
    CHECK(f.more == 5 && f.f.size == sizeof(f.f), "more was written than asked for");

    f.f.size = sizeof(f);
    CHECK(ioctl(fd, ZC_IOC_FEATURES, &f) && errno == E2BIG, "unknown field set: errno %d", errno);
    f.more = 0;
    CHECK(!ioctl(fd, ZC_IOC_FEATURES, &f), "larger, zeros: errno %d", errno);
    CHECK(f.more == 0, "an unknown field was written to");
    f.f.size = sizeof(f.f) - 1;
    CHECK(ioctl(fd, ZC_IOC_FEATURES, &f) && errno == EINVAL, "too small: errno %d", errno);
    f.f.size = 0;
    CHECK(ioctl(fd, ZC_IOC_FEATURES, &f) && errno == EINVAL, "size 0: errno %d", errno);
    CHECK(ioctl(fd, ZC_IOC_FEATURES, NULL) && errno == EFAULT, "NULL: errno %d", errno);
}

static long counted(const char *what)
{
    char path[80];

    snprintf(path, sizeof(path), "/sys/class/misc/zc/stats/%s", what);
    return file_number(path, NULL);
}

/* No other process uses the device meanwhile. */
TEST(counters, "interface: sysfs counts pages, and ranges by what they ended with")
{
    long pages = counted("pages"), exchanged = counted("exchanged"), locked;
    struct zc_range ranges[3];

    make_valid();
    CHECK(pages >= 0 && exchanged >= 0, "no counters");
    for (int i = 1; i < ZC_CAUSE_COUNT; i++) {
        char name[32] = "";

        for (const char *c = zcdev_cause(i); *c; c++)
            name[c - zcdev_cause(i)] = tolower(*c);
        CHECK(counted(name) >= 0, "nothing is called %s", name);
    }
    for (int i = 0; i < 3; i++)
        ranges[i] = (struct zc_range){.a = (uintptr_t)area_page(&a, i),
                                      .b = (uintptr_t)area_page(&b, i),
                                      .length = PAGE_SIZE};
    locked = counted("locked");
    NEED(!mlock(area_page(&b, 2), PAGE_SIZE));
    CHECK(zcdev_vector(ranges, 3).cause == ZC_CAUSE_LOCKED, "not stopped");
    area_exchanged(&a, 0, &b, 0, 2);
    CHECK(counted("pages") == pages + 2 && counted("exchanged") == exchanged + 2 &&
              counted("locked") == locked + 1,
          "%ld, %ld, %ld more", counted("pages") - pages, counted("exchanged") - exchanged,
          counted("locked") - locked);
    area_check_both(&a, &b, "counted");
}

TEST(unknown_ioctl, "interface: every other command is ENOTTY")
{
    int fd = zcdev_open();

    make_valid();
    for (unsigned int nr = 2; nr < 256; nr++)
        CHECK(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, ZC_IOC_MAGIC, nr, sizeof(valid)), &valid) &&
                  errno == ENOTTY,
              "nr %u: errno %d", nr, errno);
    for (unsigned int type = 0; type < 256; type++)
        if (type != ZC_IOC_MAGIC)
            CHECK(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, type, 1, sizeof(valid)), &valid) &&
                      errno != 0,
                  "type %u", type);
    CHECK(ioctl(fd, _IOC(_IOC_WRITE, ZC_IOC_MAGIC, 1, sizeof(valid)), &valid) && errno == ENOTTY,
          "wrong direction: errno %d", errno);
    area_check_both(&a, &b, "unknown commands");
}

TEST(other_calls, "interface: read, write, mmap and lseek on the device fail")
{
    char byte = 0;
    int fd = zcdev_open();

    CHECK(read(fd, &byte, 1) < 0, "read");
    CHECK(write(fd, &byte, 1) < 0, "write");
    CHECK(lseek(fd, 1, SEEK_SET) < 0, "lseek");
    CHECK(mmap(NULL, PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "mmap");
}

/* The 32-bit system call, from here: addresses below 4 GiB, the same structures. */
static long ioctl_32(int fd, unsigned int command, void *arg)
{
    long result;

    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "0"(54), "b"(fd), "c"(command), "d"(arg)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}

static void no_compat(int signal)
{
    (void)signal;
    ktap_skip("this kernel has no 32-bit system calls");
}

TEST(compat, "interface: a 32-bit process is served alike, or told ENOTTY")
{
    struct zc_exchange *x = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    struct zc_range *r = (void *)(x + 1);
    long result;

    NEED(x != MAP_FAILED);
    make_valid();
    *r = range;
    *x = valid;
    x->ranges = (uintptr_t)r;
    signal(SIGSEGV, no_compat);
    result = ioctl_32(zcdev_open(), ZC_IOC_EXCHANGE, x);
    signal(SIGSEGV, SIG_DFL);
    if (result == -ENOSYS)
        ktap_skip("this kernel has no 32-bit system calls");
    if (result == 0) {
        CHECK(x->done == kPages * PAGE_SIZE && x->stopped == 1, "done %llu",
              (unsigned long long)x->done);
        area_exchanged(&a, 0, &b, 0, kPages);
    } else {
        CHECK(result == -ENOTTY, "%ld", result);
    }
    area_check_both(&a, &b, "32-bit");
}

TEST(open_modes, "interface: a descriptor opened for reading only, or twice, serves too")
{
    int fd = open("/dev/zc", O_RDONLY | O_CLOEXEC);

    make_valid();
    CHECK(fd >= 0, "errno %d", errno);
    CHECK(!ioctl(fd, ZC_IOC_EXCHANGE, &valid), "errno %d", errno);
    area_exchanged(&a, 0, &b, 0, kPages);
    area_check(&a, "by a second descriptor");
    close(fd);
    exchange_all(whole(&a), whole(&b), kPages);
}
