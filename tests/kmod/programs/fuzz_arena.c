/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "fuzz_arena.h"

#include "crew.h"
#include "ktap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool available[FIXTURE_END];

static void try_kind(void *arg)
{
    enum fixture kind = *(enum fixture *)arg;
    struct area area;

    fixture_area(kind, &area, "probe", fixture_unit(kind), 0);
}

void arena_probe(void)
{
    for (enum fixture kind = 0; kind < FIXTURE_END; kind++) {
        int pid, status;

        /* Merged pages have no ids of their own; the swap cache takes long to get. */
        if (kind == FIXTURE_KSM || kind == FIXTURE_SWAP_CACHE)
            continue;
        pid = ktap_child(try_kind, &kind);
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
            (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 4))
            FAIL("%s: status %#x", fixture_name(kind), status);
        available[kind] = WEXITSTATUS(status) == 0;
    }
}

static enum fixture choose_kind(uint64_t *random)
{
    static const enum fixture often[] = {FIXTURE_SMALL, FIXTURE_SMALL, FIXTURE_MIXED,
                                         FIXTURE_HUGE,  FIXTURE_HUGE,  FIXTURE_UNTOUCHED};
    enum fixture kind;

    do
        kind = next_random(random) % 3 ? often[next_random(random) % 6]
                                       : next_random(random) % FIXTURE_END;
    while (!available[kind]);
    return kind;
}

/* Those that fork come first, so that no other plot is shared with a child by that. */
static bool forks(enum fixture kind)
{
    return kind == FIXTURE_COW || kind == FIXTURE_COW_ENDED || kind == FIXTURE_COW_BROKEN;
}

static void plan(struct arena *arena, uint64_t *random)
{
    size_t at = 0, count[FIXTURE_END] = {0};

    arena->plot_count = 0;
    while (arena->plot_count < ARENA_PLOTS) {
        enum fixture kind = choose_kind(random);
        size_t unit = fixture_unit(kind),
               pages = unit > 16 ? unit : unit * (1 + next_random(random) % 24);

        /* One lot of pins, few of what there are few of. */
        if (++count[kind] > (kind == FIXTURE_PINNED ? 1 : kind >= FIXTURE_HUGETLB ? 2 : 99))
            continue;
        at += next_random(random) % 3 ? 0 : 1 + next_random(random) % 5;
        at = (at + unit - 1) / unit * unit;
        if (at + pages > ARENA_PAGES)
            break;
        arena->plots[arena->plot_count++] = (struct plot){kind, at, pages};
        at += pages;
    }
}

void arena_make(struct arena *arena, uint64_t *random)
{
    static char used[ARENA_PAGES];

    memset(arena->open, 0, sizeof(arena->open));
    memset(used, 0, sizeof(used));
    plan(arena, random);
    area_reserve(&arena->area, "arena", ARENA_PAGES, 0);
    arena->first_id = new_ids(0);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < arena->plot_count; i++) {
            const struct plot *plot = &arena->plots[i];

            if (forks(plot->kind) != !turn)
                continue;
            fixture_make(plot->kind, &arena->area, plot->first, plot->pages);
            memset(used + plot->first, 1, plot->pages);
            memset(arena->open + plot->first, plot->kind != FIXTURE_NO_ACCESS, plot->pages);
        }
    }
    arena->end_id = new_ids(0);
    /* Between the plots: half of it mapped inaccessible, half not at all. */
    for (size_t i = 0; i < ARENA_PAGES; i++)
        if (!used[i] && next_random(random) % 2)
            NEED(!munmap(area_page(&arena->area, i), PAGE_SIZE));
}

void arena_release(struct arena *arena)
{
    for (size_t i = 0; i < arena->plot_count; i++) {
        if (arena->plots[i].kind == FIXTURE_PINNED)
            unpin_pages();
        if (arena->plots[i].kind == FIXTURE_NO_ACCESS) {
            fixture_reveal(FIXTURE_NO_ACCESS, &arena->area, arena->plots[i].first,
                           arena->plots[i].pages);
            area_check_part(&arena->area, arena->plots[i].first, arena->plots[i].pages, "revealed");
        }
    }
    area_release(&arena->area);
    fixture_end();
}

static bool inside(const struct arena *arena, uint64_t at, uint64_t bytes)
{
    uint64_t begin = (uintptr_t)arena->area.at;

    return at >= begin && bytes <= ARENA_PAGES * PAGE_SIZE &&
           at + bytes <= begin + ARENA_PAGES * PAGE_SIZE;
}

