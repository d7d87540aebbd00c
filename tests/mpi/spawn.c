/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of another MPI_COMM_WORLD.
 *
 *   spawn exchange     spawn two, exchange late and early messages, merge, disconnect
 *   spawn elsewhere    two on a host of which no parent is, the first of them late
 *   spawn multiple     two commands with different arguments
 *   spawn arguments    a command with 3000 arguments
 *   spawn tree         a spawned process spawns
 *   spawn rounds N     spawn one and disconnect, N times: nothing grows
 *   spawn connect N    ports within one job, N connections: nothing grows
 *   spawn reconnect N  two worlds part and meet again, N times: a connection begins while
 *                      the one before is ending
 *   spawn closed-port  connecting to a closed port is an error, in time
 *   spawn ports        three processes with a port each: requests that come early, late, or are
 *                      given up are of no other
 *   spawn lag          one side of a connection gives it up late, when the next has begun
 *   spawn held         a thread connects to a process that another thread parts from meanwhile
 *   spawn withdraw     a client gives up in the moment in which it is accepted; the server takes
 *                      its next request
 *   spawn died         a client ends instead of answering the server's reply, or of withdrawing a
 *                      request that is accepted later; the server takes its next request
 *   spawn stopped      a client is stopped instead: the server waits for it in its time only
 *   spawn given-up     the last communicator to a process ends while MPI_Intercomm_create, which
 *                      has found it, waits for others
 *   spawn crowd H1 H2  with LANDING_THREAD=auto the landing thread of a parent on H1, with one
 *                      processor, rests while it has a child on that, but not with one on H2
 *   spawn leave        children finalize while their parents keep the communicators
 *   spawn exit         a child exits without having finalized, which ends no other process
 *   spawn outlive      a child is killed when its parents have long finalized: the launcher
 *                      tells of it, and is not hurt
 */
#include "check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <libgen.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

enum { LARGE = 4 << 20, TAG = 9, MANY = 3000 };

static void late_exchange(MPI_Comm comm, int peer, int first, uint64_t seed)
{
    char *buf = check_malloc(LARGE);
    for (int i = 0; i < 6; i++) {
        const int bytes = i % 2 ? LARGE : 100;
        const uint64_t content = seed + (uint64_t)i;
        for (int turn = 0; turn < 2; turn++) {
            if (turn == first) {
                pattern_fill(buf, (size_t)bytes, content);
                MPI_Send(buf, bytes, MPI_BYTE, peer, TAG, comm);
            } else {
                MPI_Status status;
                memset(buf, 0, (size_t)bytes);
                check_sleep_ms(5);
                MPI_Probe(MPI_ANY_SOURCE, TAG, comm, &status);
                CHECK(status.MPI_SOURCE == peer, "from %d", status.MPI_SOURCE);
                MPI_Recv(buf, bytes, MPI_BYTE, peer, TAG, comm, &status);
                check_content(buf, (size_t)bytes, content, "message between worlds");
            }
        }
    }
    free(buf);
}

/* Processes of one host are split off together, of whichever world, and share memory. */
static void by_host(MPI_Comm comm)
{
    int size, here = 0, sharing, rank;
    char name[256] = "";
    MPI_Comm host;
    MPI_Win window;
    int *own, *other;
    MPI_Comm_size(comm, &size);
    gethostname(name, sizeof name - 1);
    char *names = check_malloc((size_t)size * sizeof name);
    MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, comm);
    for (int i = 0; i < size; i++)
        here += !strcmp(name, names + (size_t)i * sizeof name);
    free(names);

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &sharing);
    MPI_Comm_rank(host, &rank);
    if (getenv("MPIR_CVAR_NOLOCAL")) /* every process is to pass for a host of its own */
        here = 1;
    CHECK(sharing == here, "%d processes on %s, %d share memory", here, name, sharing);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, host, &own, &window);
    MPI_Win_fence(0, window);
    *own = 100 + rank;
    MPI_Win_fence(0, window);
    for (int i = 0; i < sharing; i++) {
        MPI_Aint bytes;
        int unit;
        MPI_Win_shared_query(window, i, &bytes, &unit, &other);
        CHECK(*other == 100 + i, "shared memory of process %d holds %d", i, *other);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&host);
}

static void all_together(MPI_Comm comm, int expected)
{
    int rank, size, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK(size == expected, "%d processes together, not %d", size, expected);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2, "sum of ranks is %d", sum);
    by_host(comm);

    char *buf = check_malloc(LARGE);
    for (int root = 0; root < size; root++) {
        if (rank == root)
            pattern_fill(buf, LARGE, (uint64_t)root);
        MPI_Bcast(buf, LARGE, MPI_BYTE, root, comm);
        check_content(buf, LARGE, (uint64_t)root, "broadcast over two worlds");
    }
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    char *out = check_malloc(LARGE);
    pattern_fill(out, LARGE, 100u + (uint64_t)rank);
    MPI_Isend(out, LARGE, MPI_BYTE, right, TAG, comm, &request);
    check_sleep_ms(10);
    MPI_Recv(buf, LARGE, MPI_BYTE, left, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_content(buf, LARGE, 100u + (uint64_t)left, "ring over two worlds");
    free(out);
    free(buf);
}

