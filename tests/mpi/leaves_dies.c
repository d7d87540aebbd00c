/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process of another world ends while it is away, and its launcher does not notice: what waits
 * for it ends with an error of class MPIX_ERR_PROC_FAILED, and the other process goes on and
 * finalizes. A parent and its child are a world each. holder.c makes one of them leave, and kills
 * it.
 *
 *     leaves_dies start FILE MOVER WHAT [APART]
 *
 * MOVER: parent or child. APART: messages are sent by the communicator of this number, of two that
 * are made from that of all, and lie on different VCIs if there are two. WHAT the other one does:
 *     receives     exchanges messages, and has posted receives
 *     sends        sends messages of 8 bytes to 4 MiB
 *     ssends       the same, synchronously
 *     probes       waits in MPI_Probe()
 *     reduces      is in a collective operation
 *     finalizes    enters MPI_Finalize
 *     puts, rputs, rgets, draws, locks, fences, starts, posts
 *                  uses a window of both (puts, gets and accumulates, by kinds of synchronisation)
 *     parted       exchanges messages: the mover lives, but the connection to its holder ends, of
 * one process that stays. The two are lost to each other, whoever is right, and all go on
 *     parted-freed the same, and the process frees its communicators before the mover has come back
 */
#include "hide.h"
#include "lost.h"
#include "marks.h"
#include <libgen.h>

enum { TAG = 1, NEVER, MOST = 4 << 20 };

static const size_t sizes[] = {8, 100000, MOST};

static struct {
    const char *file, *mover, *what, *apart;
} job;
static char self[4096];
static MPI_Comm made[4]; /* the two worlds', that of all, and those that are made from it */
static int nr_made;
static int first, others;    /* ranks of the other world, by the communicator that is used */
static char *buffer, *space; /* of what is sent and received */

static int is(const char *what)
{
    return !strcmp(job.what, what);
}

static int is_parted(void)
{
    return is("parted") || is("parted-freed");
}

/** become_held - goes on as @role below holder.c, which makes it leave */
static void become_held(const char *role)
{
    char folder[4096], holder[4096 + 16], ready[4096 + 16];
    snprintf(folder, sizeof folder, "%s", self);
    snprintf(holder, sizeof holder, "%s/holder", dirname(folder));
    snprintf(ready, sizeof ready, "%s.ready", job.file);
    execl(holder, holder, "-r", "0", "-n", "3", "-w", "20", "-u", job.file, "-b", ready,
          is_parted() ? "-o" : "-d", "--", self, role, job.file, job.mover, job.what, job.apart,
          NULL);
    CHECK(0, "%s: %m", holder);
}

/** is_there - a file by which the holder tells how far it is */
static int is_there(const char *suffix)
{
    char name[4096 + 16];
    struct stat status;
    snprintf(name, sizeof name, "%s%s", job.file, suffix);
    return stat(name, &status) == 0;
}

static int is_away(void)
{
    return is_there(".away");
}

/** is_back - for the third time */
static int is_back(void)
{
    return is_there(".0");
}

/* ---- windows ---- */

static int64_t *memory;
static MPI_Win win;

static int uses_window(void)
{
    static const char *const kinds[] = {"puts",  "rputs",  "rgets",  "draws",
                                        "locks", "fences", "starts", "posts"};
    int uses = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        uses = uses || is(kinds[i]);
    return uses;
}

/** have_window - of @all, before anybody leaves */
static void have_window(MPI_Comm all)
{
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, all, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (is("fences"))
        MPI_Win_fence(0, win);
    else if (is("puts") || is("rputs") || is("rgets") || is("draws"))
        MPI_Win_lock_all(0, win);
}

/** expose - an epoch in which @others may use this process's memory */
static int expose(MPI_Group others)
{
    const int error = MPI_Win_post(others, 0, win);
    return error ? error : MPI_Win_wait(win);
}

static int put(int to)
{
    static const int64_t one = 1;
    return MPI_Put(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win);
}

static int access_exposed(MPI_Group others, int to)
{
    int error = MPI_Win_start(others, 0, win);
    if (!error)
        error = put(to);
    return error ? error : MPI_Win_complete(win);
}

static int put_by_lock(int to)
{
    int error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    if (!error)
        error = put(to);
    return error ? error : MPI_Win_unlock(to, win);
}

static int put_by_fence(int to)
{
    const int error = put(to);
    return error ? error : MPI_Win_fence(0, win);
}

static int complete(int error, int to, MPI_Request *request)
{
    if (!error && request)
        error = MPI_Wait(request, MPI_STATUS_IGNORE);
    return error ? error : MPI_Win_flush(to, win);
}

