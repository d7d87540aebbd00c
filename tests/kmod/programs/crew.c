/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "crew.h"

#include "ktap.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

static bool stopping;

uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014 (SplitMix64). */
uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t crew_random(struct crew_member *self, uint64_t below)
{
    return next_random(&self->random) % below;
}

bool crew_stopping(void)
{
    return __atomic_load_n(&stopping, __ATOMIC_RELAXED);
}

static void *run(void *arg)
{
    struct crew_member *self = arg;

    while (!crew_stopping()) {
        self->turn(self);
        __atomic_fetch_add(&self->turns, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

void crew_start(struct crew_member *members, unsigned int count, uint64_t seed)
{
    __atomic_store_n(&stopping, false, __ATOMIC_RELAXED);
    for (unsigned int i = 0; i < count; i++) {
        members[i].number = i;
        members[i].random = seed * 1000003 + i;
        members[i].turns = 0;
        NEED(!pthread_create(&members[i].thread, NULL, run, &members[i]));
    }
}

void crew_stop(struct crew_member *members, unsigned int count)
{
    __atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
    for (unsigned int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
}

void crew_work(struct crew_member *members, unsigned int count, unsigned int ms)
{
    uint64_t begin = now_ms();
    bool all = false;

    crew_start(members, count, 1);
    /* On a slow machine it takes as long as it takes for each to have had its turns. */
    while (now_ms() - begin < ms || (!all && now_ms() - begin < 60 * 1000)) {
        usleep(10 * 1000);
        all = true;
        for (unsigned int i = 0; i < count; i++)
            all &= __atomic_load_n(&members[i].turns, __ATOMIC_RELAXED) >= 5;
    }
    crew_stop(members, count);
    for (unsigned int i = 0; i < count; i++)
        CHECK(members[i].turns, "%s (%u) did not get a turn", members[i].name, i);
}

void stay_on_processor(unsigned int number)
{
    cpu_set_t set;
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    CPU_ZERO(&set);
    CPU_SET(number % count, &set);
    sched_setaffinity(0, sizeof(set), &set);
}