static void spawn_with(MPI_Info info, const char *program, const char *role, int count,
                       MPI_Comm over, MPI_Comm *out)
{
    char *arguments[] = {(char *)"child", (char *)role, NULL};
    int errors[8];
    CHECK(MPI_Comm_spawn(program, arguments, count, info, 0, over, out, errors) == MPI_SUCCESS,
          "spawn");
    for (int i = 0; i < count; i++)
        CHECK(errors[i] == MPI_SUCCESS, "child %d: error %d", i, errors[i]);
}

static void spawn(const char *program, const char *role, int count, MPI_Comm over, MPI_Comm *out)
{
    spawn_with(MPI_INFO_NULL, program, role, count, over, out);
}

static void exchange(const char *program)
{
    MPI_Comm children, merged, again;
    int remote;
    spawn(program, "exchange", 2, MPI_COMM_WORLD, &children);
    MPI_Comm_remote_size(children, &remote);
    CHECK(remote == 2, "%d children", remote);
    if (check_rank < 2)
        late_exchange(children, check_rank, 0, 1000u * (unsigned)check_rank);
    MPI_Intercomm_merge(children, 0, &merged);
    all_together(merged, check_ranks + 2);
    MPI_Comm_dup(merged, &again);
    MPI_Comm_free(&merged);
    all_together(again, check_ranks + 2);
    MPI_Comm_free(&again);
    MPI_Comm_disconnect(&children);
    CHECK(children == MPI_COMM_NULL, "still connected");
}

static void multiple(const char *program)
{
    char *first[] = {(char *)"child", (char *)"merge", NULL};
    char *second[] = {(char *)"child", (char *)"merge", (char *)"second", NULL};
    char folder[4096], name[4096];
    snprintf(folder, sizeof folder, "%s", program);
    snprintf(name, sizeof name, "%s", program);
    /* The folder is that of the first alone. */
    char *commands[] = {basename(name), (char *)program}, **arguments[] = {first, second};
    const int counts[] = {1, 2};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Info_create(&infos[0]);
    MPI_Info_set(infos[0], "path", dirname(folder));
    int errors[3], remote;
    MPI_Comm children, merged;
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children,
                            errors);
    MPI_Info_free(&infos[0]);
    MPI_Comm_remote_size(children, &remote);
    CHECK(remote == 3, "%d children", remote);
    MPI_Intercomm_merge(children, 0, &merged);
    all_together(merged, check_ranks + 3);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&children);
}

static void spawn_and_merge(const char *program, const char *what, int number)
{
    MPI_Comm children, merged;
    spawn(program, what, number, MPI_COMM_WORLD, &children);
    MPI_Intercomm_merge(children, 0, &merged);
    all_together(merged, check_ranks + number);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&children);
}

/* The launcher starts both children on a host of which no parent is, the first one late. The other
 * has to wait for what it gives. */
static void elsewhere(const char *program)
{
    spawn_and_merge(program, "elsewhere", 2);
}

static void be_late(void)
{
    const char *own = getenv("PMI_RANK");
    if (own && !strcmp(own, "0"))
        check_sleep_ms(300);
}

static void many_arguments(const char *program)
{
    char *arguments[MANY + 1] = {"child", "many"}, numbers[MANY][8];
    MPI_Comm children;
    for (int i = 2; i < MANY; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        arguments[i] = numbers[i];
    }
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&children);
}

/** check_arguments - of a child of that */
static void check_arguments(int argc, char **argv)
{
    CHECK(argc == MANY + 1, "%d arguments", argc - 1);
    for (int i = 3; i < argc; i++)
        CHECK(atoi(argv[i]) == i - 1, "argument %d is '%s'", i, argv[i]);
}

