/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_REST_H_INCLUDED
#define ZCF_REST_H_INCLUDED

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BYTES (4 << 20)

/* In place of work: processors are few where the tests run. */
static void rest(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0)
        ;
}

/* What one rank says by a FIFO another one hears, outside of MPI: nothing of it is recorded. A
 * barrier may let one of them go long before the other. */
static void name_fifo(int number, char *name, size_t bytes)
{
    snprintf(name, bytes, "/tmp/zc-forecast-%d-%d", (int)getppid(), number);
}

static int open_fifo(int number)
{
    char name[64];
    name_fifo(number, name, sizeof name);
    mkfifo(name, 0600); /* if the other rank has not made it */
    const int fifo = open(name, O_RDWR);
    if (fifo < 0)
        abort();
    return fifo;
}

/* When both have opened it. */
static void remove_fifo(int number)
{
    char name[64];
    name_fifo(number, name, sizeof name);
    unlink(name);
}

static void say(int fifo)
{
    if (write(fifo, "", 1) != 1)
        abort();
}

static void hear(int fifo)
{
    char said;
    if (read(fifo, &said, 1) != 1)
        abort();
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
