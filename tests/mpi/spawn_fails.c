/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is spawned and does not begin: an error of MPI_Comm_spawn.
 *
 *   spawn_fails kinds       what cannot be executed, or ends before or in MPI_Init, alone or beside
 * others: an error of its class, of which nothing is left, and what is spawned next begins
 *   spawn_fails rounds N    a program that is not there, N times: nothing grows
 *   spawn_fails no-host H   a host that is not there, alone and beside the host H: nothing grows
 *   spawn_fails fatal       a program that is not there, without an error handler
 *   spawn_fails waits FILE  a child does not call MPI_Init until a parent, which is in
 * MPI_Comm_spawn, has fetched what it is sent
 *   spawn_fails names       a thread publishes names while another one spawns
 */
#include "check.h"
#include "launcher.h"
#include <pthread.h>
#include <signal.h>

#define NO_HOST "zc-is-no-host.invalid"

enum {
    LARGE = 4 << 20,
    TAG = 9,
    CHILDREN = 2,
    IN_TIME_S = 30,
    SPAWNS = 10,
    FIRST_ROUNDS = 20,
    HOSTS_TRIED = 6,
    TOO_LONG = 2000
};
enum { SLACK_KIB = 256, KIB_PER_SPAWN = 2 };

static char *program;

/* ---- the children ---- */

static void touch(const char *file, const char *suffix)
{
    char name[4096];
    snprintf(name, sizeof name, "%s%s", file, suffix);
    FILE *made = fopen(name, "w");
    CHECK(made, "cannot make %s", name);
    fclose(made);
}

static int wait_for(const char *file, const char *suffix)
{
    char name[4096];
    const time_t end = time(NULL) + IN_TIME_S;
    snprintf(name, sizeof name, "%s%s", file, suffix);
    while (access(name, F_OK) != 0 && time(NULL) < end)
        check_sleep_ms(1);
    return access(name, F_OK) == 0;
}

/* As MPI_Init() does at first. */
static void begin_init(void)
{
    static const char words[] = "cmd=init pmi_version=1 pmi_subversion=1\n";
    char answer[256];
    const int pmi = atoi(getenv("PMI_FD"));
    CHECK(write(pmi, words, sizeof words - 1) == sizeof words - 1, "PMI");
    CHECK(read(pmi, answer, sizeof answer) > 0, "PMI does not answer");
}

static void before_init(char **argv)
{
    const char *role = argv[2], *rank = getenv("PMI_RANK");
    const int is_first = rank && !strcmp(rank, "0");
    if (!strcmp(role, "exits in it") || (!strcmp(role, "one exits in it") && is_first)) {
        begin_init();
        _exit(3);
    }
    if (!strcmp(role, "exits") || (!strcmp(role, "one exits") && is_first))
        _exit(3);
    if (!strcmp(role, "dies"))
        raise(SIGKILL);
    if (!strcmp(role, "waits")) {
        touch(argv[3], ".begun");
        if (!wait_for(argv[3], ".sent"))
            _exit(4);
    }
}

/** meet - a word of each process of both worlds, @others of which are of the other one */
static void meet(MPI_Comm other, int is_child, int others)
{
    MPI_Comm all;
    int one = 1, sum = 0;
    MPI_Intercomm_merge(other, is_child, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(others < 0 || sum == check_ranks + others, "%d processes together", sum);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
}

/* ---- the parents ---- */

/** check_failure - each process knows that none of @count is there */
static void check_failure(const char *what, int error, const int *errors, int count)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    CHECK(class == MPI_ERR_SPAWN, "%s: error class %d", what, class);
    for (int i = 0; i < count; i++) {
        MPI_Error_class(errors[i], &class);
        CHECK(class == MPI_ERR_SPAWN, "%s: process %d has error class %d", what, i, class);
    }
}

/* As all; and as each alone, which wants no error codes. */
static void spawn_in_vain(const char *command, const char *role, MPI_Info info)
{
    char *arguments[] = {(char *)"child", (char *)role, NULL};
    int errors[CHILDREN] = {0};
    MPI_Comm children;
    int error =
        MPI_Comm_spawn(command, arguments, CHILDREN, info, 0, MPI_COMM_WORLD, &children, errors);
    check_failure(role, error, errors, CHILDREN);
    error = MPI_Comm_spawn(command, arguments, 1, info, 0, MPI_COMM_SELF, &children,
                           MPI_ERRCODES_IGNORE);
    check_failure(role, error, NULL, 0);
}

