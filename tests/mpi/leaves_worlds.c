/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks leave and come back while processes of several worlds send to each other: parents, which
 * the launcher has started, their children, and a child of those. Nothing is lost, whoever moves,
 * and none is given an address that has gone. holder.c tells the parents to leave, and may tell
 * children.
 *
 *     leaves_worlds FILE NUMBER CHILDREN TOLD TIMES WHAT...
 *
 * makes FILE.ready, and goes on until there are NUMBER files FILE.<rank> and FILE-child.<rank>. The
 * CHILDREN have holders if TOLD is a list of ranks ("0,1"), not "-", and leave TIMES each.
 *
 * WHAT: some of
 *     pairs        messages of all to all, some synchronous
 *     wildcards    the same, received from any
 *     across       messages over the intercommunicator, large ones announced
 *     collectives  of all
 *     computing    each is late now and then
 *     creates      parents connect to a child of the children in each round, and part from it: its
 *                  address, and theirs, are given to them by others
 *     spawns       the last parent spawns a process in each round
 *     ports        the first parent and the first child connect by a port in each round, too
 *     early        FILE.ready is there before anybody is spawned
 *     threads      the same as pairs, by threads meanwhile, each on a communicator of its own and
 *                  so on several VCIs (MPIR_CVAR_CH4_NUM_VCIS); a process that is connected to
 *                  another one exchanges messages on several, too
 *     children-N   the children have N VCIs
 */
#include "children.h"
#include "sizes.h"
#include <pthread.h>

enum { FEW = 4, PAIRS = 1, WILD, ACROSS, OVER, NAME_OF_PORT, WORKERS = 4 };

static uint64_t state;  /* the same in all processes */
static MPI_Comm inter;  /* parents and children */
static MPI_Comm all;    /* both, parents first */
static int rank, ranks; /* in it */

static _Thread_local int is_worker;

static void late(void)
{
    if (!is_worker && job_wants("computing") && check_random(&state, 3) == (uint64_t)rank % 3)
        check_sleep_ms(10);
}

/** exchange - FEW messages from each of @comm to each other one, of which @wild receives any */
static void exchange(int round, MPI_Comm comm, int wild)
{
    int own, members;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &members);
    const int each = FEW * (members - 1), tag = wild ? WILD : PAIRS;
    void **out = check_malloc((each + 1) * sizeof *out);
    MPI_Request *requests = check_malloc((each + 1) * sizeof *requests);
    int *seen = calloc(members, sizeof *seen), n = 0;
    for (int i = 0; i < FEW; i++) {
        for (int to = 0; to < members; to++) {
            if (to == own)
                continue;
            const size_t bytes = size_of(round, own, to, i);
            out[n] = check_malloc(bytes);
            pattern_fill(out[n], bytes, content_of(round, own, to, i));
            if (i == 1)
                MPI_Issend(out[n], bytes, MPI_BYTE, to, tag, comm, &requests[n]);
            else
                MPI_Isend(out[n], bytes, MPI_BYTE, to, tag, comm, &requests[n]);
            n++;
        }
    }
    late();
    void *in = check_malloc(LARGEST);
    for (int i = 0; i < FEW; i++) {
        for (int other = 0; other < members; other++) {
            MPI_Status status;
            int bytes;
            if (other == own)
                continue;
            MPI_Recv(in, LARGEST, MPI_BYTE, wild ? MPI_ANY_SOURCE : other, tag, comm, &status);
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            const int from = status.MPI_SOURCE, nth = seen[from]++;
            CHECK((size_t)bytes == size_of(round, from, own, nth), "%d bytes, message %d of %d",
                  bytes, nth, from);
            check_content(in, bytes, content_of(round, from, own, nth), "message");
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        free(out[i]);
    /* No wildcard may match what is sent in the next round. */
    if (wild)
        MPI_Barrier(comm);
    free(in);
    free(out);
    free(requests);
    free(seen);
}

/** across - @bytes to and from each process of the other world */
static void across(int round, size_t bytes)
{
    int others, own;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &own);
    const int from = own + (job_is_child() ? 1000 : 0);
    void *out = check_malloc(bytes), *in = check_malloc(bytes);
    MPI_Request *requests = check_malloc(others * sizeof *requests);
    pattern_fill(out, bytes, content_of(round, from, 0, FEW));
    for (int to = 0; to < others; to++)
        MPI_Isend(out, bytes, MPI_BYTE, to, ACROSS, inter, &requests[to]);
    late();
    for (int other = 0; other < others; other++) {
        MPI_Recv(in, bytes, MPI_BYTE, other, ACROSS, inter, MPI_STATUS_IGNORE);
        check_content(in, bytes, content_of(round, other + (job_is_child() ? 0 : 1000), 0, FEW),
                      "across");
    }
    MPI_Waitall(others, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(out);
    free(in);
}

static void collectives(int round)
{
    const int count = 1 + (int)check_random(&state, 100000);
    long *sums = check_malloc(count * sizeof *sums), *own = check_malloc(count * sizeof *own);
    for (int i = 0; i < count; i++)
        own[i] = (long)i * (rank + 1) + round;
    MPI_Allreduce(own, sums, count, MPI_LONG, MPI_SUM, all);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == (long)i * ranks * (ranks + 1) / 2 + (long)round * ranks,
              "element %d of a sum", i);
    free(sums);
    free(own);
}

