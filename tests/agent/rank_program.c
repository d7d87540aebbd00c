/* SPDX-License-Identifier: BSD-3-Clause */

/* Plays a rank without MPI: tells its agent what a rank would.
 *
 * rank_program DIRECTORY JOB NAME RANK EPOCH HOST...   HOST: of each rank, in order
 *
 * It sends so many messages a turn of 20 ms as RANK_PROGRAM_MESSAGES says: 1.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zcm/profile.h"

static volatile sig_atomic_t done;

static void stop(int signal)
{
    (void)signal;
    done = 1;
}

int main(int argc, char **argv)
{
    struct timespec pause = {0, 20 * 1000 * 1000};
    struct zcm_profile *profile;
    uint32_t world;
    uint32_t rank;
    uint32_t i;
    uint32_t *host_of;
    uint64_t turn = 0;
    const char *text = getenv("RANK_PROGRAM_MESSAGES");
    const unsigned long messages = text ? strtoul(text, NULL, 10) : 1;
    int err;

    if (argc < 7) {
        fprintf(stderr, "usage: rank_program DIRECTORY JOB NAME RANK EPOCH HOST...\n");
        return 2;
    }
    world = (uint32_t)(argc - 6);
    rank = (uint32_t)strtoul(argv[4], NULL, 10);
    err = zcm_profile_create(argv[1], strtoull(argv[2], NULL, 16), argv[3], rank, world, world,
                             &profile);
    if (err) {
        fprintf(stderr, "rank_program: %s\n", strerror(-err));
        return 1;
    }
    host_of = calloc(world, sizeof *host_of);
    if (!host_of)
        return 1;
    for (i = 0; i < world; i++)
        host_of[i] = i; /* names may repeat */
    err = zcm_profile_world(profile, strtoull(argv[5], NULL, 10), host_of,
                            (const char *const *)(argv + 6), world);
    free(host_of);
    if (err) {
        fprintf(stderr, "rank_program: %s\n", strerror(-err));
        return 1;
    }
    zcm_profile_image(profile, 4u << 20);
    zcm_profile_flags(profile, ZCM_PROFILE_MOVABLE);
    signal(SIGTERM, stop);
    while (!done) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        zcm_profile_point(profile, ++turn, 100000);
        for (unsigned long m = 0; m < messages; m++)
            zcm_profile_sent(profile, rank ^ 1u, 65536,
                             (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
        nanosleep(&pause, NULL);
    }
    zcm_profile_close(profile, argv[1]);
    return 0;
}
