/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "exchange.h"

#include "ktap.h"

#include <stdlib.h>
#include <unistd.h>

/* A page in somebody's hands is let go of sooner or later: 20 s in all. */
enum { kTries = 2000, kPause_us = 10 * 1000 };

struct zcdev_outcome exchange(struct part a, struct part b, size_t pages)
{
    struct zcdev_outcome outcome;
    uint64_t done = 0;

    for (int i = 0; i < kTries; i++) {
        size_t at = done / PAGE_SIZE;

        outcome = zcdev_pair(area_page(a.area, a.first + at), area_page(b.area, b.first + at),
                             (pages - at) * PAGE_SIZE);
        area_exchanged(a.area, a.first + at, b.area, b.first + at, outcome.done / PAGE_SIZE);
        done += outcome.done;
        if (outcome.cause != ZC_CAUSE_RACED && outcome.cause != ZC_CAUSE_INTERRUPTED)
            break;
        if (outcome.cause == ZC_CAUSE_RACED)
            usleep(kPause_us);
    }
    outcome.done = done;
    return outcome;
}

void exchange_all(struct part a, struct part b, size_t pages)
{
    struct zcdev_outcome outcome = exchange(a, b, pages);

    CHECK(outcome.cause == ZC_CAUSE_NONE && outcome.done == pages * PAGE_SIZE,
          "%s and %s: stopped after %zu of %zu pages: %s", a.area->name, b.area->name,
          (size_t)(outcome.done / PAGE_SIZE), pages, zcdev_cause(outcome.cause));
    area_check(a.area, "exchanged");
    area_check(b.area, "exchanged");
}

void exchange_stops(struct part a, struct part b, size_t pages, enum zc_cause cause, size_t done)
{
    struct zcdev_outcome outcome = exchange(a, b, pages);

    CHECK(outcome.cause == cause && outcome.done == done * PAGE_SIZE,
          "%s and %s: stopped after %zu pages because of %s, not after %zu because of %s",
          a.area->name, b.area->name, (size_t)(outcome.done / PAGE_SIZE),
          zcdev_cause(outcome.cause), done, zcdev_cause(cause));
    area_check(a.area, "stopped");
    area_check(b.area, "stopped");
}

void exchange_frames(struct part a, struct part b, size_t pages)
{
    uint64_t *frames = malloc(2 * pages * sizeof(*frames));

    for (size_t i = 0; i < pages; i++) {
        frames[i] = pfn_of(area_page(a.area, a.first + i));
        frames[pages + i] = pfn_of(area_page(b.area, b.first + i));
        CHECK(frames[i] && frames[pages + i], "set-up: page %zu is not there", i);
    }
    exchange_all(a, b, pages);
    for (size_t i = 0; i < pages; i++)
        CHECK(frames[i] == pfn_of(area_page(b.area, b.first + i)) &&
                  frames[pages + i] == pfn_of(area_page(a.area, a.first + i)),
              "page %zu was not exchanged but copied", i);
    free(frames);
}
