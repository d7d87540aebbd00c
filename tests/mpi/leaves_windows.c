/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks leave and come back while all of them use windows, and the program does not notice: every
 * byte that is put, got or accumulated is as ever, by all kinds of synchronisation. It knows
 * nothing of it; holder.c tells the ranks to. All are of one world, or parents and their children.
 *
 *     leaves_windows FILE NUMBER CHILDREN TOLD TIMES WHAT...      (children.h)
 *
 * WHAT: all, or some of fence, pscw, lock, held, ordered, drawn, guarded, dynamic, part, brief,
 * computing; unregistered: no memory can be registered with UCX a second time; reached: in the end,
 * puts to all ranks are UCX's again; connect: parents and children part, and meet again by a port;
 * first: parents have left as often as they do before they have children.
 */
#include "children.h"
#include <dlfcn.h>
#include <stddef.h>

enum { MOST = 150 * KIB, BURST = 40, CELLS = 64, NAME_OF_PORT = 1 };

static MPI_Comm all;    /* that have the windows; parents first */
static int rank, ranks; /* in it */

/* Of each rank: what each other rank has put there, in a place of its own. */
typedef struct {
    unsigned char bytes[MOST];
    uint64_t burst[BURST];
} place_t;

static MPI_Win window; /* that is synchronised in each step */
static place_t *places;
static MPI_Win held; /* by all ranks, all the time: MPI_Win_lock_all */
static place_t *held_places;
static MPI_Win counters; /* likewise, in units of 8 bytes, of memory of the program's own */
static int64_t cells[CELLS];

static int wants(const char *what)
{
    return job_wants(what) || job_wants("all");
}

static int registers_none;

/* libmpi's calls come here. */
int ucp_mem_map(void *context, const void *what, void **memory)
{
    enum { NO_MEMORY = -4 }; /* UCS_ERR_NO_MEMORY */
    int (*real)(void *, const void *, void **);
    *(void **)&real = dlsym(RTLD_NEXT, "ucp_mem_map");
    return registers_none ? NO_MEMORY : real(context, what, memory);
}

static long puts_of_ucx;

void *ucp_put_nbx(void *ep, const void *from, size_t bytes, uint64_t to, void *key, const void *how)
{
    void *(*real)(void *, const void *, size_t, uint64_t, void *, const void *);
    *(void **)&real = dlsym(RTLD_NEXT, "ucp_put_nbx");
    puts_of_ucx++;
    return real(ep, from, bytes, to, key, how);
}

static uint64_t content_of(int round, int from, int to, int what)
{
    return pattern_mix(check_seed + 5 * (uint64_t)round) ^
           ((uint64_t)what << 50 | (uint64_t)from << 25 | (uint64_t)to);
}

static size_t size_of(int round, int from, int to)
{
    const uint64_t x = content_of(round, from, to, 9);
    return 1 + (x >> 8) % (x % 3 ? 200 : MOST);
}

static MPI_Aint place_of(int from)
{
    return (MPI_Aint)(from * sizeof(place_t));
}

static MPI_Aint burst_of(int from, int i)
{
    return place_of(from) + (MPI_Aint)offsetof(place_t, burst) + 8 * i;
}

static void compute(int round)
{
    const uint64_t x = content_of(round, rank, 0, 8);
    if (x % 4 == 0)
        check_sleep_ms((int)(x >> 8 & 7));
}

/** made - what this rank puts to @to */
static void *made(int round, int to, int what)
{
    const size_t bytes = size_of(round, rank, to);
    void *out = check_malloc(bytes);
    pattern_fill(out, bytes, content_of(round, rank, to, what));
    return out;
}

static void check_place(int round, const place_t *found, int from, int to, int what)
{
    check_content(found->bytes, size_of(round, from, to), content_of(round, from, to, what), "put");
}

/** put_to_all - and what is to be freed after it is complete, in @out */
static void put_to_all(int round, MPI_Win on, int what, void **out)
{
    for (int to = 0; to < ranks; to++) {
        out[to] = made(round, to, what);
        MPI_Put(out[to], (int)size_of(round, rank, to), MPI_BYTE, to, place_of(rank),
                (int)size_of(round, rank, to), MPI_BYTE, on);
    }
}

static void free_all(void **out)
{
    for (int to = 0; to < ranks; to++)
        free(out[to]);
}

