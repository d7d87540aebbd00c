/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_REST_H_INCLUDED
#define ZCF_REST_H_INCLUDED

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES (4 << 20)

/* In place of work: processors are few where the tests run. */
static void rest(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0)
        ;
}

/* Memory that is there already. */
static char *touched(size_t bytes)
{
    char *data = malloc(bytes);
    if (!data)
        abort();
    memset(data, 1, bytes);
    return data;
}

#endif
