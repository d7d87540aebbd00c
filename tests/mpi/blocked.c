/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was sent leaves, even while its sender sits in a call of MPI that waits for something that
 * is not a message: rank 0 sends to rank 1, which must have received before it does what rank 0
 * waits for.
 *
 *   blocked join         MPI_Comm_join, for the other side to join
 *   blocked thread       the same in another thread, which has been there for long
 *   blocked spawn        MPI_Comm_spawn, for the process manager, which rank 0 has stopped
 *   blocked reduce FILE  a function of the user's for a reduction, for a file
 *   blocked start FILE   the same, called by the start of a persistent reduction
 *   blocked delete FILE  one that deletes an attribute
 *   blocked query FILE   one of a generalized request
 *   blocked handler FILE an error handler, of one more send
 */
#include "check.h"
#include "counter.h"
#include "used_to.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { FEW = 3, WINDOW = 50, READY = 99, LATE_MS = 100, PATIENCE_MS = 30000 };

static const char *file;

static void be_in_mpi(void)
{
    if (check_rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        check_sleep_ms(LATE_MS);
        MPI_Send(NULL, 0, MPI_BYTE, 0, READY, MPI_COMM_WORLD);
    }
}

/* The network module learns that short messages may wait for each other; and while rank 0 is in
 * MPI for long, its landing thread, that they may now: it looks again within milliseconds. On a
 * busy machine it may come to that late. */
static void get_used_to(int windows)
{
    struct counter bundled = counter_open("bundled");
    int waited = 0;
    for (int tries = 0; !waited; tries++) {
        CHECK(tries * LATE_MS < PATIENCE_MS, "no message waited for another");
        send_windows(windows, WINDOW, READY);
        be_in_mpi();
        waited = counter_read(&bundled) > 0;
        MPI_Bcast(&waited, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    counter_close(&bundled);
    be_in_mpi();
}

static int values[FEW];

static void send_few(MPI_Request *request)
{
    for (int i = 0; i < FEW; i++) {
        values[i] = i + 1;
        MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[i]);
    }
}

static void receive_few(void)
{
    for (int i = 0; i < FEW; i++) {
        int value = 0;
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == i + 1, "%d instead of %d", value, i + 1);
    }
}

static void make_file(void)
{
    FILE *f = fopen(file, "w");
    CHECK(f && fclose(f) == 0, "cannot make %s", file);
}

static void wait_for_file(void)
{
    struct stat there;
    for (int waited = 0; stat(file, &there) != 0; waited++) {
        CHECK(waited < PATIENCE_MS, "messages stayed behind a call that waits for their receiver");
        check_sleep_ms(1);
    }
}

/* ---- MPI_Comm_join ---- */

/* Both hosts are this machine, and have its file system. */
static int connect_by_socket(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int id = (int)getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(at.sun_path, sizeof at.sun_path, "join-%d", id);
    CHECK(fd >= 0, "no socket");
    if (check_rank == 0) {
        CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0,
              "cannot listen at %s", at.sun_path);
        MPI_Barrier(MPI_COMM_WORLD);
        const int joined = accept(fd, NULL, NULL);
        CHECK(joined >= 0, "cannot accept");
        close(fd);
        unlink(at.sun_path);
        return joined;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "cannot connect to %s", at.sun_path);
    return fd;
}

static void join(int fd)
{
    MPI_Comm joined;
    MPI_Comm_join(fd, &joined);
    CHECK(joined != MPI_COMM_NULL, "not joined");
    MPI_Comm_disconnect(&joined);
    close(fd);
}

static void in_join(void)
{
    const int fd = connect_by_socket();
    MPI_Request request[FEW];
    get_used_to(50);
    if (check_rank == 0)
        send_few(request);
    else
        receive_few();
    join(fd);
    if (check_rank == 0)
        MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
}

static void *join_thread(void *fd)
{
    join(*(int *)fd);
    return NULL;
}

static void in_thread(void)
{
    int fd = connect_by_socket();
    MPI_Request request[FEW];
    get_used_to(50);
    if (check_rank == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, join_thread, &fd) == 0, "no thread");
        be_in_mpi();
        send_few(request);
        pthread_join(thread, NULL);
        MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
    } else {
        /* What it says first tells that it is there. */
        struct pollfd there = {.fd = fd, .events = POLLIN};
        CHECK(poll(&there, 1, PATIENCE_MS) == 1, "no process joins");
        be_in_mpi();
        receive_few();
        join(fd);
    }
}

/* ---- MPI_Comm_spawn ---- */