/* ---- several VCIs ---- */

typedef struct {
    pthread_t thread;
    MPI_Comm comm; /* of all */
    int round;
} worker_t;

static worker_t workers[WORKERS];

static void have_workers(void)
{
    for (int i = 0; i < WORKERS; i++)
        MPI_Comm_dup(all, &workers[i].comm);
}

static void *work_apart(void *argument)
{
    const worker_t *w = argument;
    is_worker = 1;
    exchange(w->round, w->comm, 0);
    return NULL;
}

static void start_workers(int round)
{
    for (int i = 0; i < WORKERS; i++) {
        workers[i].round = round + ((i + 1) << 24);
        CHECK(!pthread_create(&workers[i].thread, NULL, work_apart, &workers[i]), "no thread");
    }
}

static void await_workers(void)
{
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void free_workers(void)
{
    for (int i = 0; i < WORKERS; i++)
        MPI_Comm_disconnect(&workers[i].comm);
}

/** exchange_apart - on more than one VCI, by communicators that are made from @comm for that */
static void exchange_apart(int round, MPI_Comm comm)
{
    for (int i = 0; job_wants("threads") && i < 2; i++) {
        MPI_Comm one;
        MPI_Comm_dup(comm, &one);
        exchange(round, one, 0);
        MPI_Comm_disconnect(&one);
    }
}

/** merge_and_exchange_apart - the same by the intercommunicator @comm; @high: of this side */
static void merge_and_exchange_apart(int round, MPI_Comm comm, int high)
{
    MPI_Comm merged;
    if (!job_wants("threads"))
        return;
    MPI_Intercomm_merge(comm, high, &merged);
    exchange_apart(round, merged);
    MPI_Comm_disconnect(&merged);
}

/* ---- spawning ---- */

/** be_brief - a process that is there for one answer */
static int be_brief(MPI_Comm parent)
{
    int word;
    MPI_Recv(&word, 1, MPI_INT, 0, OVER, parent, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, 0, OVER, parent);
    merge_and_exchange_apart(word, parent, 1);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

static void spawn_one(int round)
{
    MPI_Comm comm = job_start("brief", 1, NULL, MPI_COMM_SELF);
    int word = round;
    MPI_Send(&word, 1, MPI_INT, 0, OVER, comm);
    word = -1;
    MPI_Recv(&word, 1, MPI_INT, 0, OVER, comm, MPI_STATUS_IGNORE);
    CHECK(word == round, "%d of a process that was spawned", word);
    merge_and_exchange_apart(word, comm, 0);
    MPI_Comm_disconnect(&comm);
}

/* ---- others give addresses away ---- */

static MPI_Comm below = MPI_COMM_NULL; /* children, and a child of theirs */

static void have_grandchild(void)
{
    MPI_Comm comm = job_start("grandchild", 1, NULL, MPI_COMM_WORLD);
    MPI_Intercomm_merge(comm, 0, &below);
    MPI_Comm_disconnect(&comm);
}

/** meet - parents on one side, children and grandchild on the other; @local: of this side */
static void meet(int round, MPI_Comm local, MPI_Comm bridge, int leader)
{
    MPI_Comm comm, merged;
    MPI_Intercomm_create(local, 0, bridge, leader, OVER, &comm);
    MPI_Intercomm_merge(comm, job_is_child(), &merged);
    exchange(round, merged, 0);
    exchange_apart(round, merged);
    MPI_Comm_disconnect(&merged);
    MPI_Comm_disconnect(&comm);
}

static int be_grandchild(MPI_Comm parent)
{
    MPI_Intercomm_merge(parent, 1, &below);
    MPI_Comm_disconnect(&parent);
    for (int round = 0; round >= 0;) {
        MPI_Bcast(&round, 1, MPI_INT, 0, below);
        if (round >= 0)
            meet(round, below, MPI_COMM_NULL, 0);
    }
    MPI_Comm_disconnect(&below);
    MPI_Finalize();
    return 0;
}

static void create(int round)
{
    if (job_is_child())
        MPI_Bcast(&round, 1, MPI_INT, 0, below);
    if (round >= 0)
        meet(round, job_is_child() ? below : MPI_COMM_WORLD, all, job_is_child() ? 0 : check_ranks);
}

/* ---- ports ---- */

static void connect_by_port(int round)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm comm;
    int word = 0;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, NAME_OF_PORT, inter);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
        MPI_Close_port(port);
    } else if (job_is_child() && check_rank == 0) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, NAME_OF_PORT, inter, MPI_STATUS_IGNORE);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
    } else {
        return;
    }
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, OVER, &word, 1, MPI_INT, 0, OVER, comm, MPI_STATUS_IGNORE);
    CHECK(word == (job_is_child() ? 0 : check_ranks), "%d over a port", word);
    merge_and_exchange_apart(round, comm, job_is_child());
    MPI_Comm_disconnect(&comm);
}

