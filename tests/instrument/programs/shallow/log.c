/* SPDX-License-Identifier: BSD-3-Clause */
/* Levelled logging to standard error.
 * The level is chosen at run time, e.g. "mpiexec -n 4 ./shallow run.log=info". */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const level_names[LOG_LEVEL_COUNT] = {"error", "warn", "info", "debug"};

static struct {
    FILE *stream;
    int threshold;
    int rank;
    double start;
} logger;

void log_open(int rank, const char *level_name)
{
    int level = 0;
    while (level < LOG_LEVEL_COUNT && strcmp(level_names[level], level_name) != 0)
        level++;
    SW_REQUIRE(level < LOG_LEVEL_COUNT, "unknown log level \"%s\"", level_name);
    logger.stream = stderr;
    logger.threshold = level;
    logger.rank = rank;
    logger.start = MPI_Wtime();
}

void log_write(enum log_level level, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (!logger.stream || (int)level > logger.threshold || (level < LOG_DEBUG && logger.rank != 0))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(logger.stream, "[%8.3f] %s %d: %s\n", MPI_Wtime() - logger.start, level_names[level],
            logger.rank, text);
}
