/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked with a program, it makes each safe point take 40 ms longer until the file exists that
 * ZC_PACED_UNTIL names. So there is time to move the ranks of a program that makes a given number
 * of steps, however fast the machine is, and the program need not be changed for that.
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
    const struct timespec little = {.tv_nsec = 40000000};
    const char *file = getenv("ZC_PACED_UNTIL");
    if (!of_library)
        of_library = (int (*)(void))dlsym(RTLD_NEXT, "zcm_safe_point");
    if (!of_library || !file) {
        fprintf(stderr, "paced: no libzcm, or no ZC_PACED_UNTIL\n");
        abort();
    }
    if (access(file, F_OK) != 0)
        nanosleep(&little, NULL);
    return of_library();
}