/* The child's own child is not in it, but must not be in its way. */
static void tree(const char *program)
{
    spawn_and_merge(program, "tree", 1);
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    CHECK(dir, "/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The last connections may still be closing, which takes progress. */
static int settled_descriptors(int bound)
{
    int n, flag;
    for (int i = 0; (n = open_descriptors()) > bound && i < 300; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        check_sleep_ms(10);
    }
    return n;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*s %ld", &pages) == 1, "/proc/self/statm");
    fclose(file);
    return pages * 4;
}

/* Of the mpiexec that started us, if it is an ancestor of ours: resident memory; or 0. */
static long launcher_kib(void)
{
    for (long pid = getppid(); pid > 1;) {
        char path[64], line[256], name[64] = "";
        long parent = 0, kib = 0;
        snprintf(path, sizeof path, "/proc/%ld/status", pid);
        FILE *file = fopen(path, "r");
        if (!file)
            return 0;
        while (fgets(line, sizeof line, file)) {
            sscanf(line, "Name: %63s", name);
            sscanf(line, "PPid: %ld", &parent);
            sscanf(line, "VmRSS: %ld", &kib);
        }
        fclose(file);
        if (strstr(name, "mpiexec"))
            return kib;
        pid = parent;
    }
    return 0;
}

/* Measured after a quarter of the rounds, when every pool has its size. */
struct growth {
    int rounds, round, descriptors;
    long kib, bytes, launcher_kib;
};

static long allocated_bytes(void)
{
    const struct mallinfo2 all = mallinfo2();
    return (long)(all.uordblks + all.hblkhd);
}

static void watch(struct growth *g)
{
    if (++g->round == (g->rounds + 3) / 4) {
        g->descriptors = open_descriptors();
        g->kib = resident_kib();
        g->bytes = allocated_bytes();
        g->launcher_kib = launcher_kib();
    } else if (g->round == g->rounds) {
        const int descriptors = settled_descriptors(g->descriptors + 4);
        const long kib = resident_kib(), bytes = allocated_bytes() - g->bytes;
        const int since = g->rounds - (g->rounds + 3) / 4;
        printf("# %d rounds: descriptors %d to %d, resident %ld to %ld KiB, %ld bytes a round\n",
               g->rounds, g->descriptors, descriptors, g->kib, kib, bytes / since);
        CHECK(descriptors <= g->descriptors + 4, "descriptors grow from %d to %d", g->descriptors,
              descriptors);
        /* Half a KiB a round would be 5 MiB in ten thousand. */
        CHECK(kib <= g->kib + 1024 + g->rounds / 2, "memory grows from %ld to %ld KiB", g->kib,
              kib);
        /* UCX keeps some 110 bytes of every peer it has ever had. */
        if (since >= 500)
            CHECK(bytes / since <= 150, "%ld bytes are left of every round", bytes / since);
        if (g->launcher_kib > 0) {
            const long more = launcher_kib() - g->launcher_kib;
            printf("# mpiexec %ld to %ld KiB\n", g->launcher_kib, g->launcher_kib + more);
            CHECK(more <= 1024 + 4L * since, "mpiexec has grown by %ld KiB", more);
        }
    }
}

static void rounds(const char *program, int count)
{
    struct growth growth = {.rounds = count};
    for (int i = 0; i < count; i++) {
        MPI_Comm child;
        int value = i;
        spawn(program, "echo", 1, MPI_COMM_WORLD, &child);
        if (check_rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 0, TAG, child);
            MPI_Recv(&value, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
            CHECK(value == -i, "echo of %d is %d", i, value);
        }
        MPI_Comm_disconnect(&child);
        watch(&growth);
    }
}

static void connections(int count)
{
    char port[MPI_MAX_PORT_NAME];
    struct growth growth = {.rounds = count};
    if (check_rank > 1)
        return;
    for (int i = 0; i < count; i++) {
        MPI_Comm across;
        if (check_rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
            MPI_Close_port(port);
        } else {
            MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
        }
        if (i == 0)
            late_exchange(across, 0, check_rank, 77);
        MPI_Comm_disconnect(&across);
        watch(&growth);
    }
}

/* Nothing, a word between two, or one from each to each. */
static void meet(MPI_Comm across, int round)
{
    int others, mine = round + check_rank, sum = -1, expected = 0;
    MPI_Comm_remote_size(across, &others);
    if (round % 3 == 1 && check_rank == 0) {
        MPI_Sendrecv(&mine, 1, MPI_INT, 0, TAG, &sum, 1, MPI_INT, 0, TAG, across,
                     MPI_STATUS_IGNORE);
        CHECK(sum == round, "%d in round %d", sum, round);
    } else if (round % 3 == 2) {
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, across);
        for (int i = 0; i < others; i++)
            expected += round + i;
        CHECK(sum == expected, "sum of %d instead of %d in round %d", sum, expected, round);
    }
}

static void reconnect(const char *program, int count)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm across;
    spawn(program, "reconnect", 3, MPI_COMM_WORLD, &across);
    if (check_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across);
        MPI_Send(&count, 1, MPI_INT, 0, TAG, across);
    }
    MPI_Comm_disconnect(&across);
    for (int i = 0; i < count; i++) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &across);
        meet(across, i);
        MPI_Comm_disconnect(&across);
    }
    if (check_rank == 0)
        MPI_Close_port(port);
}

static void be_reconnected(MPI_Comm across)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int count = 0;
    if (check_rank == 0) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across, MPI_STATUS_IGNORE);
        MPI_Recv(&count, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_disconnect(&across);
    for (int i = 0; i < count; i++) {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &across);
        meet(across, i);
        MPI_Comm_disconnect(&across);
    }
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Before MPI_Init. */
static void use_one_processor(void)
{
    cpu_set_t set, one;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) < 1; cpu++) {
        if (CPU_ISSET(cpu, &set))
            CPU_SET(cpu, &one);
    }
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

enum { FILE_NAME_BYTES = 64 };

/* Does what the child sends leave it while this process is outside MPI? */
static int lands_outside(MPI_Comm child, int expected, uint64_t content)
{
    char name[FILE_NAME_BYTES] = "/tmp/zc-crowd-XXXXXX";
    struct stat status = {.st_size = 0};
    const double patience = expected ? 10 : 0.5;
    char *buf = check_malloc(LARGE);
    const int fd = mkstemp(name);
    CHECK(fd >= 0, "cannot make %s", name);
    MPI_Send(&content, 1, MPI_UINT64_T, 0, TAG, child);
    MPI_Send(name, sizeof name, MPI_CHAR, 0, TAG, child);
    for (const double start = now_s(); status.st_size == 0 && now_s() - start < patience;) {
        check_sleep_ms(1);
        CHECK(fstat(fd, &status) == 0, "cannot stat %s", name);
    }
    MPI_Recv(buf, LARGE, MPI_BYTE, 0, TAG, child, MPI_STATUS_IGNORE);
    check_content(buf, LARGE, content, "message of a child");
    close(fd);
    unlink(name);
    free(buf);
    return status.st_size > 0;
}

