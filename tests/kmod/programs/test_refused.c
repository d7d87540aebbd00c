/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* What is refused, with its own cause and errno: from the start, and behind a prefix. */
#include "exchange.h"
#include "fixture.h"
#include "ktap.h"
#include "procfs.h"
#include "uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Four ordinary pages, then the others. */
enum { kBefore = 4 };

static void expect(const struct zcdev_outcome *outcome, enum zc_cause cause, size_t done,
                   const char *how)
{
    CHECK(outcome->cause == cause && outcome->done == done * PAGE_SIZE,
          "%s: %s after %zu pages, not %s after %zu", how, zcdev_cause(outcome->cause),
          (size_t)(outcome->done / PAGE_SIZE), zcdev_cause(cause), done);
}

static void refused(enum fixture kind)
{
    const size_t unit = fixture_unit(kind), pages = unit == 1 ? 8 : unit;
    const enum zc_cause cause = fixture_cause(kind);
    struct area a, b, c;
    struct zcdev_outcome outcome;

    zcdev_open();
    /* What is huge needs its own alignment behind the first pages. What forks comes first. */
    area_reserve(&a, "a", kBefore + pages, unit == 1 ? 3 : HUGE_PAGES - kBefore);
    fixture_make(kind, &a, kBefore, pages);
    fixture_make(FIXTURE_SMALL, &a, 0, kBefore);
    fixture_area(FIXTURE_SMALL, &b, "b", kBefore + pages, 9);
    fixture_area(FIXTURE_UNTOUCHED, &c, "c", pages, 9);

    outcome = exchange(whole(&a), whole(&b), kBefore + pages);
    expect(&outcome, cause, kBefore, "behind ordinary pages, as a");
    outcome = exchange(whole(&b), whole(&a), kBefore + pages);
    expect(&outcome, cause, kBefore, "behind ordinary pages, as b");
    outcome = exchange(part(&a, kBefore), part(&b, 0), 1);
    expect(&outcome, cause, 0, "its first page, as a");
    outcome = exchange(part(&b, 0), part(&a, kBefore + pages - 1), 1);
    expect(&outcome, cause, 0, "its last page, as b");
    outcome = exchange(part(&a, kBefore), whole(&c), pages);
    expect(&outcome, cause, 0, "with untouched memory");
    outcome = exchange(part(&a, kBefore), part(&a, kBefore + pages / 2), pages / 2);
    if (cause != ZC_CAUSE_ACCESS || (kind != FIXTURE_EXECUTABLE && kind != FIXTURE_PKEY))
        if (kind != FIXTURE_POLICY)
            expect(&outcome, cause, 0, "with its like");

    fixture_reveal(kind, &a, kBefore, pages);
    area_check_both(&a, &b, "refused");
    CHECK(pages_present(c.at, pages) <= 1, "untouched memory was touched");
}

#define REFUSED(kind, claim)                                                                       \
    TEST(refused_##kind, "refused: " claim)                                                        \
    {                                                                                              \
        refused(kind);                                                                             \
    }

REFUSED(FIXTURE_SHARED, "shared anonymous memory is SHARED")
REFUSED(FIXTURE_SHARED_MEMFD, "a shared mapping of a memfd is SHARED")
REFUSED(FIXTURE_MEMFD, "a private mapping of a memfd is FILE")
REFUSED(FIXTURE_FILE, "a private file mapping is FILE")
REFUSED(FIXTURE_FILE_WRITTEN, "a private file mapping with pages of its own is FILE")
REFUSED(FIXTURE_HUGETLB, "shared hugetlb memory is HUGETLB")
REFUSED(FIXTURE_HUGETLB_PRIVATE, "private hugetlb memory is HUGETLB")
REFUSED(FIXTURE_MLOCKED, "mlocked memory is LOCKED")
REFUSED(FIXTURE_MLOCKED_ONFAULT, "MLOCK_ONFAULT memory is LOCKED")
REFUSED(FIXTURE_GROWSDOWN, "a mapping that grows down is SPECIAL")
REFUSED(FIXTURE_READ_ONLY, "read-only memory is ACCESS")
REFUSED(FIXTURE_NO_ACCESS, "inaccessible memory is ACCESS")
REFUSED(FIXTURE_EXECUTABLE, "executable memory with other memory is ACCESS")
REFUSED(FIXTURE_PKEY, "memory with a protection key with other memory is ACCESS")
REFUSED(FIXTURE_DROPPABLE, "MAP_DROPPABLE memory is SPECIAL")
REFUSED(FIXTURE_SECRET, "memfd_secret memory is SHARED")
REFUSED(FIXTURE_COW, "pages shared with a child are COW")
REFUSED(FIXTURE_COW_ENDED, "pages once shared with a child and not written since are COW")
REFUSED(FIXTURE_MERGEABLE, "MADV_MERGEABLE memory is COW")
REFUSED(FIXTURE_KSM, "pages merged by KSM are COW")
REFUSED(FIXTURE_USERFAULTFD, "memory under userfaultfd is USERFAULTFD")
REFUSED(FIXTURE_USERFAULTFD_WP, "memory write-protected by userfaultfd is USERFAULTFD")
REFUSED(FIXTURE_POLICY, "memory with a NUMA policy with other memory is POLICY")
REFUSED(FIXTURE_PINNED, "pages pinned by io_uring are PINNED")

/* Alike on both sides, what differs from other memory need not be refused. */
TEST(alike_executable, "alike: executable memory on both sides is exchanged")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_EXECUTABLE, &a, &b, 8, 0, 9);
    exchange_all(whole(&a), whole(&b), 8);
}