static void check_all_places(int round, const place_t *found, int what)
{
    for (int from = 0; from < ranks; from++)
        check_place(round, &found[from], from, rank, what);
}

/** get_from_all - @completes: how */
static void get_and_check(int round, MPI_Win on, int what, void (*complete)(MPI_Win on))
{
    void **in = check_malloc(ranks * sizeof *in);
    for (int from = 0; from < ranks; from++) {
        const int bytes = (int)size_of(round, rank, from);
        in[from] = check_malloc(bytes);
        MPI_Get(in[from], bytes, MPI_BYTE, from, place_of(rank), bytes, MPI_BYTE, on);
    }
    complete(on);
    for (int from = 0; from < ranks; from++)
        check_content(in[from], size_of(round, rank, from), content_of(round, rank, from, what),
                      "got back");
    free_all(in);
    free(in);
}

static void end_by_fence(MPI_Win on)
{
    MPI_Win_fence(0, on);
}

static void end_by_flush(MPI_Win on)
{
    MPI_Win_flush_all(on);
}

static void end_by_local_flush(MPI_Win on)
{
    for (int target = 0; target < ranks; target++)
        MPI_Win_flush_local(target, on);
}

static void use_fence(int round)
{
    void **out = check_malloc(ranks * sizeof *out);
    MPI_Win_fence(0, window);
    put_to_all(round, window, 0, out);
    compute(round);
    MPI_Win_fence(0, window);
    check_all_places(round, places, 0);
    MPI_Win_fence(0, window);
    get_and_check(round, window, 0, end_by_fence);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    free_all(out);
    free(out);
}

/** use_pscw - each rank exposes its memory to the one before it */
static void use_pscw(int round)
{
    const int to = (rank + 1) % ranks;
    const int from = (rank + ranks - 1) % ranks;
    void *out = made(round, to, 1);
    MPI_Group members, next, last;
    MPI_Comm_group(all, &members);
    MPI_Group_incl(members, 1, &to, &next);
    MPI_Group_incl(members, 1, &from, &last);
    MPI_Win_post(last, 0, window);
    MPI_Win_start(next, 0, window);
    MPI_Put(out, (int)size_of(round, rank, to), MPI_BYTE, to, place_of(rank),
            (int)size_of(round, rank, to), MPI_BYTE, window);
    compute(round);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    check_place(round, &places[from], from, rank, 1);
    MPI_Barrier(all); /* before others put there under a lock */
    MPI_Group_free(&last);
    MPI_Group_free(&next);
    MPI_Group_free(&members);
    free(out);
}

static void use_lock(int round)
{
    for (int i = 1; i < ranks; i++) {
        const int to = (rank + i) % ranks;
        const int bytes = (int)size_of(round, rank, to);
        void *out = made(round, to, 2), *in = check_malloc(bytes);
        MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, window);
        MPI_Put(out, bytes, MPI_BYTE, to, place_of(rank), bytes, MPI_BYTE, window);
        MPI_Win_unlock(to, window);
        MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
        MPI_Get(in, bytes, MPI_BYTE, to, place_of(rank), bytes, MPI_BYTE, window);
        MPI_Win_unlock(to, window);
        check_content(in, bytes, content_of(round, rank, to, 2), "got back by a lock");
        free(out);
        free(in);
    }
    MPI_Barrier(all);
}