static void send_outside(MPI_Comm parent)
{
    char name[FILE_NAME_BYTES];
    uint64_t content;
    char *buf = check_malloc(LARGE);
    MPI_Recv(&content, 1, MPI_UINT64_T, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Recv(name, sizeof name, MPI_CHAR, 0, TAG, parent, MPI_STATUS_IGNORE);
    pattern_fill(buf, LARGE, content);
    MPI_Send(buf, LARGE, MPI_BYTE, 0, TAG, parent);
    FILE *file = fopen(name, "w");
    CHECK(file && fputs("sent\n", file) >= 0 && fclose(file) == 0, "cannot write %s", name);
    free(buf);
}

static void crowd(const char *program, char **hosts)
{
    for (int round = 0; round < 4; round++) {
        MPI_Comm child;
        MPI_Info info;
        char own[256] = "", other[256];
        MPI_Info_create(&info);
        MPI_Info_set(info, "host", hosts[round % 2]);
        spawn_with(info, program, "crowd", 1, MPI_COMM_WORLD, &child);
        MPI_Info_free(&info);
        gethostname(own, sizeof own - 1);
        MPI_Recv(other, sizeof other, MPI_CHAR, 0, TAG, child, MPI_STATUS_IGNORE);
        CHECK((strcmp(own, other) != 0) == round % 2, "%d: both on %s", round, other);
        const int found = lands_outside(child, round % 2, check_seed + (uint64_t)round);
        CHECK(found == round % 2, "%d: the landing thread %s with a child on %s host", round,
              found ? "works" : "rests", round % 2 ? "another" : "this");
        MPI_Comm_disconnect(&child);
    }
}

static void be_neighbour(MPI_Comm parent)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    MPI_Send(name, sizeof name, MPI_CHAR, 0, TAG, parent);
    send_outside(parent);
    MPI_Comm_disconnect(&parent);
}

static void closed_port(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    if (check_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (check_rank == 1) {
        MPI_Info info;
        MPI_Comm across = MPI_COMM_NULL;
        MPI_Info_create(&info);
        MPI_Info_set(info, "timeout", "2");
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        const double start = MPI_Wtime();
        int error = MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &across), class = 0;
        CHECK(error != MPI_SUCCESS, "connected to a closed port");
        MPI_Error_class(error, &class);
        CHECK(class == MPI_ERR_PORT, "error class %d", class);
        CHECK(MPI_Wtime() - start < 20, "took %.1f s", MPI_Wtime() - start);
        MPI_Info_free(&info);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Which process is at the other end? */
static void expect(MPI_Comm across, int other)
{
    int there = -1;
    MPI_Sendrecv(&check_rank, 1, MPI_INT, 0, TAG, &there, 1, MPI_INT, 0, TAG, across,
                 MPI_STATUS_IGNORE);
    CHECK(there == other, "connected with rank %d instead of %d", there, other);
    MPI_Comm_disconnect(&across);
}

static void open_for(int other, char *port)
{
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, other, TAG, MPI_COMM_WORLD);
}

static void hear_of(int other, char *port)
{
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void accept(const char *port, int other)
{
    MPI_Comm across;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    expect(across, other);
}

static void connect_to(const char *port, int other)
{
    MPI_Comm across;
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    expect(across, other);
}

/* Whether it has been accepted by then. */
static int connect_within(const char *port, int seconds, MPI_Comm *across)
{
    char text[16];
    MPI_Info info;
    snprintf(text, sizeof text, "%d", seconds);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", text);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int error = MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, across);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
    return error == MPI_SUCCESS;
}

static void connect_in_vain(const char *port, int seconds)
{
    MPI_Comm across;
    CHECK(!connect_within(port, seconds, &across), "connected without being accepted");
}

static void ports(void)
{
    char own[MPI_MAX_PORT_NAME] = "", other[MPI_MAX_PORT_NAME] = "";
    CHECK(check_ranks == 3, "3 ranks, not %d", check_ranks);

    /* 2 wants to connect to 0, which connects to 1 first. All ports are their owners' first. */
    if (check_rank == 0) {
        open_for(2, own);
        hear_of(1, other);
        MPI_Recv(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        connect_to(other, 1);
        accept(own, 2);
    } else if (check_rank == 1) {
        open_for(0, own);
        check_sleep_ms(500); /* the request of 2 is there by then */
        MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        accept(own, 0);
    } else {
        hear_of(0, other);
        connect_to(other, 0);
    }
    if (check_rank < 2)
        MPI_Close_port(own);
    MPI_Barrier(MPI_COMM_WORLD);

    /* 2 comes too late, for a port that is closed; 1 for the next one. */
    if (check_rank == 0) {
        open_for(2, own);
        MPI_Close_port(own);
        MPI_Recv(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        open_for(1, own);
        accept(own, 1);
    } else if (check_rank == 1) {
        check_sleep_ms(500);
        MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        hear_of(0, other);
        connect_to(other, 0);
    } else {
        hear_of(0, other);
        connect_in_vain(other, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    /* 2 has given up when 0 accepts. */
    if (check_rank == 0) {
        open_for(2, other);
        MPI_Recv(NULL, 0, MPI_INT, 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(other, MPI_MAX_PORT_NAME, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
        accept(other, 1);
        MPI_Close_port(other);
    } else if (check_rank == 1) {
        hear_of(0, other);
        connect_to(other, 0);
    } else {
        hear_of(0, other);
        connect_in_vain(other, 2);
        MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* More than the connection before it is waited for: LINGER_SECONDS. */
enum { LAG_MS = 1500, LAG_ROUNDS = 3 };

static void lag(const char *program)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across, next;
    spawn(program, "lag", 1, MPI_COMM_SELF, &across);
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across);
    for (int i = 0; i < LAG_ROUNDS; i++) {
        late_exchange(across, 0, 0, (uint64_t)i);
        check_sleep_ms(LAG_MS);
        MPI_Comm_disconnect(&across);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &next);
        across = next;
    }
    late_exchange(across, 0, 0, LAG_ROUNDS);
    MPI_Comm_disconnect(&across);
    MPI_Close_port(port);
}

static void lag_behind(MPI_Comm across)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across, MPI_STATUS_IGNORE);
    for (int i = 0; i <= LAG_ROUNDS; i++) {
        late_exchange(across, 0, 1, (uint64_t)i);
        MPI_Comm_disconnect(&across);
        if (i < LAG_ROUNDS)
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    }
}

static void *connect_meanwhile(void *port)
{
    MPI_Comm across;
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    late_exchange(across, 0, 0, 5);
    MPI_Comm_disconnect(&across);
    return NULL;
}

static void held(const char *program)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across;
    pthread_t thread;
    spawn(program, "held", 1, MPI_COMM_SELF, &across);
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across, MPI_STATUS_IGNORE);
    pthread_create(&thread, NULL, connect_meanwhile, port);
    check_sleep_ms(300);
    MPI_Comm_disconnect(&across);
    pthread_join(thread, NULL);
}

static void be_held(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across;
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, parent);
    MPI_Comm_disconnect(&parent);
    check_sleep_ms(1000);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    late_exchange(across, 0, 1, 5);
    MPI_Comm_disconnect(&across);
    MPI_Close_port(port);
}

/* The server has given up an earlier connection, and the client has not: between taking a request
 * and replying to it the server waits for the end of that one, LINGER_SECONDS (zc_foreign.c). The
 * client's time ends in the middle of this. Where one of them was late it did not: the client tells
 * with its first word when it has given up, and they do the same again. */
enum { WITHDRAW_TIMEOUT_S = 2, WITHDRAW_ACCEPT_MS = 1500, WITHDRAW_ROUNDS = 10 };

static void withdraw(const char *program)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across;
    spawn(program, "withdraw", 1, MPI_COMM_SELF, &across);
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across);
    for (int round = 0, withdrawn = 0; !withdrawn; round++) {
        double gave_up;
        CHECK(round < WITHDRAW_ROUNDS, "no request was withdrawn in %d rounds", round);
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&across);
        check_sleep_ms(WITHDRAW_ACCEPT_MS);
        const double began = now_s();
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
        MPI_Recv(&gave_up, 1, MPI_DOUBLE, 0, TAG, across, MPI_STATUS_IGNORE);
        withdrawn = gave_up > began;
        MPI_Send(&withdrawn, 1, MPI_INT, 0, TAG, across);
    }
    late_exchange(across, 0, 0, 6);
    MPI_Comm_disconnect(&across);
    MPI_Close_port(port);
}

