/* SPDX-License-Identifier: BSD-3-Clause */

/* The trace's beginning and end: MPI_Init, MPI_Finalize, MPI_Abort, exit. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "datatype.h"
#include "probe.h"
#include "traced_request.h"
#include "unrecorded.h"

struct zct_tracer zct = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* Nobody has the lock for longer but one that never gives it back. */
#define LAST_WAIT_S 5

static bool init_tables(void)
{
    return zct_table_init(&zct.requests, sizeof(struct zct_request)) &&
           zct_table_init(&zct.comms, sizeof(struct zct_comm)) && zct_datatype_init() &&
           zct_table_init(&zct.sites, sizeof(uint32_t)) && zct_probe_init() &&
           zct_unrecorded_init();
}

/* The command line, arguments apart by blanks. */
static void read_command(char *text, size_t capacity)
{
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, capacity - 1) : -1;
    if (fd >= 0)
        close(fd);
    size_t len = n > 0 ? (size_t)n : 0;
    while (len && !text[len - 1])
        len--;
    for (size_t i = 0; i < len; i++)
        if (!text[i])
            text[i] = ' ';
    text[len] = '\0';
}

static bool is_spawned(void)
{
    MPI_Comm parent = zct_real.comm_null;
    REAL(Comm_get_parent)(&parent);
    return parent != zct_real.comm_null;
}

/* Has another program of a script that runs several been traced here, or another process that was
 * started as a world of its own? The ranks of two would be taken for those of one. */
static bool is_taken(const char *folder)
{
    char path[4096];
    const int len = snprintf(path, sizeof(path), "%s/r0.zct", folder);
    return !is_spawned() && len > 0 && (size_t)len < sizeof(path) && access(path, F_OK) == 0;
}

/* Where the files go. A world that was spawned has ranks of its own: a folder below. */
static bool trace_folder(const struct zct_beginning *beginning, char *path, size_t capacity)
{
    const char *folder = getenv("ZC_TRACE_DIR");
    const int len = !is_spawned() ? snprintf(path, capacity, "%s", folder)
                                  : snprintf(path, capacity, "%s/spawned-%016" PRIx64 ".zct",
                                             folder, beginning->run);
    if (len < 0 || (size_t)len >= capacity) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static int open_file(int rank, int processes, const struct zct_beginning *beginning, char *path,
                     size_t capacity)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char command[4096];
    char host[256] = "";
    int len = 0;
    if (!trace_folder(beginning, path, capacity))
        return -errno;
    snprintf(path + strlen(path), capacity - strlen(path), "/r%d.zct", rank);
    REAL(Get_library_version)(mpi, &len);
    mpi[strcspn(mpi, "\n")] = '\0';
    read_command(command, sizeof(command));
    gethostname(host, sizeof(host) - 1);
    const struct zct_head head = {
        .rank = (uint32_t)rank,
        .processes = (uint32_t)processes,
        .run = beginning->run,
        .start_ns = beginning->start_ns,
        .mpi = mpi,
        .program = program_invocation_short_name,
        .command = command,
        .host = host,
        .calls = zct.calls,
    };
    return zct_writer_open(&zct.writer, path, &head);
}

/* The first record of the calls: what came before was MPI_Init. */
static void note_start(const struct zct_beginning *beginning, void *caller)
{
    const int64_t now = zct_now();
    zct_call_ended(ZCT_FUNCTION_INIT, caller, now, now);
    if (beginning->apart)
        zct_write_clock(&zct.writer, now, 0, beginning->error_ns);
}