/** use_held - an epoch that begins before the first rank leaves, and ends after the last */
static void use_held(int round)
{
    void **out = check_malloc(ranks * sizeof *out);
    MPI_Request *requests = check_malloc(ranks * sizeof *requests);
    put_to_all(round, held, 3, out);
    compute(round);
    MPI_Win_flush_all(held);
    get_and_check(round, held, 3, round % 2 ? end_by_flush : end_by_local_flush);
    MPI_Barrier(all);
    MPI_Win_sync(held);
    check_all_places(round, held_places, 3);
    free_all(out);
    MPI_Barrier(all);

    /* By requests, and many at a time. */
    uint64_t burst[BURST];
    for (int to = 0; to < ranks; to++) {
        out[to] = made(round, to, 4);
        MPI_Rput(out[to], (int)size_of(round, rank, to), MPI_BYTE, to, place_of(rank),
                 (int)size_of(round, rank, to), MPI_BYTE, held, &requests[to]);
    }
    for (int i = 0; i < BURST; i++) {
        burst[i] = content_of(round, rank, i, 5);
        for (int to = 0; to < ranks; to++)
            MPI_Put(&burst[i], 8, MPI_BYTE, to, burst_of(rank, i), 8, MPI_BYTE, held);
    }
    MPI_Waitall(ranks, requests, MPI_STATUSES_IGNORE);
    compute(round + 1);
    MPI_Win_flush_all(held);
    free_all(out);
    for (int from = 0; from < ranks; from++) {
        const size_t bytes = size_of(round, rank, from);
        out[from] = check_malloc(bytes);
        MPI_Rget(out[from], (int)bytes, MPI_BYTE, from, place_of(rank), (int)bytes, MPI_BYTE, held,
                 &requests[from]);
    }
    for (int from = 0; from < ranks; from++) {
        MPI_Wait(&requests[from], MPI_STATUS_IGNORE);
        check_content(out[from], size_of(round, rank, from), content_of(round, rank, from, 4),
                      "got back by a request");
    }
    MPI_Barrier(all);
    MPI_Win_sync(held);
    check_all_places(round, held_places, 4);
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < BURST; i++)
            CHECK(held_places[from].burst[i] == content_of(round, from, i, 5),
                  "put %d of a burst of rank %d", i, from);
    MPI_Barrier(all);
    free_all(out);
    free(requests);
    free(out);
}

/* Of the counters. */
enum { DRAWN, LOCK, GUARDED, ORDERED };

/** draw - numbers that no other rank draws, at each rank */
static void draw(int round)
{
    const int64_t one = 1, least = (int64_t)round * ranks;
    for (int target = 0; target < ranks; target++) {
        int64_t drawn = -1, sum = 0;
        if (round % 2)
            MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, target, DRAWN, MPI_SUM, counters);
        else
            MPI_Get_accumulate(&one, 1, MPI_INT64_T, &drawn, 1, MPI_INT64_T, target, DRAWN, 1,
                               MPI_INT64_T, MPI_SUM, counters);
        MPI_Win_flush(target, counters);
        CHECK(drawn >= least && drawn < least + ranks, "%lld drawn in round %d", (long long)drawn,
              round);
        MPI_Allreduce(&drawn, &sum, 1, MPI_INT64_T, MPI_SUM, all);
        CHECK(sum == ranks * least + ranks * (ranks - 1) / 2,
              "a number was drawn twice in round %d", round);
    }
}

/** guard - a number that is read and put plainly, by a lock made of compare-and-swap */
static void guard(int round)
{
    const int64_t nobody = 0, mine = rank + 1;
    const int target = round % ranks;
    int64_t found, value;
    do {
        MPI_Compare_and_swap(&mine, &nobody, &found, MPI_INT64_T, target, LOCK, counters);
        MPI_Win_flush(target, counters);
    } while (found != nobody);
    MPI_Get(&value, 1, MPI_INT64_T, target, GUARDED, 1, MPI_INT64_T, counters);
    MPI_Win_flush(target, counters);
    value++;
    MPI_Put(&value, 1, MPI_INT64_T, target, GUARDED, 1, MPI_INT64_T, counters);
    MPI_Win_flush(target, counters);
    MPI_Compare_and_swap(&nobody, &mine, &found, MPI_INT64_T, target, LOCK, counters);
    MPI_Win_flush(target, counters);
    CHECK(found == mine, "the lock was rank %lld's", (long long)found - 1);
    MPI_Barrier(all);
    if (rank == target) {
        MPI_Win_sync(counters);
        CHECK(cells[GUARDED] == (int64_t)(round / ranks + 1) * ranks, "counted to %lld in round %d",
              (long long)cells[GUARDED], round);
    }
    MPI_Barrier(all);
}