static void be_withdrawing(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across;
    int withdrawn;
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, parent, MPI_STATUS_IGNORE);
    for (;;) {
        double gave_up = 0;
        MPI_Send(NULL, 0, MPI_INT, 0, TAG, parent);
        if (!connect_within(port, WITHDRAW_TIMEOUT_S, &across)) {
            gave_up = now_s();
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
        }
        MPI_Send(&gave_up, 1, MPI_DOUBLE, 0, TAG, across);
        MPI_Recv(&withdrawn, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
        if (withdrawn)
            break;
        MPI_Comm_disconnect(&parent);
        parent = across;
    }
    late_exchange(across, 0, 1, 6);
    MPI_Comm_disconnect(&across);
    MPI_Comm_disconnect(&parent);
}

/* In place of UCX's: libmpi finds this one. A process that is to be struck dies, or stops, instead
 * of sending an answer through a port (MPIDIU_DYNPROC_ANSWER), having said so in a file. */
enum { ANSWER = 1 << 29 };
static const char *strike_file;
static int strike;

void *ucp_am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                      const void *buffer, size_t count, const void *param)
{
    static void *(*real)(void *, unsigned, const void *, size_t, const void *, size_t,
                         const void *);
    int tag = 0;
    if (!real)
        real = (void *(*)(void *, unsigned, const void *, size_t, const void *, size_t,
                          const void *))dlsym(RTLD_NEXT, "ucp_am_send_nbx");
    if (strike && header_length == sizeof tag)
        memcpy(&tag, header, sizeof tag);
    if (tag & ANSWER) {
        const int signal = strike;
        FILE *file = fopen(strike_file, "w");
        if (file && fputs("struck\n", file) >= 0 && fclose(file) == 0) {
            strike = 0;
            if (signal == SIGSTOP)
                raise(SIGSTOP);
            else
                _exit(1); /* killed, it would end all of them: so Hydra has it */
        }
    }
    return real(ep, id, header, header_length, buffer, count, param);
}

static int is_struck(const char *name)
{
    struct stat status = {.st_size = 0};
    return stat(name, &status) == 0 && status.st_size > 0;
}

