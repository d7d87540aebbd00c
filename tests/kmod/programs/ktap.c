/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "ktap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPassed = 0, kFailed = 1, kSkipped = 4, kNotes = 16 * 1024 };

static struct ktap_test *first_test, **last_test = &first_test;
static int notes_fd = 2;
static bool times;

void ktap_register(struct ktap_test *test)
{
    *last_test = test;
    last_test = &test->next;
}

/* One write per line: children and threads of a test share the pipe. */
static void note_line(const char *before, const char *format, va_list args)
{
    char line[512];
    int n = snprintf(line, sizeof(line), "%s", before);

    n += vsnprintf(line + n, sizeof(line) - n - 1, format, args);
    if (n > (int)sizeof(line) - 2)
        n = sizeof(line) - 2;
    line[n++] = '\n';
    if (write(notes_fd, line, n) < 0)
        _exit(kFailed);
}

void ktap_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_line("", format, args);
    va_end(args);
}

void ktap_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    const char *name = strrchr(file, '/');
    char before[240];
    va_list args;

    snprintf(before, sizeof(before), "%s:%d: %s%s", name ? name + 1 : file, line,
             condition ? condition : "", condition ? ": " : "");
    va_start(args, format);
    note_line(before, format, args);
    va_end(args);
    _exit(kFailed);
}

void ktap_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_line("\001", format, args);
    va_end(args);
    _exit(kSkipped);
}

int ktap_child(void (*run)(void *), void *arg)
{
    int parent = getpid(), pid = fork();

    if (pid < 0)
        FAIL("set-up: fork: errno %d", errno);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(kFailed);
        run(arg);
        _exit(kPassed);
    }
    return pid;
}

void ktap_wait(int pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            FAIL("waitpid: errno %d", errno);
    if (WIFSIGNALED(status))
        FAIL("a child of the test was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status))
        _exit(WEXITSTATUS(status));
}

static void print_notes(char *notes)
{
    char *rest = NULL;

    for (char *line = strtok_r(notes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (*line != '\001')
            printf("# %s\n", line);
}

static bool read_notes(int fd, char *notes, size_t *used)
{
    char spill[512];
    ssize_t n = *used < kNotes - 1 ? read(fd, notes + *used, kNotes - 1 - *used)
                                   : read(fd, spill, sizeof(spill));

    if (n <= 0)
        return false;
    if (*used < kNotes - 1)
        *used += n;
    notes[*used] = 0;
    return true;
}

/*
 * Reads what the test says until its process has ended; what it left running
 * goes with it. Returns false if it had to be ended after the time.
 */
static bool follow(int pid, int fd, char *notes, int seconds)
{
    int process = syscall(SYS_pidfd_open, pid, 0);
    struct timespec now;
    bool ended = true;
    size_t used = 0;
    time_t until;

    clock_gettime(CLOCK_MONOTONIC, &now);
    until = now.tv_sec + seconds;
    for (;;) {
        struct pollfd wait_for[2] = {{.fd = process, .events = POLLIN},
                                     {.fd = fd, .events = POLLIN}};

        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= until || poll(wait_for, 2, (until - now.tv_sec) * 1000) == 0) {
            ended = false;
            break;
        }
        if (wait_for[1].revents && !read_notes(fd, notes, &used))
            wait_for[1].fd = fd = -1;
        if (wait_for[0].revents)
            break;
    }
    kill(-pid, SIGKILL);
    close(process);
    while (fd >= 0 && read_notes(fd, notes, &used))
        ;
    return ended;
}

int ktap_run(const struct ktap_test *test, int number, int seconds)
{
    static char notes[kNotes];
    struct timespec before, after;
    int pipe_fd[2], pid, status, result;
    char *skip = NULL;
    bool ended;

    notes[0] = 0;
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (pipe(pipe_fd) < 0 || (pid = fork()) < 0) {
        printf("not ok %d - %s\n# no process: %s\n", number, test->claim, strerror(errno));
        return kFailed;
    }
    if (!pid) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pipe_fd[0]);
        notes_fd = pipe_fd[1];
        test->run();
        _exit(kPassed);
    }
    setpgid(pid, pid);
    close(pipe_fd[1]);
    ended = follow(pid, pipe_fd[0], notes, seconds);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(pipe_fd[0]);
    clock_gettime(CLOCK_MONOTONIC, &after);

    result = WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
    if (result == kSkipped && (skip = strchr(notes, '\001')))
        printf("ok %d - %s # SKIP %.*s\n", number, test->claim, (int)strcspn(skip + 1, "\n"),
               skip + 1);
    else
        printf("%sok %d - %s\n", result == kPassed && ended ? "" : "not ", number, test->claim);
    print_notes(notes);
    if (!ended)
        printf("# %s: not ended after %d s\n", test->id, seconds);
    else if (WIFSIGNALED(status))
        printf("# %s: killed by signal %d (%s)\n", test->id, WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    else if (result != kPassed && result != kSkipped)
        printf("# %s\n", test->id);
    if (times || after.tv_sec - before.tv_sec >= 10)
        printf("# %s: took %ld ms\n", test->id,
               (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000);
    return ended && (result == kPassed || result == kSkipped) ? result : kFailed;
}

static int usage(const char *name)
{
    printf("usage: %s [--list] [--only TEXT] [--fixtures-only] [--times] "
           "[--timeout SECONDS]\n",
           name);
    return 2;
}

int ktap_main(int argc, char **argv, void (*set_up)(bool fixtures_only))
{
    const char *only = NULL;
    bool list = false, fixtures_only = false;
    int seconds = 300, count = 0, number = 0, failed = 0, skipped = 0;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list"))
            list = true;
        else if (!strcmp(argv[i], "--times"))
            times = true;
        else if (!strcmp(argv[i], "--fixtures-only"))
            fixtures_only = true;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--timeout") && i + 1 < argc)
            seconds = atoi(argv[++i]);
        else
            return usage(argv[0]);
    }
    *last_test = NULL;
    for (struct ktap_test **t = &first_test; *t;) {
        if ((only && !strstr((*t)->id, only) && !strstr((*t)->claim, only)) ||
            (fixtures_only && (*t)->kind != KTAP_FIXTURE)) {
            *t = (*t)->next;
            continue;
        }
        if (list)
            printf("%s: %s\n", (*t)->id, (*t)->claim);
        count++;
        t = &(*t)->next;
    }
    if (list)
        return 0;
    if (!count) {
        fprintf(stderr, "%s: no such test\n", argv[0]);
        return 2;
    }
    set_up(fixtures_only);
    printf("TAP version 13\n1..%d\n", count);
    for (struct ktap_test *t = first_test; t; t = t->next) {
        int result = ktap_run(t, ++number, seconds);

        failed += result == kFailed;
        skipped += result == kSkipped;
    }
    printf("# passed %d, failed %d, skipped %d\n", count - failed - skipped, failed, skipped);
    return failed ? 1 : 0;
}
