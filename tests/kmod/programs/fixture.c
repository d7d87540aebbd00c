/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "fixture.h"

#include "ktap.h"
#include "procfs.h"
#include "uffd.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

#define ADVISE(at, pages, advice)                                                                  \
    do {                                                                                           \
        if (madvise(at, (pages)*PAGE_SIZE, advice))                                                \
            ktap_skip(#advice ": %s", strerror(errno));                                            \
    } while (0)

/* What some fixtures need to be what they are. */
static int children[32], uffds[32];
static size_t child_count, uffd_count;

static int keep_uffd(unsigned long long features)
{
    int fd = uffd_count < 32 ? uffd_open(features) : -1;

    if (fd < 0)
        ktap_skip("userfaultfd: %s", strerror(errno));
    uffds[uffd_count++] = fd;
    return fd;
}

void fixture_end(void)
{
    while (uffd_count)
        close(uffds[--uffd_count]);
    while (child_count) {
        kill(children[--child_count], SIGKILL);
        waitpid(children[child_count], NULL, 0);
    }
}

static char *map_at(char *at, size_t pages, int protection, int flags, int fd)
{
    char *map = mmap(at, pages * PAGE_SIZE, protection, flags | MAP_FIXED, fd, 0);

    if (map == MAP_FAILED)
        FAIL("set-up: mmap: %s", strerror(errno));
    return map;
}

static char *map_anonymous(char *at, size_t pages)
{
    return map_at(at, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static struct uring pins;

void pin_pages(void *at, size_t pages)
{
    struct iovec buffer = {at, pages * PAGE_SIZE};
    int error = uring_open(&pins, 4, 0);

    if (error)
        ktap_skip("io_uring: %s", strerror(error));
    error = uring_pin(&pins, &buffer, 1);
    if (error)
        FAIL("set-up: registering a buffer: %s", strerror(error));
}

void unpin_pages(void)
{
    int error = uring_unpin(&pins);

    if (error)
        FAIL("set-up: unregistering a buffer: %s", strerror(error));
    uring_close(&pins);
}

static void make_small(struct area *area, size_t first, size_t pages)
{
    map_anonymous(area_page(area, first), pages);
    area_stamp(area, first, pages);
    CHECK(pages_present(area_page(area, first), pages) == pages, "not all there");
}

static void make_untouched(struct area *area, size_t first, size_t pages)
{
    char *at = map_anonymous(area_page(area, first), pages);

    memset(area->id + first, 0, pages * sizeof(*area->id));
    CHECK(!pages_present(at, pages), "touched already");
}

static void read_all(const char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        (void)*(const volatile char *)(at + i * PAGE_SIZE);
}

static void make_zero_page(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_untouched(area, first, pages);
    read_all(at, pages);
    CHECK(pages_present(at, pages) == pages, "not all there");
    if (is_root())
        CHECK(pages_flagged(at, pages, KPF_ZERO_PAGE) == pages, "not the zero page");
}

static void make_swapped(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);
    size_t left;

    need_swap();
    make_small(area, first, pages);
    left = page_out(at, pages);
    CHECK(!left && pages_swapped(at, pages) == pages, "%zu of %zu pages stayed", left, pages);
}

static void make_mixed(struct area *area, size_t first, size_t pages)
{
    char *at = map_anonymous(area_page(area, first), pages);

    for (size_t i = 0; i < pages; i++) {
        area->id[first + i] = 0;
        if (i % 4 == 0 || i % 4 == 3)
            area_stamp(area, first + i, 1);
        if (i % 4 == 2)
            read_all(at + i * PAGE_SIZE, 1);
        if (i % 4 == 3 && is_root() && file_number("/proc/meminfo", "SwapTotal") > 0)
            CHECK(!page_out(at + i * PAGE_SIZE, 1), "page %zu stayed", i);
    }
    CHECK(pages < 2 || !(pagemap_of(at + PAGE_SIZE) & (PM_PRESENT | PM_SWAP)),
          "a page that is not touched is there");
}

static void make_swap_cache(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    /* Swap spaces take turns; of one in memory (zram) pages come without the cache. */
    for (int i = 0; i < 32; i++) {
        make_swapped(area, first, pages);
        read_all(at, pages);
        CHECK(pages_present(at, pages) == pages, "not all read back");
        if (pages_flagged(at, pages, KPF_SWAPCACHE) > pages / 2)
            return;
    }
    ktap_skip("this swap space is memory itself (zram): no swap cache");
}

static void make_freed(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_small(area, first, pages);
    drain_lru();
    ADVISE(at, pages, MADV_FREE);
    drain_lru();
    if (is_root())
        CHECK(!pages_flagged(at, pages, KPF_SWAPBACKED), "%zu of %zu pages are not to be dropped",
              pages_flagged(at, pages, KPF_SWAPBACKED), pages);
    for (size_t i = first; i < first + pages; i++)
        area->id[i] |= ID_OR_ZERO;
}

static void make_moved(struct area *area, size_t first, size_t pages)
{
    size_t len = pages * PAGE_SIZE;
    char *to = area_page(area, first);
    uint64_t id = new_ids(pages), pfn;
    char *from = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    NEED(from != MAP_FAILED);
    for (size_t i = 0; i < pages; i++) {
        area->id[first + i] = id + i;
        stamp(from + i * PAGE_SIZE, id + i);
    }
    pfn = pfn_of(from);
    NEED((char *)syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    CHECK(pfn_of(to) == pfn, "copied, not moved");
}

static void make_dev_zero(struct area *area, size_t first, size_t pages)
{
    int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        ktap_skip("/dev/zero: %s", strerror(errno));
    map_at(area_page(area, first), pages, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
    close(fd);
    area_stamp(area, first, pages);
}

static void make_mergeable(struct area *area, size_t first, size_t pages)
{
    make_small(area, first, pages);
    ADVISE(area_page(area, first), pages, MADV_MERGEABLE);
}

static void make_advised(struct area *area, size_t first, size_t pages)
{
    make_small(area, first, pages);
    ADVISE(area_page(area, first), pages, MADV_SEQUENTIAL);
    ADVISE(area_page(area, first), pages, MADV_DONTDUMP);
}

void sleep_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        pause();
}

static void end_at_once(void *arg)
{
    (void)arg;
}

static void make_cow(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_small(area, first, pages);
    if (child_count == 32)
        FAIL("set-up: too many children");
    children[child_count++] = ktap_child(sleep_for_ever, NULL);
    for (size_t i = 0; i < pages; i++)
        CHECK(!(pagemap_of(at + i * PAGE_SIZE) & PM_MMAP_EXCLUSIVE), "page %zu is not shared", i);
}

static void make_cow_ended(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_small(area, first, pages);
    ktap_wait(ktap_child(end_at_once, NULL));
    CHECK(pagemap_of(at) & PM_MMAP_EXCLUSIVE, "still mapped by the child");
}

static void make_cow_broken(struct area *area, size_t first, size_t pages)
{
    make_cow_ended(area, first, pages);
    area_stamp(area, first, pages);
}

/* Huge pages want 2 MiB of frames in one piece: make room if there is none. */
static void populate_huge(char *at, size_t pages)
{
    for (int i = 0; i < 20; i++) {
        for (size_t k = 0; k < pages; k += HUGE_PAGES)
            *(volatile char *)(at + k * PAGE_SIZE) = 1;
        if (huge_kib(at, pages) >= (long)pages * 4)
            return;
        NEED(!madvise(at, pages * PAGE_SIZE, MADV_DONTNEED));
        file_write("/proc/sys/vm/drop_caches", "3");
        drain_lru();
    }
    FAIL("set-up: no huge pages are to be had");
}

static void map_huge(char *at, size_t pages)
{
    if ((uintptr_t)at % HUGE_SIZE || pages % HUGE_PAGES)
        FAIL("set-up: not aligned for huge pages");
    map_anonymous(at, pages);
    ADVISE(at, pages, MADV_HUGEPAGE);
}

static void make_huge(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    map_huge(at, pages);
    populate_huge(at, pages);
    area_stamp(area, first, pages);
    if (is_root())
        CHECK(pages_flagged(at, pages, KPF_THP) == pages, "not huge");
}

static void make_huge_zero(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    map_huge(at, pages);
    memset(area->id + first, 0, pages * sizeof(*area->id));
    for (size_t k = 0; k < pages; k += HUGE_PAGES) {
        read_all(at + k * PAGE_SIZE, 1);
        if (is_root() && !(page_is(at + k * PAGE_SIZE, KPF_ZERO_PAGE) &&
                           pages_present(at + k * PAGE_SIZE, HUGE_PAGES) == HUGE_PAGES))
            ktap_skip("no huge zero page here");
    }
}

static void make_huge_untouched(struct area *area, size_t first, size_t pages)
{
    map_huge(area_page(area, first), pages);
    memset(area->id + first, 0, pages * sizeof(*area->id));
}

static void make_huge_swapped(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    need_swap();
    make_huge(area, first, pages);
    CHECK(!page_out(at, pages) && pages_swapped(at, pages) == pages, "%zu of %zu pages swapped",
          pages_swapped(at, pages), pages);
}

static void check_by_small_entries(const char *at, size_t pages)
{
    /* Unless it has become one mapping with a neighbour, whose huge pages count too. */
    const bool alone = smaps_kib("Size", at, pages * PAGE_SIZE) == (long)(pages * PAGE_SIZE / 1024);

    CHECK(!alone || huge_kib(at, pages) == 0, "still mapped whole");
    if (is_root())
        CHECK(pages_flagged(at, pages, KPF_THP) >= pages - pages / HUGE_PAGES,
              "the huge page itself was split");
}

static void make_huge_by_mprotect(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_huge(area, first, pages);
    for (size_t k = 100; k < pages; k += HUGE_PAGES) {
        NEED(!mprotect(at + k * PAGE_SIZE, PAGE_SIZE, PROT_READ));
        NEED(!mprotect(at + k * PAGE_SIZE, PAGE_SIZE, PROT_READ | PROT_WRITE));
    }
    check_by_small_entries(at, pages);
}

static void make_huge_by_dontneed(struct area *area, size_t first, size_t pages)
{
    char *at = area_page(area, first);

    make_huge(area, first, pages);
    for (size_t k = 100; k < pages; k += HUGE_PAGES) {
        NEED(!madvise(at + k * PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED));
        area->id[first + k] = 0;
    }
    check_by_small_entries(at, pages);
}

static void make_huge_few(struct area *area, size_t first, size_t pages)
{
    static const char knob[] = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    char *at = area_page(area, first);
    size_t few;

    need_root();
    if (file_write(knob, "madvise"))
        ktap_skip("this kernel has no folios between 4 KiB and 2 MiB");
    map_anonymous(at, pages);
    ADVISE(at, pages, MADV_HUGEPAGE);
    area_stamp(area, first, pages);
    file_write(knob, "never");
    few = pages_flagged(at, pages, KPF_COMPOUND_HEAD) + pages_flagged(at, pages, KPF_COMPOUND_TAIL);
    CHECK(few == pages, "%zu of %zu pages in larger folios", few, pages);
}

static void make_shared(struct area *area, size_t first, size_t pages)
{
    map_at(area_page(area, first), pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    area_stamp(area, first, pages);
}

static void map_of(int fd, int type, struct area *area, size_t first, size_t pages)
{
    char page[PAGE_SIZE];
    uint64_t id = new_ids(pages);

    for (size_t i = 0; i < pages; i++) {
        area->id[first + i] = id + i;
        stamp(page, id + i);
        NEED(write(fd, page, sizeof(page)) == sizeof(page));
    }
    map_at(area_page(area, first), pages, PROT_READ | PROT_WRITE, type, fd);
    close(fd);
}

static void make_memfd_of(struct area *area, size_t first, size_t pages, int type)
{
    int fd = memfd_create("zc-fixture", MFD_CLOEXEC);

    NEED(fd >= 0);
    map_of(fd, type, area, first, pages);
}

static void make_memfd(struct area *area, size_t first, size_t pages)
{
    make_memfd_of(area, first, pages, MAP_PRIVATE);
}

static void make_shared_memfd(struct area *area, size_t first, size_t pages)
{
    make_memfd_of(area, first, pages, MAP_SHARED);
}

static void make_file(struct area *area, size_t first, size_t pages)
{
    char name[] = "/tmp/zc-fixture-XXXXXX";
    int fd = mkstemp(name);

    if (fd < 0)
        ktap_skip("no file in /tmp: %s", strerror(errno));
    unlink(name);
    map_of(fd, MAP_PRIVATE, area, first, pages);
}

static void make_file_written(struct area *area, size_t first, size_t pages)
{
    make_file(area, first, pages);
    area_stamp(area, first, pages);
    CHECK(!(pagemap_of(area_page(area, first)) & PM_FILE), "the page is still the file's");
}

static void make_hugetlb_of(struct area *area, size_t first, size_t pages, int type)
{
    static const char knob[] = "/proc/sys/vm/nr_hugepages";
    size_t want = pages / HUGE_PAGES;
    char *at = area_page(area, first);

    if (file_number("/proc/meminfo", "HugePages_Free") < (long)want) {
        file_write("/proc/sys/vm/drop_caches", "3");
        file_write("/proc/sys/vm/compact_memory", "1");
        file_write(knob, "%zu", file_number(knob, NULL) + want);
    }
    if (mmap(at, pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
             type | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0) == MAP_FAILED)
        ktap_skip("no hugetlb pages: %s", strerror(errno));
    area_stamp(area, first, pages);
}

static void make_hugetlb(struct area *area, size_t first, size_t pages)
{
    make_hugetlb_of(area, first, pages, MAP_SHARED);
}

static void make_hugetlb_private(struct area *area, size_t first, size_t pages)
{
    make_hugetlb_of(area, first, pages, MAP_PRIVATE);
}

static void make_mlocked(struct area *area, size_t first, size_t pages)
{
    make_small(area, first, pages);
    if (mlock(area_page(area, first), pages * PAGE_SIZE))
        ktap_skip("mlock: %s", strerror(errno));
    CHECK(smaps_kib("Locked", area_page(area, first), pages * PAGE_SIZE) >= (long)pages * 4,
          "not locked");
}

static void make_mlocked_onfault(struct area *area, size_t first, size_t pages)
{
    map_anonymous(area_page(area, first), pages);
    if (syscall(SYS_mlock2, area_page(area, first), pages * PAGE_SIZE, MLOCK_ONFAULT))
        ktap_skip("mlock2: %s", strerror(errno));
    area_stamp(area, first, pages);
}

static void make_growsdown(struct area *area, size_t first, size_t pages)
{
    map_at(area_page(area, first), pages, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1);
    area_stamp(area, first, pages);
}

static void make_protected(struct area *area, size_t first, size_t pages, int protection)
{
    make_small(area, first, pages);
    NEED(!mprotect(area_page(area, first), pages * PAGE_SIZE, protection));
}

static void make_read_only(struct area *area, size_t first, size_t pages)
{
    make_protected(area, first, pages, PROT_READ);
}

static void make_no_access(struct area *area, size_t first, size_t pages)
{
    make_protected(area, first, pages, PROT_NONE);
}

static void make_executable(struct area *area, size_t first, size_t pages)
{
    make_protected(area, first, pages, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void make_pkey(struct area *area, size_t first, size_t pages)
{
    static int key = -1;

    if (key < 0)
        key = syscall(SYS_pkey_alloc, 0, 0);
    if (key < 0)
        ktap_skip("no protection keys: %s", strerror(errno));
    make_small(area, first, pages);
    NEED(!syscall(SYS_pkey_mprotect, area_page(area, first), pages * PAGE_SIZE,
                  PROT_READ | PROT_WRITE, key));
}

static void make_droppable(struct area *area, size_t first, size_t pages)
{
    if (mmap(area_page(area, first), pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
             MAP_DROPPABLE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        ktap_skip("no droppable memory: %s", strerror(errno));
    area_stamp(area, first, pages);
    for (size_t i = first; i < first + pages; i++)
        area->id[i] |= ID_OR_ZERO;
}

static void make_secret(struct area *area, size_t first, size_t pages)
{
    int fd = syscall(SYS_memfd_secret, O_CLOEXEC);

    if (fd < 0)
        ktap_skip("memfd_secret: %s", strerror(errno));
    NEED(!ftruncate(fd, pages * PAGE_SIZE));
    if (mmap(area_page(area, first), pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
        ktap_skip("memfd_secret: mmap: %s", strerror(errno));
    close(fd);
    area_stamp(area, first, pages);
}

/* Linux 6.12 sets KPF_KSM for every anonymous page: look at the frames instead. */
static size_t pages_merged(const char *at, size_t pages)
{
    size_t count = 0;

    for (size_t i = 0; i < pages; i++)
        count += pfn_of(at + i * PAGE_SIZE) &&
                 pfn_of(at + i * PAGE_SIZE) == pfn_of(at + (i + 1) % pages * PAGE_SIZE);
    return count;
}

static void make_ksm(struct area *area, size_t first, size_t pages)
{
    char *at = map_anonymous(area_page(area, first), pages);
    long run = file_number("/sys/kernel/mm/ksm/run", NULL);
    uint64_t id = new_ids(1);

    need_root();
    if (run < 0)
        ktap_skip("no KSM");
    for (size_t i = 0; i < pages; i++) {
        area->id[first + i] = id;
        stamp(at + i * PAGE_SIZE, id);
    }
    ADVISE(at, pages, MADV_MERGEABLE);
    file_write("/sys/kernel/mm/ksm/pages_to_scan", "2000");
    file_write("/sys/kernel/mm/ksm/sleep_millisecs", "1");
    file_write("/sys/kernel/mm/ksm/run", "1");
    for (int i = 0; i < 600 && pages_merged(at, pages) < pages; i++)
        usleep(50 * 1000);
    file_write("/sys/kernel/mm/ksm/run", "%ld", run);
    CHECK(pages_merged(at, pages) == pages, "%zu of %zu pages merged", pages_merged(at, pages),
          pages);
}

static void make_userfaultfd(struct area *area, size_t first, size_t pages)
{
    int fd = keep_uffd(0);

    make_small(area, first, pages);
    NEED(!uffd_register(fd, area_page(area, first), pages * PAGE_SIZE,
                        UFFDIO_REGISTER_MODE_MISSING));
}

static void make_userfaultfd_wp(struct area *area, size_t first, size_t pages)
{
    int fd = keep_uffd(UFFD_FEATURE_PAGEFAULT_FLAG_WP);

    make_small(area, first, pages);
    if (uffd_register(fd, area_page(area, first), pages * PAGE_SIZE, UFFDIO_REGISTER_MODE_WP) ||
        uffd_protect(fd, area_page(area, first), pages * PAGE_SIZE, true))
        ktap_skip("userfaultfd write protection: %s", strerror(errno));
    CHECK(pagemap_of(area_page(area, first)) & PM_UFFD_WP, "not protected");
}

static void make_policy(struct area *area, size_t first, size_t pages)
{
    unsigned long node_0 = 1;

    map_anonymous(area_page(area, first), pages);
    if (syscall(SYS_mbind, area_page(area, first), pages * PAGE_SIZE, MPOL_BIND, &node_0, 64UL, 0))
        ktap_skip("mbind: %s", strerror(errno));
    area_stamp(area, first, pages);
}

static void make_pinned(struct area *area, size_t first, size_t pages)
{
    make_small(area, first, pages);
    pin_pages(area_page(area, first), pages);
}

static const struct maker {
    const char *name;
    void (*make)(struct area *, size_t, size_t);
    enum zc_cause cause;
    size_t unit;
} makers[FIXTURE_END] = {
    [FIXTURE_SMALL] = {"small pages", make_small},
    [FIXTURE_UNTOUCHED] = {"untouched memory", make_untouched},
    [FIXTURE_ZERO_PAGE] = {"the zero page", make_zero_page},
    [FIXTURE_MIXED] = {"mixed pages", make_mixed},
    [FIXTURE_SWAPPED] = {"swapped pages", make_swapped},
    [FIXTURE_SWAP_CACHE] = {"pages in the swap cache", make_swap_cache},
    [FIXTURE_FREED] = {"MADV_FREE pages", make_freed},
    [FIXTURE_MOVED] = {"memory moved by mremap", make_moved},
    [FIXTURE_DEV_ZERO] = {"a private mapping of /dev/zero", make_dev_zero},
    [FIXTURE_ADVISED] = {"MADV_SEQUENTIAL and MADV_DONTDUMP memory", make_advised},
    [FIXTURE_COW_BROKEN] = {"pages rewritten since a child ended", make_cow_broken},
    [FIXTURE_HUGE] = {"huge pages", make_huge, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES},
    [FIXTURE_HUGE_ZERO] = {"the huge zero page", make_huge_zero, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES},
    [FIXTURE_HUGE_UNTOUCHED] = {"untouched MADV_HUGEPAGE memory", make_huge_untouched,
                                ZC_CAUSE_PAGE_SIZE, HUGE_PAGES},
    [FIXTURE_HUGE_SWAPPED] = {"huge pages swapped out", make_huge_swapped, ZC_CAUSE_NONE,
                              HUGE_PAGES},
    [FIXTURE_HUGE_BY_MPROTECT] = {"huge pages by small entries, since mprotect",
                                  make_huge_by_mprotect, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES},
    [FIXTURE_HUGE_BY_DONTNEED] = {"huge pages by small entries, since MADV_DONTNEED",
                                  make_huge_by_dontneed, ZC_CAUSE_PAGE_SIZE, HUGE_PAGES},
    [FIXTURE_HUGE_FEW] = {"folios of 64 KiB", make_huge_few, ZC_CAUSE_PAGE_SIZE, 16},
    [FIXTURE_SHARED] = {"shared anonymous memory", make_shared, ZC_CAUSE_SHARED},
    [FIXTURE_SHARED_MEMFD] = {"a shared mapping of a memfd", make_shared_memfd, ZC_CAUSE_SHARED},
    [FIXTURE_MEMFD] = {"a private mapping of a memfd", make_memfd, ZC_CAUSE_FILE},
    [FIXTURE_FILE] = {"a private file mapping", make_file, ZC_CAUSE_FILE},
    [FIXTURE_FILE_WRITTEN] = {"a private file mapping, written", make_file_written, ZC_CAUSE_FILE},
    [FIXTURE_HUGETLB] = {"shared hugetlb memory", make_hugetlb, ZC_CAUSE_HUGETLB, HUGE_PAGES},
    [FIXTURE_HUGETLB_PRIVATE] = {"private hugetlb memory", make_hugetlb_private, ZC_CAUSE_HUGETLB,
                                 HUGE_PAGES},
    [FIXTURE_MLOCKED] = {"mlocked memory", make_mlocked, ZC_CAUSE_LOCKED},
    [FIXTURE_MLOCKED_ONFAULT] = {"MLOCK_ONFAULT memory", make_mlocked_onfault, ZC_CAUSE_LOCKED},
    [FIXTURE_GROWSDOWN] = {"a mapping that grows down", make_growsdown, ZC_CAUSE_SPECIAL},
    [FIXTURE_READ_ONLY] = {"read-only memory", make_read_only, ZC_CAUSE_ACCESS},
    [FIXTURE_NO_ACCESS] = {"inaccessible memory", make_no_access, ZC_CAUSE_ACCESS},
    [FIXTURE_EXECUTABLE] = {"executable memory", make_executable, ZC_CAUSE_ACCESS},
    [FIXTURE_PKEY] = {"memory with a protection key", make_pkey, ZC_CAUSE_ACCESS},
    [FIXTURE_DROPPABLE] = {"MAP_DROPPABLE memory", make_droppable, ZC_CAUSE_SPECIAL},
    [FIXTURE_SECRET] = {"memfd_secret memory", make_secret, ZC_CAUSE_SHARED},
    [FIXTURE_COW] = {"pages shared with a child", make_cow, ZC_CAUSE_COW},
    [FIXTURE_COW_ENDED] = {"pages once shared with a child, not written since", make_cow_ended,
                           ZC_CAUSE_COW},
    [FIXTURE_MERGEABLE] = {"MADV_MERGEABLE memory, not merged", make_mergeable, ZC_CAUSE_COW},
    [FIXTURE_KSM] = {"pages merged by KSM", make_ksm, ZC_CAUSE_COW},
    [FIXTURE_USERFAULTFD] = {"memory under userfaultfd", make_userfaultfd, ZC_CAUSE_USERFAULTFD},
    [FIXTURE_USERFAULTFD_WP] = {"memory write-protected by userfaultfd", make_userfaultfd_wp,
                                ZC_CAUSE_USERFAULTFD},
    [FIXTURE_POLICY] = {"memory with a NUMA policy", make_policy, ZC_CAUSE_POLICY},
    [FIXTURE_PINNED] = {"pages pinned by io_uring", make_pinned, ZC_CAUSE_PINNED},
};

const char *fixture_name(enum fixture kind)
{
    return makers[kind].name;
}
enum zc_cause fixture_cause(enum fixture kind)
{
    return makers[kind].cause;
}
size_t fixture_unit(enum fixture kind)
{
    return makers[kind].unit ? makers[kind].unit : 1;
}

void fixture_make(enum fixture kind, struct area *area, size_t first, size_t pages)
{
    if (pages % fixture_unit(kind))
        FAIL("set-up: %zu pages of %s", pages, fixture_name(kind));
    makers[kind].make(area, first, pages);
}

void fixture_area(enum fixture kind, struct area *area, const char *name, size_t pages,
                  size_t offset)
{
    area_reserve(area, name, pages, offset);
    fixture_make(kind, area, 0, pages);
}

void fixture_pair(enum fixture kind, struct area *a, struct area *b, size_t pages, size_t offset_a,
                  size_t offset_b)
{
    fixture_area(kind, a, "a", pages, offset_a);
    fixture_area(kind, b, "b", pages, offset_b);
}

void fixture_reveal(enum fixture kind, struct area *area, size_t first, size_t pages)
{
    if (kind == FIXTURE_NO_ACCESS)
        NEED(!mprotect(area_page(area, first), pages * PAGE_SIZE, PROT_READ));
}
