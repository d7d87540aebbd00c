/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of this program, of libzcm and the C library, and of the vdso; all other code is MPI's. */
enum { MOST_RANGES = 64 };
enum owner { PROGRAM, LAYER, CLOCK, MPI };
struct range {
    unsigned long from, to;
    enum owner whose;
};

struct shared {
    atomic_int may_trace, is_ready;
    struct steps last;
};
static struct shared *shared;

/* ---- the rank ---- */

/* The tracer is told by the breakpoint, and sees the address of the second function. */
__attribute__((noinline)) void steps_begin(void)
{
    __asm__ volatile("int3" ::: "memory");
}
__attribute__((noinline)) void steps_end(void)
{
    __asm__ volatile("" ::: "memory");
}

const struct steps *steps_last(void)
{
    return &shared->last;
}

/* ---- the tracer ---- */

static pid_t traced;
static struct range ranges[MOST_RANGES];
static int range_count;

static void die(const char *what)
{
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    kill(traced, SIGKILL);
    _exit(1);
}

/* Libraries come and go while MPI is initialised, so this is looked up at each call. */
static void read_ranges(const char *program)
{
    char name[64], line[4352], path[4096];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)traced);
    FILE *maps = fopen(name, "r");
    if (!maps)
        die(name);
    range_count = 0;
    while (range_count < MOST_RANGES && fgets(line, sizeof line, maps)) {
        struct range one;
        char access[8];
        *path = '\0';
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4095s", &one.from, &one.to, access, path) < 3 ||
            access[2] != 'x')
            continue;
        const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
        if (strcmp(path, program) == 0)
            one.whose = PROGRAM;
        else if (strcmp(file, "[vdso]") == 0)
            one.whose = CLOCK;
        else if (strncmp(file, "libzcm", 6) == 0 || strncmp(file, "libc.", 5) == 0 ||
                 strncmp(file, "libstdc++", 9) == 0 || strncmp(file, "ld-linux", 8) == 0)
            one.whose = LAYER;
        else
            continue;
        ranges[range_count++] = one;
    }
    fclose(maps);
}

static enum owner owner_of(unsigned long address)
{
    for (int i = 0; i < range_count; i++)
        if (address >= ranges[i].from && address < ranges[i].to)
            return ranges[i].whose;
    return MPI;
}

static long word_at(unsigned long address)
{
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, traced, (void *)address, NULL);
    if (errno != 0)
        die("PTRACE_PEEKDATA");
    return word;
}

/* Lets it run, or takes a step, until it stops by a trap. Other signals are passed on. */
static struct user_regs_struct next_trap(int request)
{
    struct user_regs_struct registers;
    long signal = 0;
    for (;;) {
        int status;
        if (ptrace(request, traced, NULL, (void *)signal) != 0 ||
            waitpid(traced, &status, __WALL) != traced)
            die("ptrace");
        if (WIFEXITED(status) || WIFSIGNALED(status))
            _exit(0);
        signal = WSTOPSIG(status);
        if (signal == SIGTRAP && status >> 16 == 0)
            break;
        if (signal == SIGTRAP || status >> 16 != 0)
            signal = 0;
    }
    if (ptrace(PTRACE_GETREGS, traced, NULL, &registers) != 0)
        die("PTRACE_GETREGS");
    return registers;
}

/* A function of MPI has just been called, or jumped to: until it has returned. */
static struct user_regs_struct after_function(struct user_regs_struct now)
{
    const unsigned long back = (unsigned long)word_at(now.rsp), stack = now.rsp;
    const long code = word_at(back);
    if (ptrace(PTRACE_POKETEXT, traced, (void *)back, (void *)((code & ~0xffL) | 0xcc)) != 0)
        die("PTRACE_POKETEXT");
    do {
        now = next_trap(PTRACE_CONT);
    } while (now.rip != back + 1 || now.rsp <= stack);
    now.rip = back;
    if (ptrace(PTRACE_POKETEXT, traced, (void *)back, (void *)code) != 0 ||
        ptrace(PTRACE_SETREGS, traced, NULL, &now) != 0)
        die("PTRACE_SETREGS");
    return now;
}

static void step_through(const char *program)
{
    struct user_regs_struct now;
    struct steps *found = &shared->last;
    read_ranges(program);
    found->count = found->clock = 0;
    for (now = next_trap(PTRACE_SINGLESTEP); now.rip != (unsigned long)&steps_end;
         now = next_trap(PTRACE_SINGLESTEP)) {
        while (owner_of(now.rip) == MPI)
            now = after_function(now);
        if (owner_of(now.rip) == CLOCK)
            found->clock++;
        if (owner_of(now.rip) != LAYER)
            continue;
        if (found->count < STEPS_NOTED)
            found->at[found->count] = now.rip;
        found->count++;
    }
}

static void trace(void)
{
    char program[4096];
    int status;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        die("/proc/self/exe");
    program[length] = '\0';
    while (!shared->may_trace)
        usleep(1000);
    if (ptrace(PTRACE_SEIZE, traced, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, traced, NULL, NULL) != 0 ||
        waitpid(traced, &status, __WALL) != traced)
        die("this process cannot be traced");
    shared->is_ready = 1;
    for (;;) {
        next_trap(PTRACE_CONT);
        step_through(program);
    }
}

void steps_open(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("steps: mmap");
        exit(1);
    }
    traced = getpid();
    const pid_t tracer = fork();
    if (tracer < 0) {
        perror("steps: fork");
        exit(1);
    }
    if (tracer == 0)
        trace();
    prctl(PR_SET_PTRACER, tracer, 0, 0, 0); /* where a child may not trace its parent unasked */
    shared->may_trace = 1;
    while (!shared->is_ready)
        usleep(1000);
}