TEST(alike_pkey, "alike: memory with the same protection key is exchanged, and keeps the key")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_PKEY, &a, &b, 8, 0, 9);
    exchange_all(whole(&a), whole(&b), 8);
    CHECK(smaps_kib("ProtectionKey", a.at, 8 * PAGE_SIZE) ==
              smaps_kib("ProtectionKey", b.at, 8 * PAGE_SIZE),
          "other keys");
}

TEST(alike_policy, "alike: two ranges of one mbind()ed mapping are exchanged")
{
    struct area area;

    zcdev_open();
    fixture_area(FIXTURE_POLICY, &area, "a", 16, 0);
    exchange_all(part(&area, 0), part(&area, 8), 8);
}

TEST(alike_policy_apart,
     "alike: ranges mbind()ed alike one by one are exchanged, or refused as POLICY")
{
    struct zcdev_outcome outcome;
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_POLICY, &a, &b, 8, 0, 9);
    outcome = exchange(whole(&a), whole(&b), 8);
    CHECK(outcome.cause == ZC_CAUSE_NONE || (outcome.cause == ZC_CAUSE_POLICY && !outcome.done),
          "%s after %zu", zcdev_cause(outcome.cause), (size_t)outcome.done);
    area_check_both(&a, &b, "policy");
}

TEST(unlocked,
     "let go: munlock, io_uring's and userfaultfd's unregistering make memory ordinary again")
{
    struct area a, b;
    int fd = uffd_open(0);

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    NEED(!mlock(a.at, 8 * PAGE_SIZE));
    exchange_stops(whole(&a), whole(&b), 8, ZC_CAUSE_LOCKED, 0);
    NEED(!munlock(a.at, 8 * PAGE_SIZE));
    exchange_all(whole(&a), whole(&b), 8);

    pin_pages(area_page(&b, 3), 2);
    exchange_stops(whole(&a), whole(&b), 8, ZC_CAUSE_PINNED, 3);
    unpin_pages();
    exchange_all(part(&a, 3), part(&b, 3), 5);

    if (fd < 0)
        ktap_skip("userfaultfd: %s", strerror(errno));
    NEED(!uffd_register(fd, a.at, 8 * PAGE_SIZE, UFFDIO_REGISTER_MODE_MISSING));
    exchange_stops(whole(&a), whole(&b), 8, ZC_CAUSE_USERFAULTFD, 0);
    NEED(!uffd_unregister(fd, a.at, 8 * PAGE_SIZE));
    exchange_all(whole(&a), whole(&b), 8);

    NEED(!uffd_register(fd, a.at, 8 * PAGE_SIZE, UFFDIO_REGISTER_MODE_WP));
    NEED(!uffd_protect(fd, a.at, 8 * PAGE_SIZE, true));
    exchange_stops(whole(&b), whole(&a), 8, ZC_CAUSE_USERFAULTFD, 0);
    close(fd);
    exchange_all(whole(&a), whole(&b), 8);
    area_stamp(&a, 0, 8);
    area_check(&a, "written");
}

TEST(refused_mlockall, "refused: after mlockall() everything is LOCKED, until munlockall()")
{
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        ktap_skip("mlockall: %s", strerror(errno));
    exchange_stops(whole(&a), whole(&b), 8, ZC_CAUSE_LOCKED, 0);
    NEED(!munlockall());
    exchange_all(whole(&a), whole(&b), 8);
}

