/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that waits in MPI gives way if, and only if, processes share processors: those that
 * each is bound to count, not the processors of one against the ranks of all. The landing thread
 * runs if, and only if, each rank of the host could have a processor of those that it is bound to.
 *
 *   bound apart [multiple]     each rank has a processor of its own: while one waits for the
 *                              other it never offers it, nor asks whether another wants it
 *   bound together [multiple]  all have the same one: it does
 *   bound spawn apart          the same of a process and one that it has spawned
 *   bound spawn together
 *   bound in-pairs             each has two of its own: there is one to spare
 *
 * Where the landing thread runs, what comes while a process computes lands.
 *
 * A third argument is the level of threads; of a spawned process the first is "child".
 */
#include "counter.h"
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { LATE_MS = 200, ROUNDS = 3, LARGE = 1 << 20, PATIENCE_S = 30 };

static _Thread_local long asked, offered;

/* Those of libc, which MPI calls. */
int getrusage(__rusage_who_t who, struct rusage *usage)
{
    asked++;
    return (int)syscall(SYS_getrusage, who, usage);
}

int sched_yield(void)
{
    offered++;
    return (int)syscall(SYS_sched_yield);
}

/* Those of the name that the landing thread has. */
static int landing_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks, "no /proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (comm && fgets(name, sizeof name, comm))
            count += strcmp(name, "zc-landing\n") == 0;
        if (comm)
            fclose(comm);
    }
    closedir(tasks);
    return count;
}

/* By its name, and by what it does: a large message comes while rank 1 computes. */
static void check_landing(int expected)
{
    char *buf = check_malloc(LARGE);
    struct counter landed = counter_open("landed_by_thread");
    /* It names itself, soon after MPI_Init. */
    for (int ms = 0; landing_threads() < expected && ms < PATIENCE_S * 1000; ms++)
        check_sleep_ms(1);
    CHECK(landing_threads() == expected, "%d landing threads, not %d", landing_threads(), expected);
    /* A barrier would not do: the message may come while rank 1 is still in it, and lands there. */
    if (check_rank == 0) {
        MPI_Request request;
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pattern_fill(buf, LARGE, check_seed);
        MPI_Isend(buf, LARGE, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        if (expected)
            CHECK(counter_await(&landed, 1, PATIENCE_S), "nothing landed in %d s", PATIENCE_S);
        else
            check_sleep_ms(LATE_MS);
        CHECK(expected || counter_read(&landed) == 0, "a message landed by a thread");
        MPI_Recv(buf, LARGE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(buf, LARGE, check_seed, "large message");
    }
    counter_close(&landed);
    free(buf);
}

/* Is there a processor for each rank of this host? */
static int expect_landing(int shared)
{
    const char *ranks = getenv("MPI_LOCALNRANKS");
    return !shared || (ranks && atoi(ranks) == 1);
}

/* To the processor number @which of those that there are; false: there is only one. */
static int bind_to(int which)
{
    cpu_set_t set, one;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "which processors there are is not known");
    if (CPU_COUNT(&set) < 2)
        return 0;
    CPU_ZERO(&one);
    for (int p = 0, seen = 0; p < CPU_SETSIZE; p++)
        if (CPU_ISSET(p, &set) && seen++ == which % CPU_COUNT(&set))
            CPU_SET(p, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cannot bind to processor %d", which);
    return 1;
}

/* To the two that are this rank's among those of its host; 0: there are not so many. */
static int bind_to_pair(void)
{
    const char *number = getenv("MPI_LOCALRANKID"), *ranks = getenv("MPI_LOCALNRANKS");
    cpu_set_t set, pair;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "which processors there are is not known");
    if (!number || !ranks || CPU_COUNT(&set) < 2 * atoi(ranks))
        return 0;
    CPU_ZERO(&pair);
    for (int p = 0, seen = 0; p < CPU_SETSIZE; p++)
        if (CPU_ISSET(p, &set) && seen++ / 2 == atoi(number))
            CPU_SET(p, &pair);
    CHECK(sched_setaffinity(0, sizeof pair, &pair) == 0, "cannot bind to two processors");
    return 1;
}

static void wait_for(int rank, MPI_Comm comm, int apart, int multiple)
{
    for (int round = 0; round < ROUNDS; round++) {
        asked = offered = 0;
        MPI_Recv(NULL, 0, MPI_BYTE, rank, 0, comm, MPI_STATUS_IGNORE);
        if (apart) {
            CHECK(asked == 0, "asked %ld times whether another wants its processor", asked);
            CHECK(offered == 0, "offered its processor %ld times", offered);
        } else if (multiple) {
            CHECK(offered > 0, "kept its processor");
        } else {
            CHECK(asked + offered > 0, "did not ask whether another wants its processor");
        }
    }
}

static void be_late(int rank, MPI_Comm comm)
{
    for (int round = 0; round < ROUNDS; round++) {
        check_sleep_ms(LATE_MS);
        MPI_Send(NULL, 0, MPI_BYTE, rank, 0, comm);
    }
}

static void be_child(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    CHECK(parent != MPI_COMM_NULL, "no parent");
    be_late(0, parent);
    MPI_Comm_disconnect(&parent);
}

static void spawn(char *program, char *how)
{
    char *arguments[] = {"child", how, NULL};
    MPI_Comm child;
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                   MPI_ERRCODES_IGNORE);
    wait_for(0, child, strcmp(how, "apart") == 0, 0);
    MPI_Comm_disconnect(&child);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1, "how?");
    const char *number = getenv("PMI_RANK");
    const int child = strcmp(argv[1], "child") == 0, spawns = strcmp(argv[1], "spawn") == 0;
    char *how = argv[child || spawns ? 2 : 1];
    const int apart = strcmp(how, "apart") == 0;
    const int multiple = !child && !spawns && argc > 2;
    const int in_pairs = strcmp(how, "in-pairs") == 0;
    const int enough = in_pairs ? bind_to_pair()
                                : bind_to(!apart   ? 0
                                          : child  ? 1
                                          : number ? atoi(number)
                                                   : 0);

    check_init(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (!enough)
        check_skip(in_pairs ? "fewer than two processors for each rank" : "one processor");
    if (!child && !spawns)
        check_landing(expect_landing(!apart && !in_pairs));
    if (in_pairs)
        return check_finish();
    if (child)
        be_child();
    else if (spawns)
        spawn(argv[0], how);
    else if (check_rank == 0)
        be_late(1, MPI_COMM_WORLD);
    else
        wait_for(0, MPI_COMM_WORLD, apart, multiple);
    return check_finish();
}
