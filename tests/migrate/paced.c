/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked with a program, it makes each safe point take longer until the file exists that
 * ZC_PACED_UNTIL names: the first ones by 40 ms, and twice as long after every 32, up to 1.28 s.
 * So there is time to move the ranks of a program that makes a given number of steps, however fast
 * or busy the machine is, and the program need not be changed for that.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

int zcm_safe_point(void)
{
    static int (*of_library)(void);
    static unsigned points;
    const unsigned doubled = points / 32 < 5 ? points / 32 : 5;
    const long ns = 40000000L << doubled;
    const struct timespec little = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    const char *file = getenv("ZC_PACED_UNTIL");
    if (!of_library)
        of_library = (int (*)(void))dlsym(RTLD_NEXT, "zcm_safe_point");
    if (!of_library || !file) {
        fprintf(stderr, "paced: no libzcm, or no ZC_PACED_UNTIL\n");
        abort();
    }
    points++;
    if (access(file, F_OK) != 0)
        nanosleep(&little, NULL);
    return of_library();
}