static void await_strike(const char *name)
{
    for (const double start = now_s(); !is_struck(name); check_sleep_ms(1))
        CHECK(now_s() - start < 30, "%s is empty", name);
}

/* The other rank's, and its name goes to the rank that has the port. */
static int strike_child(const char *program, const char *role, char *name)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm child;
    int pid;
    hear_of(0, port);
    spawn(program, role, 1, MPI_COMM_SELF, &child);
    const int fd = mkstemp(name);
    CHECK(fd >= 0, "cannot make %s", name);
    close(fd);
    MPI_Send(name, FILE_NAME_BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, child);
    MPI_Send(name, FILE_NAME_BYTES, MPI_CHAR, 0, TAG, child);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&child);
    return pid;
}

static void expect_strike(MPI_Comm parent, char *port, char *name, int signal)
{
    const int pid = getpid();
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Recv(name, FILE_NAME_BYTES, MPI_CHAR, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
    MPI_Comm_disconnect(&parent);
    strike_file = name;
    strike = signal;
}

/* The child dies instead of confirming, and then instead of withdrawing. */
static void died(const char *program)
{
    for (int round = 0; round < 2; round++) {
        char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES] = "/tmp/zc-died-XXXXXX";
        if (check_rank == 0) {
            open_for(1, port);
            MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(name, sizeof name, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (round == 1)
                await_strike(name);
            accept(port, 1);
            CHECK(is_struck(name), "round %d: no client has ended", round);
            MPI_Close_port(port);
            unlink(name);
        } else if (check_rank == 1) {
            /* The port's name comes once more for ourselves. */
            strike_child(program, "died", name);
            hear_of(0, port);
            await_strike(name);
            connect_to(port, 0);
        }
    }
}

static void be_dying(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES];
    expect_strike(parent, port, name, SIGKILL);
    connect_in_vain(port, 1);
    CHECK(0, "it has survived on %s", name);
}

static void accept_in_vain(const char *port, int seconds)
{
    char text[16];
    MPI_Info info;
    MPI_Comm across;
    int class = 0;
    snprintf(text, sizeof text, "%d", seconds);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", text);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const double start = now_s();
    const int error = MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &across);
    CHECK(error != MPI_SUCCESS, "accepted no client");
    MPI_Error_class(error, &class);
    CHECK(class == MPI_ERR_PORT, "error class %d", class);
    CHECK(now_s() - start < seconds + 20, "took %.1f s", now_s() - start);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

/* The child goes on when the server has given it up, and learns of that. */
static void stopped(const char *program)
{
    char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES] = "/tmp/zc-stopped-XXXXXX";
    MPI_Comm across;
    if (check_rank == 0) {
        open_for(1, port);
        MPI_Recv(name, sizeof name, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        do
            accept_in_vain(port, 2);
        while (!is_struck(name));
        MPI_Send(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
        late_exchange(across, 0, 0, 10);
        MPI_Comm_disconnect(&across);
        MPI_Close_port(port);
        unlink(name);
    } else if (check_rank == 1) {
        const int pid = strike_child(program, "stopped", name);
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(kill(pid, SIGCONT) == 0, "process %d is not there", pid);
    }
}

static void be_stopped(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES];
    MPI_Comm across;
    expect_strike(parent, port, name, SIGSTOP);
    connect_in_vain(port, 60);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    late_exchange(across, 0, 1, 10);
    MPI_Comm_disconnect(&across);
}

/* A parent has two children, each by a communicator of its own. The children have one of theirs,
 * which the parent needs to connect with both. The second child lets the parent's last message to
 * it, and with that the communicator, end when the parent is already waiting for them. */
enum { GIVEN_UP_MS = 500 };

static void join_children(MPI_Comm mine, MPI_Comm peer, int low, MPI_Comm *all)
{
    MPI_Comm across;
    MPI_Intercomm_create(mine, 0, peer, 0, TAG, &across);
    MPI_Intercomm_merge(across, !low, all);
    MPI_Comm_free(&across);
}

static void given_up(const char *program)
{
    MPI_Comm first, second, with_first, all, across;
    MPI_Request last;
    char *buf = check_malloc(LARGE);
    spawn(program, "given-up", 1, MPI_COMM_SELF, &first);
    spawn(program, "given-up-last", 1, MPI_COMM_SELF, &second);
    MPI_Intercomm_merge(first, 0, &with_first);
    join_children(with_first, second, 1, &all);
    MPI_Comm_split(all, MPI_UNDEFINED, 0, &across);
    MPI_Comm_free(&all);
    MPI_Comm_free(&with_first);

    pattern_fill(buf, LARGE, 7);
    MPI_Issend(buf, LARGE, MPI_BYTE, 0, TAG, second, &last);
    MPI_Request_free(&last);
    MPI_Comm_free(&second);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, first, 0, TAG, &across);
    late_exchange(across, 0, 0, 8);
    late_exchange(across, 1, 0, 9);
    MPI_Comm_disconnect(&across);
    MPI_Comm_disconnect(&first);
    free(buf);
}