static void start(void *caller)
{
    int rank = 0;
    int processes = 0;
    int provided = MPI_THREAD_SINGLE;
    char path[4096];
    const char *folder = getenv("ZC_TRACE_DIR");
    /* All ranks have it or none: what follows is collective. */
    if (!folder || !*folder || zct.active)
        return;
    REAL(Comm_rank)(zct_real.world, &rank);
    REAL(Comm_size)(zct_real.world, &processes);
    REAL(Query_thread)(&provided);
    const char *calls = getenv("ZC_TRACE_CALLS");
    zct.calls = calls && strcmp(calls, "1") == 0;
    const struct zct_beginning beginning =
        zct_clock_agree(rank, processes, rank == 0 && is_taken(folder), zct.calls);
    if (beginning.taken) {
        if (rank == 0)
            fprintf(stderr,
                    "zc-trace: %s is not traced: %s has the trace of another MPI_COMM_WORLD\n",
                    program_invocation_short_name, folder);
        return;
    }
    const int error =
        init_tables() ? open_file(rank, processes, &beginning, path, sizeof(path)) : -ENOMEM;
    if (error) {
        fprintf(stderr, "zc-trace: rank %d is not traced: %s: %s\n", rank, path, strerror(-error));
        return;
    }
    zct.zero_ns = beginning.zero_ns;
    zct.threaded = provided == MPI_THREAD_MULTIPLE;
    zct.active = true;
    zct_comm_created(zct_real.world);
    if (zct.calls)
        note_start(&beginning, caller);
}

void zct_out_of_memory(void)
{
    zct_lock();
    zct.writer.error = ENOMEM;
    zct_unlock();
}

/* For what comes last. exit() may be called by an error handler: of a call that was made under the
 * lock, or in a thread that another one waits for which has it. False: nothing must be touched.
 * Records are whole when the library is asked about what the program gave it. */
static bool lock_last(void)
{
    struct timespec until;
    if (!zct.threaded)
        return true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_WAIT_S;
    const int error = pthread_mutex_timedlock(&zct.mutex, &until);
    return error == 0 || error == EDEADLK;
}

void zct_stop(bool finished)
{
    if (!zct.active || !lock_last())
        return;
    if (zct.calls)
        zct_unrecorded_write_locked();
    zct.active = false;
    const int error = zct_writer_close(&zct.writer, finished);
    zct_unlock();
    if (error)
        fprintf(stderr, "zc-trace: the trace is incomplete: %s\n", strerror(-error));
}

int MPI_Init(int *argc, char ***argv)
{
    zct_real_find();
    const int code = REAL(Init)(argc, argv);
    if (code == MPI_SUCCESS)
        start(ZCT_CALLER);
    return code;
}
ZCT_WRAPS(Init)

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    zct_real_find();
    const int code = REAL(Init_thread)(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        start(ZCT_CALLER);
    return code;
}
ZCT_WRAPS(Init_thread)

#if ZCT_LARGE_COUNT
/* A program with sessions only has no world, and is not traced. */
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    zct_real_find();
    return REAL(Session_init)(info, handler, session);
}
ZCT_WRAPS(Session_init)
#endif

/* MPI's parent is there from the beginning; it is used from here on. */
int MPI_Comm_get_parent(MPI_Comm *parent)
{
    const int code = REAL(Comm_get_parent)(parent);
    if (code == MPI_SUCCESS && zct.active && *parent != zct_real.comm_null) {
        zct_lock();
        zct_comm_get_locked(*parent);
        zct_unlock();
    }
    return code;
}
ZCT_WRAPS(Comm_get_parent)

/* The program's time ends here; comparing the clocks waits for rank 0. */
static void note_end(void *caller)
{
    const int64_t now = zct_now();
    int64_t ahead_ns = 0;
    uint64_t error_ns = 0;
    if (zct.active && zct.calls)
        zct_call_ended(ZCT_FUNCTION_FINALIZE, caller, now, now);
    if (!zct_clock_compare(zct.zero_ns, &ahead_ns, &error_ns) || !zct.active)
        return;
    zct_lock();
    zct_write_clock(&zct.writer, zct_now(), ahead_ns, error_ns);
    zct_unlock();
}

int MPI_Finalize(void)
{
    note_end(ZCT_CALLER);
    zct_stop(true);
    return REAL(Finalize)();
}
ZCT_WRAPS(Finalize)

int MPI_Abort(MPI_Comm comm, int code)
{
    if (zct.active && lock_last()) {
        zct_writer_flush(&zct.writer);
        zct_unlock();
    }
    return REAL(Abort)(comm, code);
}
ZCT_WRAPS(Abort)

/* Some programs exit without MPI_Finalize. */
__attribute__((destructor)) static void at_exit(void)
{
    if (zct.active && zct.writer.owner == (int64_t)getpid())
        zct_stop(false);
}
