/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
/* The tests' own means: each kind of memory is of its kind, and the oracle sees what is wrong. */
#include "area.h"
#include "fixture.h"
#include "ktap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void make_and_check(enum fixture kind)
{
    size_t unit = fixture_unit(kind), pages = unit == 1 ? 24 : 2 * unit;
    struct area area;

    area_reserve(&area, "a", pages + HUGE_PAGES, 0);
    fixture_make(kind, &area, 0, pages);
    fixture_reveal(kind, &area, 0, pages);
    area_check_part(&area, 0, pages, "made");
}

#define MAKES(kind, claim)                                                                         \
    FIXTURE_TEST(makes_##kind, "fixture: " claim)                                                  \
    {                                                                                              \
        make_and_check(kind);                                                                      \
    }

MAKES(FIXTURE_SMALL, "small pages")
MAKES(FIXTURE_UNTOUCHED, "untouched memory")
MAKES(FIXTURE_ZERO_PAGE, "the zero page")
MAKES(FIXTURE_MIXED, "mixed pages")
MAKES(FIXTURE_SWAPPED, "swapped pages")
MAKES(FIXTURE_SWAP_CACHE, "pages in the swap cache")
MAKES(FIXTURE_FREED, "MADV_FREE pages")
MAKES(FIXTURE_MOVED, "memory moved by mremap")
MAKES(FIXTURE_DEV_ZERO, "a private mapping of /dev/zero")
MAKES(FIXTURE_ADVISED, "MADV_SEQUENTIAL and MADV_DONTDUMP memory")
MAKES(FIXTURE_COW_BROKEN, "pages rewritten since a child ended")
MAKES(FIXTURE_HUGE, "huge pages")
MAKES(FIXTURE_HUGE_ZERO, "the huge zero page")
MAKES(FIXTURE_HUGE_UNTOUCHED, "untouched MADV_HUGEPAGE memory")
MAKES(FIXTURE_HUGE_SWAPPED, "huge pages swapped out")
MAKES(FIXTURE_HUGE_BY_MPROTECT, "huge pages by small entries, since mprotect")
MAKES(FIXTURE_HUGE_BY_DONTNEED, "huge pages by small entries, since MADV_DONTNEED")
MAKES(FIXTURE_HUGE_FEW, "folios of 64 KiB")
MAKES(FIXTURE_SHARED, "shared anonymous memory")
MAKES(FIXTURE_SHARED_MEMFD, "a shared mapping of a memfd")
MAKES(FIXTURE_MEMFD, "a private mapping of a memfd")
MAKES(FIXTURE_FILE, "a private file mapping")
MAKES(FIXTURE_FILE_WRITTEN, "a private file mapping, written")
MAKES(FIXTURE_HUGETLB, "shared hugetlb memory")
MAKES(FIXTURE_HUGETLB_PRIVATE, "private hugetlb memory")
MAKES(FIXTURE_MLOCKED, "mlocked memory")
MAKES(FIXTURE_MLOCKED_ONFAULT, "MLOCK_ONFAULT memory")
MAKES(FIXTURE_GROWSDOWN, "a mapping that grows down")
MAKES(FIXTURE_READ_ONLY, "read-only memory")
MAKES(FIXTURE_NO_ACCESS, "inaccessible memory")
MAKES(FIXTURE_EXECUTABLE, "executable memory")
MAKES(FIXTURE_PKEY, "memory with a protection key")
MAKES(FIXTURE_DROPPABLE, "MAP_DROPPABLE memory")
MAKES(FIXTURE_SECRET, "memfd_secret memory")
MAKES(FIXTURE_COW, "pages shared with a child")
MAKES(FIXTURE_COW_ENDED, "pages once shared with a child, not written since")
MAKES(FIXTURE_MERGEABLE, "MADV_MERGEABLE memory")
MAKES(FIXTURE_KSM, "pages merged by KSM")
MAKES(FIXTURE_USERFAULTFD, "memory under userfaultfd")
MAKES(FIXTURE_USERFAULTFD_WP, "memory write-protected by userfaultfd")
MAKES(FIXTURE_POLICY, "memory with a NUMA policy")
MAKES(FIXTURE_PINNED, "pages pinned by io_uring")

FIXTURE_TEST(oracle_sees, "oracle: a page lost, doubled, torn or not exchanged is seen")
{
    struct area a, b;
    char page[PAGE_SIZE];

    fixture_pair(FIXTURE_SMALL, &a, &b, 8, 0, 0);
    CHECK(area_wrong(&a, 0, 8) == 8 && area_wrong(&b, 0, 8) == 8, "wrong from the start");

    area_exchanged(&a, 2, &b, 3, 2);
    CHECK(area_wrong(&a, 0, 8) == 2 && area_wrong(&b, 0, 8) == 3, "not exchanged: not seen");
    for (int i = 0; i < 2; i++) {
        memcpy(page, area_page(&a, 2 + i), PAGE_SIZE);
        memcpy(area_page(&a, 2 + i), area_page(&b, 3 + i), PAGE_SIZE);
        memcpy(area_page(&b, 3 + i), page, PAGE_SIZE);
    }
    CHECK(area_wrong(&a, 0, 8) == 8 && area_wrong(&b, 0, 8) == 8, "exchanged: not followed");

    memcpy(area_page(&a, 5), area_page(&a, 4), PAGE_SIZE);
    CHECK(area_wrong(&a, 0, 8) == 5, "doubled: not seen");
    stamp(area_page(&a, 5), a.id[5]);
    CHECK(area_wrong(&a, 0, 8) == 8, "not mended");
    for (size_t byte = 0; byte < PAGE_SIZE; byte += 511) {
        area_page(&a, 6)[byte] ^= 1;
        CHECK(area_wrong(&a, 0, 8) == 6, "torn at byte %zu: not seen", byte);
        area_page(&a, 6)[byte] ^= 1;
    }
    memset(area_page(&a, 7), 0, PAGE_SIZE);
    CHECK(area_wrong(&a, 0, 8) == 7, "lost: not seen");
    a.id[7] |= ID_OR_ZERO;
    CHECK(area_wrong(&a, 0, 8) == 8, "may be zeros: not allowed");
    NEED(!madvise(area_page(&a, 0), PAGE_SIZE, MADV_DONTNEED));
    CHECK(area_wrong(&a, 0, 8) == 0, "given up: not seen");
}

FIXTURE_TEST(oracle_sees_page_out, "oracle: memory that cannot be swapped out is seen")
{
    struct area area;

    need_swap();
    fixture_area(FIXTURE_MLOCKED, &area, "a", 4, 0);
    CHECK(page_out(area.at, 4) == 4, "locked pages count as swapped out");
}