void arena_exchanged(struct arena *arena, uint64_t a, uint64_t b, uint64_t bytes)
{
    if (!bytes)
        return;
    CHECK(inside(arena, a, bytes) && inside(arena, b, bytes),
          "%#llx bytes at %#llx and %#llx were exchanged, which is not memory of ours",
          (unsigned long long)bytes, (unsigned long long)a, (unsigned long long)b);
    area_exchanged(&arena->area, (a - (uintptr_t)arena->area.at) / PAGE_SIZE, &arena->area,
                   (b - (uintptr_t)arena->area.at) / PAGE_SIZE, bytes / PAGE_SIZE);
}

void arena_check(struct arena *arena, bool quick, const char *when)
{
    for (size_t i = 0; i < ARENA_PAGES; i++) {
        const uint64_t *page = (const uint64_t *)area_page(&arena->area, i);

        if (!arena->open[i])
            continue;
        /* Two words tell an id from any other; all of them tell that the page is whole. */
        if (!quick || page[1] != stamp_word(arena->area.id[i] & ~ID_OR_ZERO, 1) ||
            page[510] != stamp_word(arena->area.id[i] & ~ID_OR_ZERO, 510))
            area_check_part(&arena->area, i, 1, when);
    }
}

void arena_follow(struct arena *arena, const char *when)
{
    size_t ids = arena->end_id - arena->first_id + 1;
    unsigned char *want = calloc(ids, 1), *optional = calloc(ids, 1);
    uint64_t id;
    int torn;

    NEED(want && optional);
    for (size_t i = 0; i < ARENA_PAGES; i++) {
        id = arena->area.id[i] & ~ID_OR_ZERO;
        if (arena->open[i] && id) {
            want[id - arena->first_id] = 1;
            optional[id - arena->first_id] = (arena->area.id[i] & ID_OR_ZERO) != 0;
        }
    }
    for (size_t i = 0; i < ARENA_PAGES; i++) {
        if (!arena->open[i])
            continue;
        id = stamp_read(area_page(&arena->area, i), &torn);
        CHECK(torn < 0, "%s: page %zu is torn at word %d", when, i, torn);
        if (id) {
            CHECK(id >= arena->first_id && id < arena->end_id && want[id - arena->first_id],
                  "%s: page %zu holds id %llu, which is another's or there twice", when, i,
                  (unsigned long long)id);
            want[id - arena->first_id] = 0;
            arena->area.id[i] = id | (optional[id - arena->first_id] ? ID_OR_ZERO : 0);
        } else {
            arena->area.id[i] = 0;
        }
    }
    for (size_t i = 0; i < ids; i++)
        CHECK(!want[i] || optional[i], "%s: id %llu is lost", when,
              (unsigned long long)(arena->first_id + i));
    free(want);
    free(optional);
}

static void end_at_once(void *arg)
{
    (void)arg;
}

void arena_disturb(struct arena *arena, uint64_t *random)
{
    const struct plot *plot = &arena->plots[next_random(random) % arena->plot_count];
    char *at = area_page(&arena->area, plot->first);

    switch (next_random(random) % 8) {
    case 0:
        if (plot->kind < FIXTURE_ODD_END) {
            area_stamp(&arena->area, plot->first, plot->pages);
            arena->end_id = new_ids(0);
        }
        break;
    case 1:
        if (next_random(random) % 4 == 0)
            ktap_wait(ktap_child(end_at_once, NULL));
        break;
    case 2:
        if (plot->kind < FIXTURE_HUGE_END && !madvise(at, PAGE_SIZE, MADV_DONTNEED))
            arena->area.id[plot->first] = 0;
        break;
    case 3:
        if (plot->kind < FIXTURE_ODD_END && !mlock(at, plot->pages * PAGE_SIZE))
            munlock(at, plot->pages * PAGE_SIZE);
        break;
    case 4:
        if (plot->kind < FIXTURE_ODD_END && plot->pages > 2) {
            mprotect(at + PAGE_SIZE, PAGE_SIZE, PROT_READ);
            mprotect(at + PAGE_SIZE, PAGE_SIZE, PROT_READ | PROT_WRITE);
        }
        break;
    default:
        madvise(at, plot->pages * PAGE_SIZE, 21 /* MADV_PAGEOUT */);
    }
}