/* One of two commands, @bad, is @command with @info. */
static void spawn_half_in_vain(int bad, char *command, MPI_Info info)
{
    char *arguments[] = {(char *)"child", (char *)"meets", NULL}, **both[] = {arguments, arguments};
    char *commands[] = {program, program};
    const int counts[] = {CHILDREN, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int errors[CHILDREN + 1] = {0};
    MPI_Comm children;
    commands[bad] = command;
    infos[bad] = info;
    const int error = MPI_Comm_spawn_multiple(2, commands, both, counts, infos, 0, MPI_COMM_WORLD,
                                              &children, errors);
    check_failure(bad ? "the second command" : "the first command", error, errors, CHILDREN + 1);
}

static void spawn_well(void)
{
    char *arguments[] = {(char *)"child", (char *)"meets", NULL};
    int errors[CHILDREN];
    MPI_Comm children;
    CHECK(MPI_Comm_spawn(program, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                         errors) == MPI_SUCCESS,
          "spawn");
    for (int i = 0; i < CHILDREN; i++)
        CHECK(errors[i] == MPI_SUCCESS, "child %d: error %d", i, errors[i]);
    meet(children, 0, CHILDREN);
}

/* More than a line for the process manager has room for: of an argument, of what is told beside it,
 * and of that of the second command only. What is spawned next begins. */
static void spawn_what_is_too_long(void)
{
    char argument[TOO_LONG + 1], value[MPI_MAX_INFO_VAL];
    MPI_Info info;
    memset(argument, 'a', sizeof argument);
    memset(value, 'v', sizeof value);
    argument[TOO_LONG] = value[MPI_MAX_INFO_VAL - 1] = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "zc-is-no-key", value);
    spawn_in_vain(program, argument, MPI_INFO_NULL);
    spawn_well();
    spawn_in_vain(program, "meets", info);
    spawn_well();
    spawn_half_in_vain(1, program, info);
    spawn_well();
    MPI_Info_free(&info);
}

static struct launcher look_together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const struct launcher it = launcher_look();
    MPI_Barrier(MPI_COMM_WORLD);
    return it;
}

/* What has been ended may be there for a moment. Of the last spawn, mpiexec may not have waited for
 * the proxies before the next one. */