/* The stack this function runs on. */
TEST(refused_stack, "refused: the stack is SPECIAL")
{
    char room[8 * PAGE_SIZE];
    uintptr_t at = ((uintptr_t)room + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
    struct area stack, b;

    zcdev_open();
    area_of(&stack, "stack", (void *)at, 4);
    area_stamp(&stack, 0, 4);
    fixture_area(FIXTURE_SMALL, &b, "b", 4, 0);
    exchange_stops(whole(&stack), whole(&b), 4, ZC_CAUSE_SPECIAL, 0);
    exchange_stops(whole(&b), whole(&stack), 4, ZC_CAUSE_SPECIAL, 0);
}

static void *find_mapping(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long at;
    char line[512];
    void *found = NULL;

    NEED(maps);
    while (!found && fgets(line, sizeof(line), maps))
        if (strstr(line, name) && sscanf(line, "%lx-", &at) == 1)
            found = (void *)at;
    fclose(maps);
    return found;
}

TEST(refused_kernel_pages,
     "refused: the kernel's own pages in the process: [vdso], [vvar], io_uring's rings")
{
    static const char *const names[] = {"[vdso]", "[vvar]", "io_uring"};
    struct area b;

    zcdev_open();
    fixture_area(FIXTURE_SMALL, &b, "b", 1, 0);
    pin_pages(b.at, 1);
    for (int i = 0; i < 3; i++) {
        void *at = find_mapping(names[i]);
        struct zcdev_outcome outcome;

        CHECK(at || i == 1, "set-up: no %s", names[i]);
        if (!at)
            continue;
        outcome = zcdev_pair(at, b.at, PAGE_SIZE);
        CHECK(outcome.cause == ZC_CAUSE_SPECIAL || outcome.cause == ZC_CAUSE_FILE ||
                  outcome.cause == ZC_CAUSE_ACCESS || outcome.cause == ZC_CAUSE_SHARED,
              "%s: %s", names[i], zcdev_cause(outcome.cause));
        CHECK(!outcome.done, "%s: done", names[i]);
        outcome = zcdev_pair(b.at, at, PAGE_SIZE);
        CHECK(outcome.cause != ZC_CAUSE_NONE && !outcome.done, "%s: as b", names[i]);
    }
    area_check(&b, "refused");
}

TEST(refused_device, "refused: private mappings of device memory are SPECIAL")
{
    int fd = open("/dev/mem", O_RDWR | O_CLOEXEC);
    struct area b;
    char *at;

    zcdev_open();
    if (fd < 0)
        ktap_skip("/dev/mem: %s", strerror(errno));
    /* The window of the old display adapter: never ordinary memory. */
    at = mmap(NULL, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0xa0000);
    if (at == MAP_FAILED)
        ktap_skip("/dev/mem: mmap: %s", strerror(errno));
    fixture_area(FIXTURE_SMALL, &b, "b", 4, 0);
    for (int i = 0; i < 2; i++) {
        struct zcdev_outcome outcome =
            i ? zcdev_pair(at, b.at, 4 * PAGE_SIZE) : zcdev_pair(b.at, at, 4 * PAGE_SIZE);

        CHECK(outcome.cause == ZC_CAUSE_SPECIAL && !outcome.done, "%s", zcdev_cause(outcome.cause));
    }
    area_check(&b, "refused");
}

static sigjmp_buf out_of_signal;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(out_of_signal, 1);
}

TEST(refused_poisoned,
     "refused: a page whose memory is broken is POISONED; those around it are not")
{
    struct zcdev_outcome outcome;
    struct area a, b;
    volatile int error = 0;

    need_root();
    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    /* The kernel may tell by a signal at once, or at the first touch. */
    signal(SIGBUS, jump);
    if (!sigsetjmp(out_of_signal, 1) && madvise(area_page(&a, 5), PAGE_SIZE, MADV_HWPOISON))
        error = errno;
    if (error)
        ktap_skip("MADV_HWPOISON: %s", strerror(error));

    outcome = exchange(whole(&a), whole(&b), 8);
    expect(&outcome, ZC_CAUSE_POISONED, 5, "as a");
    outcome = exchange(whole(&b), whole(&a), 8);
    expect(&outcome, ZC_CAUSE_POISONED, 5, "as b");
    outcome = exchange(part(&a, 6), part(&b, 6), 2);
    expect(&outcome, ZC_CAUSE_NONE, 2, "behind it");
    area_check_part(&a, 0, 5, "poisoned");
    area_check_part(&a, 6, 2, "poisoned");
    area_check(&b, "poisoned");
    /* Still broken, and still where it was. */
    if (!sigsetjmp(out_of_signal, 1)) {
        (void)*(volatile char *)area_page(&a, 5);
        FAIL("the broken page can be read");
    }
}