/* Of the ancestors of this process, the one that started the job. */
static int process_manager(void)
{
    for (int pid = (int)getppid(); pid > 1;) {
        char path[64], name[64];
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = fopen(path, "r");
        CHECK(f && fscanf(f, "%*d (%63[^)]) %*c %d", name, &parent) == 2, "cannot read %s", path);
        fclose(f);
        if (strncmp(name, "mpiexec", 7) == 0)
            return pid;
        pid = parent;
    }
    return 0;
}

static void in_spawn(char *program)
{
    char *arguments[] = {"child", NULL};
    int manager = process_manager();
    MPI_Request request[FEW];
    MPI_Comm child;
    MPI_Bcast(&manager, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!manager)
        check_skip("not started by mpiexec");
    get_used_to(50);
    if (check_rank == 0) {
        CHECK(kill(manager, SIGSTOP) == 0, "cannot stop mpiexec");
        send_few(request);
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
        MPI_Comm_disconnect(&child);
    } else {
        receive_few();
        CHECK(kill(manager, SIGCONT) == 0, "cannot continue mpiexec");
    }
}

static void be_child(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    CHECK(parent != MPI_COMM_NULL, "no parent");
    MPI_Comm_disconnect(&parent);
}

/* ---- functions of the user's ---- */

static void reduce(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    wait_for_file();
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void in_reduce(void)
{
    MPI_Request request[FEW];
    MPI_Op op;
    int in = 1, inout = 2;
    MPI_Op_create(reduce, 1, &op);
    send_few(request);
    MPI_Reduce_local(&in, &inout, 1, MPI_INT, op);
    CHECK(inout == 3, "%d instead of 3", inout);
    MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
    MPI_Op_free(&op);
}

/* Of one process: its schedule reduces when it is started, or when it is waited for. */
static void in_start(void)
{
    MPI_Request request[FEW + 1];
    MPI_Op op;
    int in[2] = {1, 2}, out[2] = {0, 0};
    MPI_Op_create(reduce, 1, &op);
    for (int i = 0; i < FEW; i++) {
        values[i] = i + 1;
        MPI_Send_init(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Reduce_init(in, out, 2, MPI_INT, op, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request[FEW]);
    MPI_Startall(FEW + 1, request);
    wait_for_file();
    MPI_Waitall(FEW + 1, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < FEW + 1; i++)
        MPI_Request_free(&request[i]);
    MPI_Op_free(&op);
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    wait_for_file();
    return MPI_SUCCESS;
}

static void in_delete(void)
{
    MPI_Request request[FEW];
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    send_few(request);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
    MPI_Comm_free_keyval(&key);
}

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    wait_for_file();
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void in_query(void)
{
    MPI_Request request[FEW], general;
    MPI_Grequest_start(query, release, cancel, NULL, &general);
    MPI_Grequest_complete(general);
    send_few(request);
    MPI_Wait(&general, MPI_STATUS_IGNORE);
    MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
}

static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled++;
    wait_for_file();
}

static void in_handler(void)
{
    MPI_Request request[FEW], wrong = MPI_REQUEST_NULL;
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    send_few(request);
    MPI_Isend(values, 1, MPI_INT, 7, 0, comm, &wrong);
    CHECK(handled == 1, "the error handler was called %d times", handled);
    MPI_Waitall(FEW, request, MPI_STATUSES_IGNORE);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int by_file, level;
        void (*run)(void);
    } ways[] = {
        {"join", 0, MPI_THREAD_SINGLE, in_join},
        {"thread", 0, MPI_THREAD_MULTIPLE, in_thread},
        {"reduce", 1, MPI_THREAD_SINGLE, in_reduce},
        {"start", 1, MPI_THREAD_SINGLE, in_start},
        {"delete", 1, MPI_THREAD_SINGLE, in_delete},
        {"query", 1, MPI_THREAD_SINGLE, in_query},
        {"handler", 1, MPI_THREAD_SINGLE, in_handler},
    };
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        check_init(&argc, &argv, MPI_THREAD_SINGLE);
        be_child();
        return check_finish();
    }
    if (argc > 1 && strcmp(argv[1], "spawn") == 0) {
        check_init(&argc, &argv, MPI_THREAD_SINGLE);
        in_spawn(argv[0]);
        return check_finish();
    }
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        check_init(&argc, &argv, ways[i].level);
        CHECK(check_ranks == 2, "2 ranks, not %d", check_ranks);
        file = argc > 2 ? argv[2] : "received";
        if (!ways[i].by_file) {
            ways[i].run();
        } else {
            if (check_rank == 0)
                (void)unlink(file);
            MPI_Barrier(MPI_COMM_WORLD);
            get_used_to(50);
            if (check_rank == 0) {
                ways[i].run();
                (void)unlink(file);
            } else {
                receive_few();
                make_file();
            }
        }
        return check_finish();
    }
    fprintf(stderr, "usage: see the top of blocked.c\n");
    return 2;
}
