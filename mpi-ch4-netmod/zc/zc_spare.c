/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include "zc_processors.h"
#include "zc_spare.h"

#define NS 1000000000u

static MPIDI_ZC_spare_t spare;

static uint64_t now_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec * NS + (uint64_t) now.tv_nsec;
}

void MPIDI_ZC_spare_init(void)
{
    memset(&spare, 0, sizeof(spare));
}

bool MPIDI_ZC_spare_is_busy(void)
{
    return spare.state == MPIDI_ZC_SPARE_BUSY;
}

/* Reads the next part of @fd behind the @length bytes of @text that are there, and ends it with a zero.
 * Returns the length of all. */
static size_t read_more(int fd, char *text, size_t length, size_t size)
{
    const ssize_t got = read(fd, text + length, size - 1 - length);

    length += got > 0 ? (size_t) got : 0;
    text[length] = '\0';
    return length;
}

/* Sets *@idle_ns to how long the processors of @mask have been idle. False: there is no answer. No memory
 * is allocated: the landing thread would reserve addresses for an arena of its own. */
static bool ask(const uint64_t * mask, int words, uint64_t * idle_ns)
{
    char text[4096];
    uint64_t ticks = 0;
    size_t length = 0, before;
    int lines = 0;
    bool more = true;

    const int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    /* The processors come first, behind their sum. */
    do {
        before = length;
        length = read_more(fd, text, length, sizeof(text));
        const bool grew = length > before;
        char *line = text;
        for (char *end; more && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            more = MPIDI_ZC_spare_read(line, mask, words, &ticks);
            lines += more;
        }
        length -= (size_t) (line - text);
        memmove(text, line, length);
        more = more && grew;
    } while (more);
    close(fd);
    *idle_ns = ticks * (NS / (uint64_t) sysconf(_SC_CLK_TCK));
    return lines > 1;
}

void MPIDI_ZC_spare_look(int ranks)
{
    int words;
    uint64_t idle_ns;

    if (now_of(CLOCK_MONOTONIC_COARSE) < spare.next_ns) {
        return;
    }
    const uint64_t *mask = MPIDI_ZC_processors_own(&words);
    /* Not by the clock: it may lose its processor meanwhile, above all where that is busy. */
    const uint64_t begin = now_of(CLOCK_THREAD_CPUTIME_ID);
    const bool answered = ask(mask, words, &idle_ns);
    const uint64_t cost = now_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (answered) {
        MPIDI_ZC_spare_answered(&spare, now_of(CLOCK_MONOTONIC), cost, idle_ns,
                                MPIDI_ZC_share_count(mask, words), ranks);
    } else {
        spare = (MPIDI_ZC_spare_t) {.next_ns = UINT64_MAX };    /* there is no such file here */
    }
}