static void be_joined(MPI_Comm with_parent, MPI_Comm parent, int last)
{
    MPI_Comm all, children, across;
    char *buf = check_malloc(LARGE);
    if (last) {
        join_children(MPI_COMM_SELF, parent, 0, &all);
    } else {
        join_children(with_parent, MPI_COMM_NULL, 1, &all);
        MPI_Comm_free(&with_parent);
    }
    MPI_Comm_split(all, 0, last, &children);
    MPI_Comm_free(&all);
    if (last) {
        check_sleep_ms(GIVEN_UP_MS);
        MPI_Recv(buf, LARGE, MPI_BYTE, 0, TAG, parent, MPI_STATUS_IGNORE);
        check_content(buf, LARGE, 7, "the last message");
        check_sleep_ms(GIVEN_UP_MS);
    }
    MPI_Intercomm_create(children, 0, parent, 0, TAG, &across);
    late_exchange(across, 0, 1, last ? 9 : 8);
    MPI_Comm_disconnect(&across);
    MPI_Comm_disconnect(&children);
    MPI_Comm_disconnect(&parent);
    free(buf);
}

static void be_first(MPI_Comm parent)
{
    MPI_Comm with_parent;
    MPI_Intercomm_merge(parent, 1, &with_parent);
    be_joined(with_parent, parent, 0);
}

static void be_last(MPI_Comm parent)
{
    be_joined(MPI_COMM_NULL, parent, 1);
}

/* Ended, though perhaps not yet waited for by its parent. */
static int has_ended(int pid)
{
    char name[64], state = 'Z';
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    FILE *file = fopen(name, "r");
    if (file) {
        /* It may go between being opened and being read. */
        const int read = fscanf(file, "%*d %*[^)]) %c", &state);
        CHECK(read == 1 || ferror(file), "%s", name);
        fclose(file);
    }
    return state == 'Z';
}

/* In MPI meanwhile; the seconds that it took. */
static double wait_for_end(int pid)
{
    const double start = MPI_Wtime();
    int flag;
    while (!has_ended(pid)) {
        CHECK(MPI_Wtime() - start < 30, "process %d has not ended", pid);
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        check_sleep_ms(1);
    }
    return MPI_Wtime() - start;
}

/* The process that had the port has ended. */
static void ended_port(const char *program)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm across;
    int pid, class = 0;
    spawn(program, "ended-port", 1, MPI_COMM_SELF, &across);
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, across, MPI_STATUS_IGNORE);
    MPI_Recv(&pid, 1, MPI_INT, 0, TAG, across, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&across);
    wait_for_end(pid);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const double start = MPI_Wtime();
    const int error = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    CHECK(error != MPI_SUCCESS, "connected to a process that has ended");
    MPI_Error_class(error, &class);
    CHECK(class == MPI_ERR_PORT, "error class %d", class);
    CHECK(MPI_Wtime() - start < 60, "took %.1f s", MPI_Wtime() - start);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void be_ended(MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME];
    int pid = getpid();
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG, parent);
    MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
    MPI_Comm_disconnect(&parent);
}

/* One child leaves at once; one has been given up by itself, but not by its parents. */
static void leave(const char *program)
{
    enum { ROUNDS = 2, SOON_S = 5 };
    static const char *const roles[ROUNDS] = {"leave", "disconnect"};
    MPI_Comm child[ROUNDS];
    double slowest = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int pid = 0;
        spawn(program, roles[i], 1, MPI_COMM_WORLD, &child[i]);
        if (check_rank == 0)
            MPI_Recv(&pid, 1, MPI_INT, 0, TAG, child[i], MPI_STATUS_IGNORE);
        MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
        const double waited = wait_for_end(pid);
        slowest = waited > slowest ? waited : slowest;
    }
    if (check_rank == 0)
        printf("# the slowest needed %.2f s to finalize\n", slowest);
    CHECK(slowest < SOON_S, "a child needed %.1f s to finalize", slowest);
    for (int i = 0; i < ROUNDS; i++)
        MPI_Comm_disconnect(&child[i]);
    const double start = now_s();
    check_announce_end();
    MPI_Finalize();
    const double seconds = now_s() - start;
    if (seconds > SOON_S) {
        fprintf(stderr, "rank %d: parents needed %.1f s to finalize\n", check_rank, seconds);
        exit(1);
    }
    exit(0);
}

/* What a launcher learns of a child's end it learns in no order: this one is dead, and known to
 * be, before its connection with the launcher ends, which another process holds. */
static void be_exiting(MPI_Comm parent)
{
    const int heir = fork();
    CHECK(heir >= 0, "fork");
    if (heir == 0) {
        static const char line[] = "# its parent has exited\n";
        check_sleep_ms(300);
        if (write(STDOUT_FILENO, line, sizeof line - 1) < 0)
            perror("write");
        check_sleep_ms(100);
        close_range(STDERR_FILENO + 1, ~0U, 0);
        check_sleep_ms(300);
        _exit(0);
    }
    MPI_Send(&heir, 1, MPI_INT, 0, TAG, parent);
    MPI_Comm_disconnect(&parent);
    _exit(1);
}