/** order - accumulates of one rank on one place are done in their order */
static void order(int round)
{
    const int place = ORDERED + rank;
    const int64_t one = 1;
    for (int target = 0; target < ranks; target++) {
        const int64_t start = (int64_t)round * 1000 + target;
        int64_t before = -1, last = -1;
        MPI_Accumulate(&start, 1, MPI_INT64_T, target, place, 1, MPI_INT64_T, MPI_REPLACE,
                       counters);
        for (int i = 0; i < 5; i++)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, place, 1, MPI_INT64_T, MPI_SUM, counters);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, place, MPI_SUM, counters);
        MPI_Fetch_and_op(NULL, &last, MPI_INT64_T, target, place, MPI_NO_OP, counters);
        MPI_Win_flush(target, counters);
        CHECK(before == start + 5 && last == start + 6,
              "%lld, then %lld, instead of %lld and 1 more", (long long)before, (long long)last,
              (long long)start + 5);
    }
}

/** use_dynamic - memory that is attached to a window, and detached again */
static void use_dynamic(int round)
{
    const int to = (rank + 1) % ranks;
    const int from = (rank + ranks - 1) % ranks;
    const int bytes = (int)size_of(round, rank, to);
    void *out = made(round, to, 6), *memory = check_malloc(MOST);
    MPI_Aint own, *at = check_malloc(ranks * sizeof *at);
    MPI_Win dynamic;
    MPI_Win_create_dynamic(MPI_INFO_NULL, all, &dynamic);
    MPI_Win_attach(dynamic, memory, MOST);
    MPI_Get_address(memory, &own);
    MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, all);
    MPI_Win_fence(0, dynamic);
    MPI_Put(out, bytes, MPI_BYTE, to, at[to], bytes, MPI_BYTE, dynamic);
    MPI_Win_fence(0, dynamic);
    check_content(memory, size_of(round, from, rank), content_of(round, from, rank, 6),
                  "put to attached memory");
    MPI_Win_detach(dynamic, memory);
    MPI_Win_free(&dynamic);
    free(at);
    free(memory);
    free(out);
}

/** use_part - a window of some ranks, of which the others know nothing */
static void use_part(int round)
{
    static MPI_Comm part = MPI_COMM_NULL;
    static MPI_Win partial;
    static uint64_t *memory;
    static int place, members;
    if (round < 0) {
        MPI_Win_free(&partial);
        MPI_Comm_free(&part);
        return;
    }
    if (part == MPI_COMM_NULL) {
        /* In the opposite order. */
        MPI_Comm_split(all, rank / 2, -rank, &part);
        MPI_Comm_rank(part, &place);
        MPI_Comm_size(part, &members);
        MPI_Win_allocate(members * sizeof *memory, sizeof *memory, MPI_INFO_NULL, part, &memory,
                         &partial);
    }
    const uint64_t mine = content_of(round, rank, 0, 7);
    MPI_Win_lock_all(0, partial);
    for (int to = 0; to < members; to++)
        MPI_Put(&mine, 1, MPI_UINT64_T, to, place, 1, MPI_UINT64_T, partial);
    MPI_Win_unlock_all(partial);
    MPI_Barrier(part);
    for (int from = 0; from < members; from++) {
        const int theirs = rank + place - from;
        CHECK(memory[from] == content_of(round, theirs, 0, 7), "put of rank %d in a part", theirs);
    }
    MPI_Barrier(part);
}

/** use_briefly - a window that is made and freed, in which one rank has no memory */
static void use_briefly(int round)
{
    const int without = round % ranks;
    uint64_t *memory = check_malloc(ranks * sizeof *memory);
    const uint64_t mine = content_of(round, rank, 0, 8);
    MPI_Win brief;
    memset(memory, 0, ranks * sizeof *memory);
    MPI_Win_create(rank == without ? NULL : memory,
                   rank == without ? 0 : ranks * (MPI_Aint)sizeof *memory, sizeof *memory,
                   MPI_INFO_NULL, all, &brief);
    MPI_Win_fence(0, brief);
    for (int to = 0; to < ranks; to++)
        if (to != without)
            MPI_Put(&mine, 1, MPI_UINT64_T, to, rank, 1, MPI_UINT64_T, brief);
    MPI_Win_fence(0, brief);
    for (int from = 0; from < ranks && rank != without; from++)
        CHECK(memory[from] == content_of(round, from, 0, 8), "put of rank %d in a new window",
              from);
    MPI_Win_free(&brief);
    free(memory);
}

/* ---- the job ---- */

