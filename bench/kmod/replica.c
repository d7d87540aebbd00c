/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "replica.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kPerTable = 512, kHuge = 2 << 20, kMostFrames = 8 << 20 };

/* Bits of an entry (x86) and of a descriptor's flags. */
#define ENTRY_PRESENT (1ull << 0)
#define ENTRY_WRITE (1ull << 1)
#define ENTRY_DIRTY (1ull << 6)
#define ENTRY_SPECIAL (1ull << 9)
#define ENTRY_UFFD (1ull << 10)
#define ENTRY_SOFT_DIRTY (1ull << 11)
#define FRAME_OF(entry) ((entry) >> 12 & 0xffffffffff)
enum { kLocked = 0, kLarge = 6, kWriteback = 1, kPoisoned = 21, kExclusive = 17 };

struct descriptor {
    uint64_t flags, lru[2], mapping, index, private;
    int32_t mapcount, refcount;
    uint64_t memcg;
};
_Static_assert(sizeof(struct descriptor) == 64, "a line");

/* Semaphore and reader count, each in a line of its own, as within larger structures. */
struct lock {
    _Alignas(64) uint64_t word;
    uint64_t owner;
};

struct side {
    uint64_t **tables; /* [i]: of pages 512 i to 512 i + 511 */
    struct lock *locks;
    uint64_t mapping, first_index;
    struct lock root; /* of its anon_vma */
};

struct replica {
    struct descriptor *descriptors;
    char *tables;
    size_t pages, table_count;
    bool both, turned;
    struct side a, b;
    struct lock mm;
    uint64_t taken[2][kPerTable];
};

/* ---- what locks the bus ---- */

static inline bool try_lock_bit(uint64_t *word, int bit)
{
    bool was;

    __asm__ volatile("lock btsq %2, %0"
                     : "+m"(*word), "=@ccc"(was)
                     : "Ir"((uint64_t)bit)
                     : "memory");
    return !was;
}

static inline bool unlock_bit(uint64_t *word)
{
    bool waited_for;

    __asm__ volatile("lock andb %2, %0"
                     : "+m"(*(char *)word), "=@ccs"(waited_for)
                     : "iq"((char)~(1 << kLocked))
                     : "memory");
    return waited_for;
}

static inline uint64_t take(uint64_t *entry)
{
    uint64_t was = 0;

    __asm__ volatile("xchgq %0, %1" : "+r"(was), "+m"(*entry) : : "memory");
    return was;
}

