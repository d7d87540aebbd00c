/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_CREW_H
#define ZC_TESTS_CREW_H

/* Threads that each repeat one thing until told to stop. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct crew_member {
    const char *name;
    void (*turn)(struct crew_member *self); /* again and again */
    void *arg;
    unsigned int number; /* among its crew */
    uint64_t random;     /* state of crew_random() */
    uint64_t turns;      /* out */
    pthread_t thread;
};

/** Starts them. @seed makes their random numbers. */
void crew_start(struct crew_member *members, unsigned int count, uint64_t seed);

/** Waits until all have ended their turn. */
void crew_stop(struct crew_member *members, unsigned int count);

/** Lets them work for a time, and fails the test if one did not get a turn. */
void crew_work(struct crew_member *members, unsigned int count, unsigned int ms);

/** A number below @below. */
uint64_t crew_random(struct crew_member *self, uint64_t below);
uint64_t next_random(uint64_t *state);

/** For turns that wait: whether to stop. */
bool crew_stopping(void);

/** Keeps the calling thread on one processor, if there are several. */
void stay_on_processor(unsigned int number);

uint64_t now_ms(void);

#endif