/** use - once; @to: the other one */
static int use(MPI_Group others, int to)
{
    static int64_t one = 1, got;
    MPI_Request request;
    if (is("locks"))
        return put_by_lock(to);
    if (is("fences"))
        return put_by_fence(to);
    if (is("starts"))
        return access_exposed(others, to);
    if (is("posts"))
        return expose(others);
    if (is("puts"))
        return complete(put(to), to, NULL);
    if (is("draws"))
        return complete(MPI_Fetch_and_op(&one, &got, MPI_INT64_T, to, 0, MPI_SUM, win), to, NULL);
    if (is("rputs"))
        return complete(MPI_Rput(&one, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, &request), to,
                        &request);
    return complete(MPI_Rget(&got, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, &request), to,
                    &request);
}

/** use_window - until the other one is lost; @moves: until this process is killed */
static void use_window(MPI_Comm all, int moves)
{
    MPI_Group members, others;
    int rank, error = MPI_SUCCESS;
    MPI_Comm_rank(all, &rank);
    const int other = 1 - rank;
    MPI_Comm_group(all, &members);
    MPI_Group_incl(members, 1, &other, &others);
    while (!error && !moves)
        error = use(others, other);
    while (moves) {
        if (is("fences"))
            MPI_Win_fence(0, win);
        else if (is("starts"))
            expose(others);
        else if (is("posts"))
            access_exposed(others, other);
        else
            MPI_Recv(space, 8, MPI_BYTE, other, NEVER, all, MPI_STATUS_IGNORE);
    }
    expect_failed(error, "a window");
    MPI_Group_free(&others);
    MPI_Group_free(&members);
}

/* ---- the process that leaves ---- */

/** answer - until it is killed */
static void answer(MPI_Comm other)
{
    const int echoes = is("receives") || is("finalizes");
    for (;;) {
        MPI_Recv(space, MOST, MPI_BYTE, first, TAG, other, MPI_STATUS_IGNORE);
        if (echoes)
            MPI_Send(buffer, 8, MPI_BYTE, first, TAG, other);
    }
}

/** answer_all - until one is lost, and the others have sent an empty message */
static void answer_all(MPI_Comm comm)
{
    int lost = 0, left;
    MPI_Request *requests = check_malloc(others * sizeof *requests);
    for (int i = 0; i < others; i++)
        MPI_Irecv(space + 8 * i, 8, MPI_BYTE, first + i, TAG, comm, &requests[i]);
    for (left = others; left > 0;) {
        MPI_Status status;
        int i, bytes = 0;
        int error = MPI_Waitany(others, requests, &i, &status);
        if (!error)
            MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (!error && bytes > 0)
            error = MPI_Send(buffer, 8, MPI_BYTE, first + i, TAG, comm);
        if (error)
            expect_failed(error, "a message to or of a process that stays");
        if (error || bytes == 0)
            left--;
        else
            MPI_Irecv(space + 8 * i, 8, MPI_BYTE, first + i, TAG, comm, &requests[i]);
        lost += error != MPI_SUCCESS;
    }
    CHECK(lost == 1, "%d of %d are lost", lost, others);
    free(requests);
}

/* ---- the process that stays ---- */

/** exchange - until the other one is lost */
static int exchange(MPI_Comm other)
{
    int error = MPI_SUCCESS;
    while (!error) {
        error = MPI_Send(buffer, 8, MPI_BYTE, first, TAG, other);
        if (!error)
            error = MPI_Recv(space, 8, MPI_BYTE, first, TAG, other, MPI_STATUS_IGNORE);
    }
    return error;
}

static void receive(MPI_Comm other)
{
    MPI_Request posted[2];
    char rooms[2][8];
    for (int i = 0; i < 2; i++)
        MPI_Irecv(rooms[i], sizeof rooms[i], MPI_BYTE, first, NEVER, other, &posted[i]);
    expect_failed(exchange(other), "a message to it, or of it");
    for (int i = 0; i < 2; i++)
        expect_failed(MPI_Wait(&posted[i], MPI_STATUS_IGNORE), "MPI_Wait");
    expect_failed(MPI_Recv(rooms[0], 8, MPI_BYTE, first, NEVER, other, MPI_STATUS_IGNORE),
                  "MPI_Recv");
}

static void send_all(MPI_Comm other)
{
    int error = MPI_SUCCESS;
    for (int i = 0; !error; i++) {
        const size_t bytes = sizes[i % 3];
        error = is("ssends") ? MPI_Ssend(buffer, bytes, MPI_BYTE, first, TAG, other)
                             : MPI_Send(buffer, bytes, MPI_BYTE, first, TAG, other);
    }
    expect_failed(error, "a message to it");
    expect_failed(MPI_Send(buffer, 8, MPI_BYTE, first, TAG, other), "MPI_Send");
}

static void reduce(MPI_Comm all)
{
    int error = MPI_SUCCESS;
    while (!error)
        error = MPI_Allreduce(MPI_IN_PLACE, buffer, 8, MPI_BYTE, MPI_BOR, all);
    expect_failed(error, "MPI_Allreduce");
}