/* ---- the job ---- */

static void work(void)
{
    int go_on = 1, rounds = 0;
    for (; go_on; rounds++) {
        state = pattern_mix(check_seed + rounds);
        if (job_wants("threads"))
            start_workers(rounds);
        if (job_wants("pairs"))
            exchange(4 * rounds, all, 0);
        if (job_wants("wildcards"))
            exchange(4 * rounds + 1, all, 1);
        if (job_wants("across"))
            across(rounds, sizes[rounds % SIZES]);
        if (job_wants("collectives"))
            collectives(rounds);
        if (job_wants("creates"))
            create(4 * rounds + 2);
        if (job_wants("spawns") && !job_is_child() && check_rank == check_ranks - 1)
            spawn_one(rounds);
        if (job_wants("ports"))
            connect_by_port(rounds);
        if (job_wants("threads"))
            await_workers();
        go_on = rank == 0 ? job_through(ranks) < job.number : 0;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, all);
    }
    if (rank == 0)
        printf("# %d rounds\n", rounds);
}

/** level - that @argv asks for */
static int level(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "threads"))
            return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"child", "brief", "grandchild", NULL};
    MPI_Comm parent;
    job_read(argc, argv, kinds);
    check_init(&argc, &argv, level(argc, argv));
    MPI_Comm_get_parent(&parent);
    if (job_is_child() && !strcmp(job.kind, "brief"))
        return be_brief(parent);
    if (job_is_child() && !strcmp(job.kind, "grandchild"))
        return be_grandchild(parent);
    if (!job_is_child() && check_rank == 0 && job_wants("early"))
        mark(job.file, ".ready");
    inter = job_have_children();
    MPI_Intercomm_merge(inter, job_is_child(), &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    MPI_Bcast(&check_seed, 1, MPI_UINT64_T, 0, all);
    if (job_wants("threads"))
        have_workers();
    if (job_is_child() && job_wants("creates"))
        have_grandchild();
    if (rank == 0 && !job_wants("early"))
        mark(job.file, ".ready");
    work();
    if (job_is_child() && job_wants("creates")) {
        create(-1);
        MPI_Comm_disconnect(&below);
    }
    if (job_wants("threads"))
        free_workers();
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&inter);
    return job_is_child() ? MPI_Finalize() : check_finish();
}