static void exit_early(const char *program)
{
    MPI_Comm child;
    int heir = 0;
    spawn(program, "exit", 1, MPI_COMM_WORLD, &child);
    if (check_rank == 0)
        MPI_Recv(&heir, 1, MPI_INT, 0, TAG, child, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&child);
    MPI_Bcast(&heir, 1, MPI_INT, 0, MPI_COMM_WORLD);
    wait_for_end(heir);
    check_sleep_ms(500); /* so long has the launcher to get it wrong */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void outlive(const char *program)
{
    MPI_Comm child;
    int *pids = check_malloc((size_t)check_ranks * sizeof *pids);
    const int own = getpid();
    spawn(program, "outlive", 1, MPI_COMM_WORLD, &child);
    MPI_Gather(&own, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        MPI_Send(pids, check_ranks, MPI_INT, 0, TAG, child);
    MPI_Comm_disconnect(&child);
    free(pids);
}

static void be_outliving(MPI_Comm parent)
{
    int parents;
    MPI_Comm_remote_size(parent, &parents);
    int *pids = check_malloc((size_t)parents * sizeof *pids);
    MPI_Recv(pids, parents, MPI_INT, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
    for (int i = 0; i < parents; i++)
        wait_for_end(pids[i]);
    check_sleep_ms(500); /* until the launcher has noticed */
    raise(SIGKILL);
}

static void be_echo(MPI_Comm parent)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, TAG, parent, MPI_STATUS_IGNORE);
    value = -value;
    MPI_Send(&value, 1, MPI_INT, 0, TAG, parent);
    MPI_Comm_disconnect(&parent);
}

static void be_child(const char *program, const char *role, MPI_Comm parent)
{
    static const struct {
        const char *role;
        void (*be)(MPI_Comm parent);
    } roles[] = {
        {"echo", be_echo},        {"crowd", be_neighbour},       {"lag", lag_behind},
        {"held", be_held},        {"reconnect", be_reconnected}, {"exit", be_exiting},
        {"ended-port", be_ended}, {"outlive", be_outliving},     {"withdraw", be_withdrawing},
        {"given-up", be_first},   {"given-up-last", be_last},    {"died", be_dying},
        {"stopped", be_stopped},
    };
    MPI_Comm merged, again, own;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(role, roles[i].role)) {
            roles[i].be(parent);
            return;
        }
    if (!strcmp(role, "leave") || !strcmp(role, "disconnect")) {
        int pid = getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, TAG, parent);
        if (!strcmp(role, "disconnect"))
            MPI_Comm_disconnect(&parent);
        return;
    }
    int parents;
    MPI_Comm_remote_size(parent, &parents);
    if (!strcmp(role, "exchange") && check_rank < parents)
        late_exchange(parent, check_rank, 1, 1000u * (unsigned)check_rank);
    if (!strcmp(role, "tree"))
        spawn(program, "merge", 1, MPI_COMM_WORLD, &own);
    MPI_Intercomm_merge(parent, 1, &merged);
    all_together(merged, parents + check_ranks);
    if (!strcmp(role, "exchange")) {
        MPI_Comm_dup(merged, &again);
        MPI_Comm_free(&merged);
        all_together(again, parents + check_ranks);
        merged = again;
    }
    MPI_Comm_free(&merged);
    if (!strcmp(role, "tree")) {
        MPI_Intercomm_merge(own, 0, &merged);
        all_together(merged, check_ranks + 1);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&own);
    }
    MPI_Comm_disconnect(&parent);
}

/* A test that wants no more than the program to spawn. */
static void run_spawning(const char *what, const char *program)
{
    static const struct {
        const char *name;
        void (*run)(const char *program);
    } tests[] = {
        {"exchange", exchange},
        {"elsewhere", elsewhere},
        {"multiple", multiple},
        {"arguments", many_arguments},
        {"tree", tree},
        {"lag", lag},
        {"held", held},
        {"withdraw", withdraw},
        {"died", died},
        {"stopped", stopped},
        {"given-up", given_up},
        {"leave", leave},
        {"exit", exit_early},
        {"outlive", outlive},
        {"ended-port", ended_port},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(what, tests[i].name)) {
            tests[i].run(program);
            return;
        }
    CHECK(0, "no such test: %s", what);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    if (argc > 2 && (!strcmp(argv[1], "crowd") || !strcmp(argv[2], "crowd")))
        use_one_processor();
    if (argc > 2 && !strcmp(argv[2], "elsewhere"))
        be_late();
    const char *what = argc > 1 ? argv[1] : "exchange";
    check_init(&argc, &argv, !strcmp(what, "held") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    const int count = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL && getenv("ZC_HOLD_SPAWNED")) {
        const char *by = getenv("BY");
        const int is_of_this = !getenv("ZC_HOLD_RANK"); /* or of what has started the launcher */
        CHECK(is_of_this ? by && !strcmp(by, "zc-hold and more") : !by, "spawned by %s",
              by ? by : "nothing");
    }
    if (parent != MPI_COMM_NULL && argc > 2 && !strcmp(argv[2], "many")) {
        check_arguments(argc, argv);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    if (parent != MPI_COMM_NULL) {
        be_child(argv[0], argc > 2 ? argv[2] : "", parent);
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(what, "rounds"))
        rounds(argv[0], count);
    else if (!strcmp(what, "connect"))
        connections(count);
    else if (!strcmp(what, "reconnect"))
        reconnect(argv[0], count);
    else if (!strcmp(what, "closed-port"))
        closed_port();
    else if (!strcmp(what, "ports"))
        ports();
    else if (!strcmp(what, "crowd"))
        crowd(argv[0], argv + 2);
    else
        run_spawning(what, argv[0]);
    return check_finish();
}