static inline bool spin(struct lock *lock)
{
    uint64_t free = 0;

    return __atomic_compare_exchange_n((uint32_t *)&lock->word, (uint32_t *)&free, 1, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void unspin(struct lock *lock)
{
    __atomic_store_n((uint32_t *)&lock->word, 0, __ATOMIC_RELEASE);
}

static inline void write_lock(struct lock *lock)
{
    uint64_t free = 0;

    if (!__atomic_compare_exchange_n(&lock->word, &free, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        abort();
    __atomic_store_n(&lock->owner, (uintptr_t)lock, __ATOMIC_RELAXED);
}

static inline void write_unlock(struct lock *lock)
{
    __atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&lock->word, 1, __ATOMIC_RELEASE);
}

static inline void read_lock(struct lock *lock)
{
    __atomic_fetch_add(&lock->word, 256, __ATOMIC_ACQUIRE);
}

static inline void read_unlock(struct lock *lock)
{
    __atomic_fetch_sub(&lock->word, 256, __ATOMIC_RELEASE);
}

/* ---- memory ---- */

static void *huge_memory(size_t bytes)
{
    char *map;

    bytes = (bytes + kHuge - 1) / kHuge * kHuge;
    map = mmap(NULL, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        abort();
    map = (char *)(((uintptr_t)map + kHuge - 1) / kHuge * kHuge);
    madvise(map, bytes, MADV_HUGEPAGE);
    return map;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* There is a hole below 4 GiB. */
size_t replica_frames(void)
{
    size_t frames = sysconf(_SC_PHYS_PAGES) + (1 << 20);

    return frames < kMostFrames ? frames : kMostFrames;
}

/* One for each frame of the machine. Only those that are used are ever touched. */
static struct descriptor *all_descriptors(size_t *count)
{
    static struct descriptor *all;
    static size_t frames;

    if (!all) {
        frames = replica_frames();
        all = huge_memory(frames * sizeof(*all));
    }
    *count = frames;
    return all;
}

static void shuffle(uint32_t *numbers, size_t count)
{
    uint64_t state = 1;

    for (size_t i = count - 1; i > 0; i--) {
        size_t k = next_random(&state) % (i + 1);
        uint32_t number = numbers[i];

        numbers[i] = numbers[k];
        numbers[k] = number;
    }
}

static void open_side(struct replica *r, struct side *side, uint64_t number, const uint32_t *places,
                      const uint32_t *frames)
{
    side->tables = calloc(r->table_count, sizeof(*side->tables));
    side->locks = aligned_alloc(64, r->table_count * sizeof(*side->locks));
    memset(side->locks, 0, r->table_count * sizeof(*side->locks));
    side->mapping = 0xffff888000000001 + number * 4096;
    side->first_index = number << 20;
    for (size_t i = 0; i < r->table_count; i++)
        side->tables[i] = (uint64_t *)(r->tables + (size_t)places[i] * kPage);
    for (size_t i = 0; frames && i < r->pages; i++) {
        struct descriptor *d = &r->descriptors[frames[i]];

        side->tables[i / kPerTable][i % kPerTable] =
            (uint64_t)frames[i] << 12 | ENTRY_PRESENT | ENTRY_WRITE | ENTRY_DIRTY;
        *d = (struct descriptor){.flags = 1ull << kExclusive,
                                 .mapping = side->mapping,
                                 .index = side->first_index + i,
                                 .refcount = 1};
    }
}

/* Of two ranges, no frame twice. */
static void choose_frames(uint32_t *numbers[2], size_t pages, size_t count, enum frames frames,
                          const uint64_t *a, const uint64_t *b)
{
    /* Multiples of what has no divisor in common with the count come round only after all. */
    const uint64_t apart = 2654435761u;

    numbers[0] = malloc(2 * pages * sizeof(*numbers[0]));
    numbers[1] = numbers[0] + pages;
    for (size_t i = 0; i < pages; i++) {
        switch (frames) {
        case FRAMES_AS_HERE:
            numbers[0][i] = a[i];
            numbers[1][i] = b[i];
            break;
        case FRAMES_SCATTERED:
            numbers[0][i] = 2 * i * apart % count;
            numbers[1][i] = (2 * i + 1) * apart % count;
            break;
        default:
            numbers[0][i] = i;
            numbers[1][i] = count / 2 + i;
        }
    }
}

struct replica *replica_open(size_t pages, enum frames frames, bool both, const uint64_t *a,
                             const uint64_t *b)
{
    struct replica *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
    uint32_t *numbers[2], *places;
    size_t count;

    memset(r, 0, sizeof(*r));
    r->pages = pages;
    r->both = both;
    r->table_count = (pages + kPerTable - 1) / kPerTable;
    r->descriptors = all_descriptors(&count);
    r->tables = huge_memory(2 * r->table_count * kPage);
    choose_frames(numbers, pages, count, frames, a, b);
    places = malloc(2 * r->table_count * sizeof(*places));
    for (uint32_t i = 0; i < 2 * r->table_count; i++)
        places[i] = i;
    shuffle(places, 2 * r->table_count);
    open_side(r, &r->a, 1, places, numbers[0]);
    open_side(r, &r->b, 2, places + r->table_count, both ? numbers[1] : NULL);
    free(numbers[0]);
    free(places);
    return r;
}

void replica_close(struct replica *r)
{
    munmap(r->tables, (2 * r->table_count * kPage + kHuge - 1) / kHuge * kHuge);
    free(r->a.tables);
    free(r->b.tables);
    free(r->a.locks);
    free(r->b.locks);
    free(r);
}

/* ---- zc.ko ---- */

static inline bool pinned(const struct descriptor *d)
{
    return __atomic_load_n(&d->refcount, __ATOMIC_RELAXED) >= 1024;
}

static inline bool has(const struct descriptor *d, int bit)
{
    return __atomic_load_n(&d->flags, __ATOMIC_RELAXED) >> bit & 1;
}

static inline struct descriptor *take_page(const struct replica *r, uint64_t entry,
                                           uint64_t mapping)
{
    struct descriptor *d;

    if (!entry || !(entry & ENTRY_PRESENT) || (entry & (ENTRY_UFFD | ENTRY_SPECIAL)))
        return NULL;
    d = &r->descriptors[FRAME_OF(entry)];
    if (__atomic_load_n(&d->lru[0], __ATOMIC_RELAXED) & 1)
        return NULL; /* a tail */
    if (has(d, kLarge) || !(__atomic_load_n(&d->mapping, __ATOMIC_RELAXED) & 1))
        return NULL;
    if (has(d, kPoisoned) || !has(d, kExclusive) || pinned(d) || has(d, kWriteback))
        return NULL;
    if (!try_lock_bit(&d->flags, kLocked))
        return NULL;
    return __atomic_load_n(&d->mapping, __ATOMIC_RELAXED) == mapping ? d : NULL;
}

static inline void settle(struct replica *r, uint64_t *to, uint64_t entry, uint64_t mapping,
                          uint64_t index)
{
    struct descriptor *d = &r->descriptors[FRAME_OF(entry)];

    __atomic_store_n(to, entry | ENTRY_SOFT_DIRTY, __ATOMIC_RELAXED);
    __atomic_store_n(&d->mapping, mapping, __ATOMIC_RELAXED);
    __atomic_store_n(&d->index, index, __ATOMIC_RELAXED);
    unlock_bit(&d->flags);
}

static void exchange_table(struct replica *r, size_t table, size_t pages)
{
    uint64_t *a = r->a.tables[table], *b = r->b.tables[table];
    const size_t first = table * kPerTable;

    write_lock(&r->a.root);
    write_lock(&r->b.root);
    if (!spin(&r->a.locks[table]) || !spin(&r->b.locks[table]))
        abort();
    for (size_t i = 0; i < pages; i++) {
        struct descriptor *of_a, *of_b;

        of_a = take_page(r, __atomic_load_n(&a[i], __ATOMIC_RELAXED), r->a.mapping);
        of_b = take_page(r, __atomic_load_n(&b[i], __ATOMIC_RELAXED), r->b.mapping);
        if (!of_a || !of_b)
            abort();
        r->taken[0][i] = take(&a[i]);
        r->taken[1][i] = take(&b[i]);
        if (pinned(of_a) || pinned(of_b))
            abort();
    }
    for (size_t i = 0; i < pages; i++) {
        settle(r, &a[i], r->taken[1][i], r->a.mapping, r->a.first_index + first + i);
        settle(r, &b[i], r->taken[0][i], r->b.mapping, r->b.first_index + first + i);
    }
    unspin(&r->a.locks[table]);
    unspin(&r->b.locks[table]);
    write_unlock(&r->b.root);
    write_unlock(&r->a.root);
}

size_t replica_exchange(struct replica *r, size_t pages)
{
    size_t tables = 0;

    read_lock(&r->mm);
    for (size_t at = 0; at < pages; at += kPerTable, tables++)
        exchange_table(r, tables, pages - at < kPerTable ? pages - at : kPerTable);
    read_unlock(&r->mm);
    return tables;
}

/* ---- UFFDIO_MOVE ---- */

static void move_table(struct replica *r, struct side *to, struct side *from, size_t table,
                       size_t pages)
{
    uint64_t *t = to->tables[table], *f = from->tables[table];
    const size_t first = table * kPerTable;

    /* The first page is looked at, locked and held before the batch begins. */
    if (!spin(&to->locks[table]))
        abort();
    unspin(&to->locks[table]);
    if (!spin(&from->locks[table]))
        abort();
    unspin(&from->locks[table]);
    write_lock(&from->root);
    if (!spin(&to->locks[table]) || !spin(&from->locks[table]))
        abort();
    for (size_t i = 0; i < pages; i++) {
        uint64_t entry = __atomic_load_n(&f[i], __ATOMIC_RELAXED);
        struct descriptor *d;

        if (__atomic_load_n(&t[i], __ATOMIC_RELAXED) || !(entry & ENTRY_PRESENT) ||
            (entry & ENTRY_SPECIAL))
            abort();
        d = &r->descriptors[FRAME_OF(entry)];
        if (__atomic_load_n(&d->lru[0], __ATOMIC_RELAXED) & 1)
            abort();
        if (!try_lock_bit(&d->flags, kLocked) || !has(d, kExclusive) || has(d, kLarge) ||
            __atomic_load_n(&d->mapping, __ATOMIC_RELAXED) != from->mapping)
            abort();
        entry = take(&f[i]);
        if (pinned(d))
            abort();
        __atomic_store_n(&d->mapping, to->mapping, __ATOMIC_RELAXED);
        __atomic_store_n(&d->index, to->first_index + first + i, __ATOMIC_RELAXED);
        __atomic_store_n(&t[i], entry | ENTRY_SOFT_DIRTY, __ATOMIC_RELAXED);
        unlock_bit(&d->flags);
    }
    unspin(&to->locks[table]);
    unspin(&from->locks[table]);
    write_unlock(&from->root);
}

size_t replica_move(struct replica *r, size_t pages)
{
    struct side *from = r->turned ? &r->b : &r->a, *to = r->turned ? &r->a : &r->b;
    size_t tables = 0;

    read_lock(&r->mm);
    for (size_t at = 0; at < pages; at += kPerTable, tables++)
        move_table(r, to, from, tables, pages - at < kPerTable ? pages - at : kPerTable);
    read_unlock(&r->mm);
    r->turned = !r->turned;
    return tables;
}

static bool side_right(const struct replica *r, const struct side *side, size_t pages)
{
    for (size_t i = 0; i < pages; i++) {
        uint64_t entry = side->tables[i / kPerTable][i % kPerTable];
        const struct descriptor *d = &r->descriptors[FRAME_OF(entry)];

        if (!(entry & ENTRY_PRESENT) || d->mapping != side->mapping ||
            d->index != side->first_index + i || has(d, kLocked))
            return false;
    }
    return true;
}

bool replica_right(const struct replica *r)
{
    if (r->both)
        return side_right(r, &r->a, r->pages) && side_right(r, &r->b, r->pages);
    return side_right(r, r->turned ? &r->b : &r->a, r->pages);
}