/* Linux 6.13: entries that make a fault of every touch, in the midst of a mapping. */
TEST(refused_guard,
     "refused: guard pages stop a range as what cannot be touched; they stay in place")
{
    struct zcdev_outcome outcome;
    struct area a, b;

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    if (madvise(area_page(&a, 5), PAGE_SIZE, 102 /* MADV_GUARD_INSTALL */))
        ktap_skip("no guard pages: %s", strerror(errno));
    for (int turn = 0; turn < 2; turn++) {
        outcome = turn ? exchange(whole(&b), whole(&a), 8) : exchange(whole(&a), whole(&b), 8);
        CHECK((outcome.cause == ZC_CAUSE_UNMAPPED || outcome.cause == ZC_CAUSE_ACCESS) &&
                  outcome.done == 5 * PAGE_SIZE,
              "%s after %zu pages", zcdev_cause(outcome.cause), (size_t)(outcome.done / PAGE_SIZE));
    }
    area_check_part(&a, 0, 5, "guarded");
    area_check_part(&a, 6, 2, "guarded");
    area_check(&b, "guarded");
    signal(SIGSEGV, jump);
    if (!sigsetjmp(out_of_signal, 1)) {
        (void)*(volatile char *)area_page(&a, 5);
        FAIL("the guard page can be read");
    }
}

static void exchange_in_child(void *arg)
{
    struct area *both = arg;

    area_stamp(&both[0], 0, 8);
    area_stamp(&both[1], 0, 8);
    exchange_all(whole(&both[0]), whole(&both[1]), 8);
}

TEST(refused_notifier,
     "refused: everything is NOTIFIER in a process with a KVM guest, not in its child")
{
    /* <linux/kvm.h>: KVM_CREATE_VM */
    const unsigned long create_vm = _IO(0xAE, 0x01);
    struct area both[2];
    int kvm, machine;

    zcdev_open();
    fixture_area(FIXTURE_SMALL, &both[0], "a", 8, 0);
    fixture_area(FIXTURE_SMALL, &both[1], "b", 8, 9);
    kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    machine = kvm < 0 ? -1 : ioctl(kvm, create_vm, 0);
    if (machine < 0)
        ktap_skip("KVM: %s", strerror(errno));
    exchange_stops(whole(&both[0]), whole(&both[1]), 8, ZC_CAUSE_NOTIFIER, 0);
    exchange_stops(whole(&both[1]), whole(&both[0]), 1, ZC_CAUSE_NOTIFIER, 0);
    ktap_wait(ktap_child(exchange_in_child, both));
    area_check(&both[0], "the child's exchange");
    area_check(&both[1], "the child's exchange");
}

/*
 * vmsplice() holds pages by plain references: the pipe keeps the page, not the
 * address. What is read from it is what the page held.
 */
TEST(vmspliced, "plain references do not stop an exchange: a pipe keeps what its pages held")
{
    static char copy[8 * 4096];
    struct iovec iov;
    struct area a, b, as_spliced;
    int ends[2];

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    area_of(&as_spliced, "pipe", copy, 8);
    memcpy(as_spliced.id, a.id, 8 * sizeof(*a.id));
    NEED(!pipe(ends));
    iov = (struct iovec){a.at, 8 * PAGE_SIZE};
    NEED(vmsplice(ends[1], &iov, 1, 0) == 8 * (ssize_t)PAGE_SIZE);

    exchange_all(whole(&a), whole(&b), 8);
    /* New content where the spliced pages were: not theirs any more. */
    area_stamp(&a, 0, 8);
    NEED(read(ends[0], copy, sizeof(copy)) == sizeof(copy));
    area_check(&as_spliced, "read from the pipe");
    area_check(&a, "written meanwhile");
    area_check(&b, "spliced and exchanged");
    area_stamp(&b, 0, 8);
    area_check_both(&a, &b, "both written");
}

TEST(vmspliced_gift, "pages given away by SPLICE_F_GIFT are exchanged or refused, never lost")
{
    struct iovec iov;
    struct area a, b;
    int ends[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    zcdev_open();
    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 9);
    NEED(!pipe(ends) && null >= 0);
    iov = (struct iovec){a.at, 8 * PAGE_SIZE};
    NEED(vmsplice(ends[1], &iov, 1, SPLICE_F_GIFT) == 8 * (ssize_t)PAGE_SIZE);
    exchange(whole(&a), whole(&b), 8);
    area_check_both(&a, &b, "given away");
    NEED(splice(ends[0], NULL, null, NULL, 8 * PAGE_SIZE, 0) > 0);
    area_check_both(&a, &b, "taken");
}
