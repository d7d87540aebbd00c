/* SPDX-License-Identifier: BSD-3-Clause */
#include "ledger.h"

#include "ktap.h"
#include "pagemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Id and place can be told from any one word. */
static uint64_t word_of(uint64_t id, unsigned int k)
{
    return (id << 12 | 0x400 | k) ^ 0x5bd1e9955bd1e995u * (k + 3);
}

static uint64_t id_of(uint64_t word, unsigned int k)
{
    uint64_t plain = word ^ 0x5bd1e9955bd1e995u * (k + 3);

    return (plain & 0xfff) == (0x400 | k) ? plain >> 12 : 0;
}

static bool id_fits(const struct ledger *ledger, uint64_t id)
{
    return id >= ledger->first && id < ledger->first + ledger->pages;
}

void ledger_stamp(char *page, uint64_t id)
{
    uint64_t *word = (uint64_t *)page;

    for (unsigned int k = 0; k < LEDGER_STAMP; k++)
        word[k] = word_of(id, k);
    memset(word + LEDGER_STAMP, 0, LEDGER_WRITERS * sizeof(*word));
}

void ledger_reserve(struct ledger *ledger, const struct ledger_part *parts, size_t count)
{
    static uint64_t next = 1;

    memset(ledger, 0, sizeof(*ledger));
    ledger->first = next;
    for (size_t p = 0; p < count; p++)
        ledger->pages += parts[p].pages;
    next += ledger->pages;
}

void ledger_open(struct ledger *ledger, const struct ledger_part *parts, size_t count)
{
    uint64_t id;

    if (!ledger->pages)
        ledger_reserve(ledger, parts, count);
    id = ledger->first;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].pages; i++)
            ledger_stamp(parts[p].at + i * PAGE_SIZE, id++);
}

void ledger_open_areas(struct ledger *ledger, struct ledger_part parts[2], const struct area *a,
                       const struct area *b)
{
    parts[0] = (struct ledger_part){a->at, a->pages};
    parts[1] = (struct ledger_part){b->at, b->pages};
    ledger_open(ledger, parts, 2);
}

uint64_t ledger_word(const struct ledger *ledger, const char *page, unsigned int k)
{
    uint64_t word = __atomic_load_n((const uint64_t *)page + k, __ATOMIC_RELAXED);
    uint64_t id = id_of(word, k);

    return id_fits(ledger, id) ? id : 0;
}

bool ledger_word_fits(const struct ledger *ledger, const char *page, unsigned int k)
{
    return ledger_word(ledger, page, k) != 0;
}

uint64_t ledger_page(const struct ledger *ledger, const char *page)
{
    const uint64_t *word = (const uint64_t *)page;
    uint64_t id = id_of(word[0], 0);

    if (!id_fits(ledger, id)) {
        ktap_note("page %p begins with %#llx: id %llu, none of %llu...", (const void *)page,
                  (unsigned long long)word[0], (unsigned long long)id,
                  (unsigned long long)ledger->first);
        return 0;
    }
    for (unsigned int k = 1; k < LEDGER_STAMP; k++) {
        if (word[k] != word_of(id, k)) {
            ktap_note("page %p is torn: begins with id %llu, word %u is %#llx (id %llu)",
                      (const void *)page, (unsigned long long)id, k, (unsigned long long)word[k],
                      (unsigned long long)id_of(word[k], k));
            return 0;
        }
    }
    return id;
}

static void audit(const struct ledger *ledger, const struct ledger_part *parts, size_t count,
                  const char *when, bool exact)
{
    unsigned char *seen = calloc(ledger->pages, 1);
    uint64_t sums[LEDGER_WRITERS] = {0}, id;
    size_t total = 0;

    NEED(seen);
    for (size_t p = 0; p < count; p++) {
        for (size_t i = 0; i < parts[p].pages; i++) {
            const char *page = parts[p].at + i * PAGE_SIZE;

            id = ledger_page(ledger, page);
            CHECK(id, "%s: page %zu of part %zu", when, i, p);
            CHECK(!seen[id - ledger->first]++,
                  "%s: id %llu is there twice, now as page %zu of part "
                  "%zu",
                  when, (unsigned long long)id, i, p);
            for (int w = 0; w < LEDGER_WRITERS; w++)
                sums[w] += ((const uint64_t *)page)[LEDGER_STAMP + w];
            total++;
        }
    }
    CHECK(total == ledger->pages, "%s: %zu pages of %zu", when, total, ledger->pages);
    for (int w = 0; w < LEDGER_WRITERS; w++) {
        /* A snapshot may hold a write that its writer has not counted yet. */
        if (sums[w] < ledger->added[w] || sums[w] > ledger->added[w] + !exact)
            FAIL("%s: writer %d wrote %llu times, %llu are found", when, w,
                 (unsigned long long)ledger->added[w], (unsigned long long)sums[w]);
    }
    free(seen);
}

void ledger_audit(const struct ledger *ledger, const struct ledger_part *parts, size_t count,
                  const char *when)
{
    audit(ledger, parts, count, when, true);
}

void ledger_audit_snapshot(const struct ledger *ledger, const struct ledger_part *parts,
                           size_t count, const char *when)
{
    audit(ledger, parts, count, when, false);
}