static void check_launcher(const struct launcher *before)
{
    struct launcher now = look_together();
    const double start = MPI_Wtime();
    while ((now.descriptors > before->descriptors || now.processes > before->processes) &&
           MPI_Wtime() - start < IN_TIME_S) {
        check_sleep_ms(10);
        now = launcher_look();
    }
    if (check_rank == 0)
        printf("# mpiexec has %d descriptors, then %d, and %d processes, then %d\n",
               before->descriptors, now.descriptors, before->processes, now.processes);
    CHECK(now.descriptors <= before->descriptors, "mpiexec has %d descriptors, and had %d",
          now.descriptors, before->descriptors);
    CHECK(now.processes <= before->processes, "below mpiexec are %d processes, and were %d",
          now.processes, before->processes);
    CHECK(now.ended <= before->ended + CHILDREN,
          "mpiexec has not waited for %d processes, and not for %d", now.ended, before->ended);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of each of @spawns mpiexec keeps some words. */
static void check_memory_of_launcher(const struct launcher *before, int spawns)
{
    const struct launcher now = look_together();
    if (check_rank == 0)
        printf("# mpiexec has %ld KiB, and after %d spawns %ld\n", before->memory, spawns,
               now.memory);
    CHECK(now.memory <= before->memory + SLACK_KIB + spawns * KIB_PER_SPAWN,
          "mpiexec has %ld KiB after %d spawns, and had %ld", now.memory, spawns, before->memory);
}

static void kinds(void)
{
    static const char *const roles[] = {"exits", "dies", "one exits", "exits in it",
                                        "one exits in it"};
    const struct launcher before = look_together();
    spawn_in_vain("./zc-is-not-there", "not there", MPI_INFO_NULL);
    spawn_well();
    spawn_in_vain("zc-is-in-no-folder", "in no folder", MPI_INFO_NULL);
    spawn_in_vain("/etc/passwd", "no program", MPI_INFO_NULL);
    spawn_in_vain("/", "a folder", MPI_INFO_NULL);
    spawn_half_in_vain(0, (char *)"./zc-is-not-there", MPI_INFO_NULL);
    spawn_half_in_vain(1, (char *)"./zc-is-not-there", MPI_INFO_NULL);
    spawn_what_is_too_long();
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        spawn_in_vain(program, roles[i], MPI_INFO_NULL);
    check_launcher(&before);
    spawn_well();
}

static void spawn_nothing(int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Comm children;
        const int error = MPI_Comm_spawn("./zc-is-not-there", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                         MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        check_failure("a round", error, NULL, 0);
    }
}

/* The first ones make what the others need, too. */
static void rounds(int count)
{
    spawn_nothing(FIRST_ROUNDS);
    const struct launcher before = look_together();
    const int descriptors = entries_of("/proc/self/fd");
    const long memory = memory_of(getpid());
    spawn_nothing(count);
    check_launcher(&before);
    check_memory_of_launcher(&before, count);
    CHECK(entries_of("/proc/self/fd") <= descriptors, "%d descriptors, and there were %d",
          entries_of("/proc/self/fd"), descriptors);
    CHECK(memory_of(getpid()) <= memory + SLACK_KIB, "%ld KiB, and there were %ld",
          memory_of(getpid()), memory);
    spawn_well();
}

/* What mpiexec is to start there has all of the environment in it. */
static void no_host(const char *host)
{
    struct launcher before;
    char both[256];
    MPI_Info info;
    snprintf(both, sizeof both, "%s,%s", NO_HOST, host);
    MPI_Info_create(&info);
    for (int i = 0; i < HOSTS_TRIED; i++) {
        if (i == 1)
            before = look_together();
        MPI_Info_set(info, "host", NO_HOST);
        spawn_in_vain(program, "no host", info);
        MPI_Info_set(info, "host", both);
        spawn_in_vain(program, "one host of two", info);
    }
    MPI_Info_free(&info);
    check_launcher(&before);
    check_memory_of_launcher(&before, 4 * (HOSTS_TRIED - 1));
    spawn_well();
}

static void fatal(void)
{
    MPI_Comm children;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_spawn("./zc-is-not-there", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                   &children, MPI_ERRCODES_IGNORE);
    CHECK(0, "it goes on");
}

static void waits(const char *file)
{
    char *arguments[] = {(char *)"child", (char *)"waits", (char *)file, NULL};
    char *buf = check_malloc(LARGE);
    MPI_Request request;
    MPI_Comm child;
    if (check_rank == 0) {
        MPI_Irecv(buf, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                             MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
              "the child has waited in vain");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_content(buf, LARGE, 7, "what came meanwhile");
        MPI_Comm_disconnect(&child);
    } else if (check_rank == 1) {
        pattern_fill(buf, LARGE, 7);
        CHECK(wait_for(file, ".begun"), "no child");
        MPI_Ssend(buf, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        touch(file, ".sent");
    }
    free(buf);
}

static volatile int spawns_are_over;

static void *publish(void *unused)
{
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME], name[64];
    long published = 0;
    snprintf(name, sizeof name, "zc-spawn-fails-%d", (int)getpid());
    MPI_Open_port(MPI_INFO_NULL, port);
    while (!spawns_are_over || published == 0) {
        CHECK(MPI_Publish_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS, "publish");
        CHECK(MPI_Lookup_name(name, MPI_INFO_NULL, found) == MPI_SUCCESS, "look up");
        CHECK(!strcmp(found, port), "the port is %s, and was %s", found, port);
        CHECK(MPI_Unpublish_name(name, MPI_INFO_NULL, port) == MPI_SUCCESS, "unpublish");
        published++;
    }
    MPI_Close_port(port);
    return unused;
}

static void names(void)
{
    char *arguments[] = {(char *)"child", (char *)"meets", NULL};
    pthread_t publisher;
    MPI_Comm children;
    CHECK(pthread_create(&publisher, NULL, publish, NULL) == 0, "thread");
    for (int i = 0; i < SPAWNS; i++) {
        CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                             MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
              "spawn %d", i);
        meet(children, 0, -1);
    }
    spawns_are_over = 1;
    pthread_join(publisher, NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    const char *what = argc > 1 ? argv[1] : "kinds";
    if (argc > 2 && !strcmp(what, "child"))
        before_init(argv);
    check_init(&argc, &argv, strcmp(what, "names") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    program = argv[0];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (!strcmp(argv[2], "waits"))
            MPI_Comm_disconnect(&parent);
        else
            meet(parent, 1, -1);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (!strcmp(what, "kinds"))
        kinds();
    else if (!strcmp(what, "rounds"))
        rounds(atoi(argv[2]));
    else if (!strcmp(what, "no-host"))
        no_host(argv[2]);
    else if (!strcmp(what, "fatal"))
        fatal();
    else if (!strcmp(what, "waits"))
        waits(argv[2]);
    else if (!strcmp(what, "names"))
        names();
    else
        CHECK(0, "no such test: %s", what);
    return check_finish();
}