static void open_windows(void)
{
    const MPI_Aint bytes = ranks * (MPI_Aint)sizeof(place_t);
    MPI_Info info;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, all, &places, &window);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, all, &held_places, &held);
    /* What UCX's atomic operations need, if it may do them. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "which_accumulate_ops", "sum,replace,no_op,cswap");
    MPI_Info_set(info, "accumulate_noncontig_dtype", "false");
    MPI_Info_set(info, "accumulate_max_bytes", "8");
    MPI_Win_create(cells, sizeof cells, 8, info, all, &counters);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, held);
    MPI_Win_lock_all(0, counters);
    MPI_Barrier(all);
}

/** reach_all - a key that is asked for comes while the rank waits for it in MPI, as here it does */
static void reach_all(void)
{
    const double late = MPI_Wtime() + 60;
    const char one = 1;
    MPI_Barrier(all); /* all have been told to leave as often as they will be */
    for (int to = 0; to < ranks; to++)
        for (const long before = puts_of_ucx; to != rank && puts_of_ucx == before;) {
            MPI_Put(&one, 1, MPI_BYTE, to, place_of(rank), 1, MPI_BYTE, held);
            MPI_Win_flush(to, held);
            CHECK(MPI_Wtime() < late, "rank %d is still reached by messages", to);
        }
    MPI_Barrier(all);
}

static void close_windows(void)
{
    MPI_Win_unlock_all(counters);
    MPI_Win_unlock_all(held);
    MPI_Win_free(&counters);
    MPI_Win_free(&held);
    MPI_Win_free(&window);
}

/** connect_anew - parents and children, which have parted */
static MPI_Comm connect_anew(MPI_Comm inter)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm comm;
    if (check_rank == 0 && job_is_child()) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, NAME_OF_PORT, inter, MPI_STATUS_IGNORE);
    } else if (check_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, NAME_OF_PORT, inter);
    }
    MPI_Comm_disconnect(&inter);
    if (job_is_child()) {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
    } else {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
        if (check_rank == 0)
            MPI_Close_port(port);
    }
    return comm;
}

/** leave_first - returns when all parents that are told to have left as often as they do */
static void leave_first(void)
{
    int parents = job.number - (strcmp(job.told, "-") != 0), go_on = 1, there;
    for (const char *p = job.told; *p; p++)
        parents -= *p == ',';
    if (check_rank == 0)
        mark(job.file, ".ready");
    while (go_on) {
        go_on = job_through(check_ranks) < parents;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    }
}

/** meet - all that have the windows */
static void meet(void)
{
    if (job_is_child() || job.children > 0) {
        if (!job_is_child() && job_wants("first"))
            leave_first();
        MPI_Comm inter = job_have_children();
        if (job_wants("connect"))
            inter = connect_anew(inter);
        MPI_Intercomm_merge(inter, job_is_child(), &all);
        MPI_Comm_disconnect(&inter);
    } else {
        all = MPI_COMM_WORLD;
    }
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    MPI_Bcast(&check_seed, 1, MPI_UINT64_T, 0, all);
}

int main(int argc, char **argv)
{
    static const char *const roles[] = {"child", NULL};
    static const struct {
        const char *what;
        void (*use)(int round);
    } kinds[] = {
        {"fence", use_fence}, {"pscw", use_pscw},     {"lock", use_lock}, {"held", use_held},
        {"ordered", order},   {"drawn", draw},        {"guarded", guard}, {"dynamic", use_dynamic},
        {"part", use_part},   {"brief", use_briefly},
    };
    int go_on = 1, rounds = 0;
    job_read(argc, argv, roles);
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet();
    CHECK(ranks + ORDERED <= CELLS, "%d ranks", ranks);
    open_windows();
    registers_none = job_wants("unregistered");
    if (rank == 0)
        mark(job.file, ".ready");
    for (; go_on; rounds++) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (wants(kinds[i].what))
                kinds[i].use(rounds);
        if (wants("computing"))
            check_sleep_ms((int)(content_of(rounds, rank, 0, 10) % 10));
        go_on = rank == 0 ? job_through(ranks) < job.number : 0;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, all);
    }
    if (wants("part"))
        use_part(-1);
    if (job_wants("reached"))
        reach_all();
    close_windows();
    if (all != MPI_COMM_WORLD)
        MPI_Comm_disconnect(&all);
    if (rank == 0)
        printf("# %d rounds\n", rounds);
    return job_is_child() ? MPI_Finalize() : check_finish();
}