/** exchange_until_away - waits for nothing when the other one is */
static void exchange_until_away(MPI_Comm other)
{
    MPI_Request requests[2];
    int done = 0;
    while (!is_away()) {
        MPI_Irecv(space, 8, MPI_BYTE, first, TAG, other, &requests[0]);
        MPI_Isend(buffer, 8, MPI_BYTE, first, TAG, other, &requests[1]);
        for (done = 0; !done && !is_away();)
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    }
    if (!done) {
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[1]);
    }
}

/** exchange_or_lose - until the other one is lost, and is back; or it is back, and is not lost */
static void exchange_or_lose(MPI_Comm other)
{
    int error = MPI_SUCCESS, there;
    while (!error && !is_back()) {
        error = MPI_Send(buffer, 8, MPI_BYTE, first, TAG, other);
        if (!error)
            error = MPI_Recv(space, 8, MPI_BYTE, first, TAG, other, MPI_STATUS_IGNORE);
    }
    if (!error) {
        MPI_Send(buffer, 0, MPI_BYTE, first, TAG, other);
        return;
    }
    expect_failed(error, "a message to it, or of it");
    CHECK(!is_back(), "%s", "it was back before it was lost");
    for (int i = 0; is("parted-freed") && i < nr_made; i++)
        MPI_Comm_free(&made[i]);
    while (!is_back())
        MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
}

static void stay(MPI_Comm other, MPI_Comm all)
{
    if (!is("finalizes"))
        mark(job.file, ".kill");
    if (is("receives"))
        receive(other);
    else if (is("sends") || is("ssends"))
        send_all(other);
    else if (is("probes"))
        expect_failed(MPI_Probe(first, NEVER, other, MPI_STATUS_IGNORE), "MPI_Probe");
    else if (is("reduces"))
        reduce(all);
    else if (uses_window())
        use_window(all, 0);
    else if (is("finalizes"))
        exchange_until_away(other);
    else
        exchange_or_lose(other);
}

/* ---- the job ---- */

static MPI_Comm spawn(void)
{
    MPI_Comm comm;
    char *arguments[] = {"spawned",        (char *)job.file,  (char *)job.mover,
                         (char *)job.what, (char *)job.apart, NULL};
    MPI_Comm_spawn(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm,
                   MPI_ERRCODES_IGNORE);
    return comm;
}

/** meet - each process of one world has exchanged a message with each of the other */
static void meet(MPI_Comm comm)
{
    for (int i = first; i < first + others; i++)
        MPI_Sendrecv(buffer, 8, MPI_BYTE, i, TAG, space, 8, MPI_BYTE, i, TAG, comm,
                     MPI_STATUS_IGNORE);
}

static void add(MPI_Comm comm)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    made[nr_made++] = comm;
}

/** make_all - communicators, of which all connections have been used */
static void make_all(int is_child)
{
    MPI_Comm comm;
    MPI_Comm_get_parent(&comm);
    add(is_child ? comm : spawn());
    MPI_Comm_remote_size(made[0], &others);
    meet(made[0]);
    MPI_Intercomm_merge(made[0], is_child, &comm);
    add(comm);
    first = job.apart && !is_child ? check_ranks : 0;
    for (int i = 0; job.apart && i < 2; i++) {
        MPI_Comm_dup(made[1], &comm);
        add(comm);
        meet(comm);
    }
}

static void work(int is_child)
{
    const int moves = !strcmp(job.mover, is_child ? "child" : "parent");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* MPI_Waitany() */
    make_all(is_child);
    const MPI_Comm other = job.apart ? made[2 + atoi(job.apart)] : made[0];
    const MPI_Comm all = job.apart ? other : made[1];
    if (uses_window())
        have_window(all);
    if (!moves) {
        mark(job.file, ".ready");
        stay(other, all);
        printf("# process %d has survived\n", check_rank);
    } else if (is("reduces")) {
        reduce(all);
    } else if (uses_window()) {
        use_window(all, 1);
    } else if (is_parted()) {
        answer_all(other);
        printf("# it has come back\n");
    } else {
        answer(other);
    }
    fflush(stdout);
    if (!moves && is("finalizes"))
        mark(job.file, ".kill");
}

int main(int argc, char **argv)
{
    CHECK(argc == 5 || argc == 6, "usage: leaves_dies start FILE MOVER WHAT [APART]");
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(length > 0, "no /proc/self/exe");
    job.file = argv[2];
    job.mover = argv[3];
    job.what = argv[4];
    job.apart = argv[5];
    const int is_start = !strcmp(argv[1], "start"), is_spawned = !strcmp(argv[1], "spawned");
    const char *role = is_start ? "parent" : is_spawned ? "child" : argv[1];
    if (is_start || is_spawned)
        hide_from_launcher();
    if ((is_start || is_spawned) && !strcmp(role, job.mover))
        become_held(role);
    if (strcmp(role, "parent") != 0)
        unsetenv("MPIR_CVAR_CH4_ZC_STATS_FILE"); /* of a rank of the same number */
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    buffer = calloc(1, MOST);
    space = calloc(1, MOST);
    CHECK(buffer && space, "no memory");
    work(!strcmp(role, "child"));
    MPI_Finalize();
    return 0;
}
