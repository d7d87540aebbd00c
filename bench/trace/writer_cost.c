/* SPDX-License-Identifier: BSD-3-Clause */
/* What writing an event costs without MPI: both clock readings, the record, its
 * share of checksum and write(2). Prints nanoseconds of processor time and bytes
 * per event. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "writer.h"

#define EVENTS 4000000

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t processor_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void report(const char *name, int64_t begin, const char *path)
{
    FILE *file = fopen(path, "r");
    fseek(file, 0, SEEK_END);
    printf("%s %.2f %.2f\n", name, (double)(processor_ns() - begin) / EVENTS,
           (double)ftell(file) / EVENTS);
    fclose(file);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct zct_head head = {0, 4, 1, 1, "", "", "", ""};
    const int world[] = {0, 1, 2, 3};
    struct zct_writer w;
    if (argc != 2) {
        fprintf(stderr, "usage: writer_cost FILE\n");
        return 2;
    }
    if (zct_writer_open(&w, argv[1], &head) != 0) {
        perror(argv[1]);
        return 1;
    }
    zct_write_communicator(&w, world, 4, NULL, 0);
    int64_t begin = processor_ns();
    for (int i = 0; i < EVENTS; i++) {
        const int64_t posted = now();
        const uint64_t order = zct_writer_begin(&w);
        const struct zct_receive r = {posted,
                                      now(),
                                      order,
                                      order,
                                      0,
                                      i & 3,
                                      i & 7,
                                      (uint64_t)(i & 3) * 8000,
                                      0x7f0000000000 + (uint64_t)(i & 7)};
        zct_write_receive(&w, &r);
    }
    zct_writer_close(&w, true);
    report("receive", begin, argv[1]);

    if (zct_writer_open(&w, argv[1], &head) != 0)
        return 1;
    zct_write_communicator(&w, world, 4, NULL, 0);
    begin = processor_ns();
    for (int i = 0; i < EVENTS; i++)
        zct_write_send(&w, now(), 0, i & 3, i & 7, (uint64_t)(i & 3) * 8000);
    zct_writer_close(&w, true);
    report("send", begin, argv[1]);
    return 0;
}
