/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small jobs of two ranks that reach much of the netmod, for run and preload.c to fail calls in.
 *
 * usage: program CASE [fatal]
 *
 * Every byte received is checked. MPI's errors are returned (`fatal`: not so). A call that only
 * begins something is made once more after an error, and all that follows must go well: nothing
 * of the first attempt may be left. Any other error ends the job in the words that came with it.
 */
#include "../check.h"
#include <stdbool.h>
#include <sys/socket.h>

enum { GO = 1000, DATA = 1, MAX = 256 };

static int me, other;

static void say(const char *call, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "rank %d: %s returned an error: %s\n", check_rank, call, text);
    fflush(stderr);
}

static void must(const char *call, int error)
{
    if (error != MPI_SUCCESS) {
        say(call, error);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

#define MUST(call) must(#call, call)

#define BEGIN(call)                                                                                \
    do {                                                                                           \
        int error_ = call;                                                                         \
        if (error_ != MPI_SUCCESS) {                                                               \
            say(#call, error_);                                                                    \
            must(#call ", once more,", call);                                                      \
        }                                                                                          \
    } while (0)

/* Errors are returned from now on, on what is made of @comm, too. */
static void return_errors(MPI_Comm comm, bool fatal)
{
    if (!fatal)
        MUST(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}

static void wait_all(int count, MPI_Request *requests)
{
    MPI_Status status[MAX];
    int error = MPI_Waitall(count, requests, status);
    if (error == MPI_ERR_IN_STATUS) {
        for (int i = 0; i < count; i++)
            if (status[i].MPI_ERROR != MPI_SUCCESS && status[i].MPI_ERROR != MPI_ERR_PENDING)
                must("MPI_Waitall", status[i].MPI_ERROR);
    }
    must("MPI_Waitall", error);
}

/* ---- messages one way ---- */

enum post { EARLY, LATE, PROBED };
enum send { STANDARD, SYNCHRONOUS, PERSISTENT };

struct plan {
    enum post post;
    enum send send;
    bool strided;            /* every second block of 16 bytes, at both ends */
    void (*meanwhile)(void); /* unless NULL, when messages are under way */
    int count;
    size_t bytes[MAX];
};

static MPI_Datatype type_of(const struct plan *plan, size_t bytes)
{
    MPI_Datatype type = MPI_BYTE;
    if (plan->strided) {
        MUST(MPI_Type_vector((int)(bytes / 16), 16, 32, MPI_BYTE, &type));
        MUST(MPI_Type_commit(&type));
    }
    return type;
}

static void free_type(MPI_Datatype *type)
{
    if (*type != MPI_BYTE)
        MUST(MPI_Type_free(type));
}

/* Between the buffer of a message and its bytes in a row. */
static void put_in_place(const struct plan *plan, char *buffer, size_t bytes, uint64_t seed)
{
    char *row = plan->strided ? check_malloc(bytes) : buffer;
    pattern_fill(row, bytes, seed);
    if (plan->strided) {
        for (size_t i = 0; i < bytes / 16; i++)
            memcpy(buffer + 32 * i, row + 16 * i, 16);
        free(row);
    }
}

static void check_in_place(const struct plan *plan, const char *buffer, size_t bytes, uint64_t seed)
{
    if (!plan->strided) {
        check_content(buffer, bytes, seed, "message");
        return;
    }
    char *row = check_malloc(bytes);
    for (size_t i = 0; i < bytes / 16; i++)
        memcpy(row + 16 * i, buffer + 32 * i, 16);
    check_content(row, bytes, seed, "message");
    free(row);
}

static uint64_t seed_of(int from, int nth)
{
    return check_seed + (uint64_t)(from * MAX + nth);
}

static void send_all(const struct plan *plan, MPI_Comm comm, int to)
{
    char *buffers[MAX];
    MPI_Request requests[MAX];
    MPI_Datatype types[MAX];

    MUST(MPI_Recv(NULL, 0, MPI_BYTE, to, GO, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < plan->count; i++) {
        const size_t bytes = plan->bytes[i];
        const int items = plan->strided ? 1 : (int)bytes;
        MPI_Request *request = &requests[i];
        buffers[i] = check_malloc(2 * bytes);
        put_in_place(plan, buffers[i], bytes, seed_of(me, i));
        types[i] = type_of(plan, bytes);
        switch (plan->send) {
        case STANDARD:
            BEGIN(MPI_Isend(buffers[i], items, types[i], to, DATA + i, comm, request));
            break;
        case SYNCHRONOUS:
            BEGIN(MPI_Issend(buffers[i], items, types[i], to, DATA + i, comm, request));
            break;
        case PERSISTENT:
            MUST(MPI_Send_init(buffers[i], items, types[i], to, DATA + i, comm, request));
            BEGIN(MPI_Start(request));
            break;
        }
    }
    if (plan->meanwhile)
        plan->meanwhile();
    wait_all(plan->count, requests);
    for (int i = 0; i < plan->count; i++) {
        if (requests[i] != MPI_REQUEST_NULL)
            MUST(MPI_Request_free(&requests[i]));
        free_type(&types[i]);
        free(buffers[i]);
    }
}

static void go(MPI_Comm comm, int to)
{
    MPI_Request request;
    BEGIN(MPI_Isend(NULL, 0, MPI_BYTE, to, GO, comm, &request));
    wait_all(1, &request);
}

static void receive_all(const struct plan *plan, MPI_Comm comm, int from)
{
    char *buffers[MAX];
    MPI_Request requests[MAX];
    MPI_Datatype types[MAX];

    if (plan->post != EARLY) {
        go(comm, from);
        if (plan->meanwhile)
            plan->meanwhile();
        check_sleep_ms(30);
        MUST(MPI_Probe(from, DATA + plan->count - 1, comm, MPI_STATUS_IGNORE));
    }
    for (int n = 0; n < plan->count; n++) {
        /* Late ones against the order in which they have come. */
        const int i = plan->post == EARLY ? n : plan->count - 1 - n;
        const size_t bytes = plan->bytes[i];
        const int items = plan->strided ? 1 : (int)bytes;
        buffers[i] = check_malloc(2 * bytes);
        memset(buffers[i], 0xa5, 2 * bytes);
        types[i] = type_of(plan, bytes);
        if (plan->post == PROBED) {
            MPI_Message message;
            MPI_Status status;
            int count;
            MUST(MPI_Mprobe(from, DATA + i, comm, &message, &status));
            MUST(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK((size_t)count == bytes, "%d bytes probed of %zu", count, bytes);
            MUST(MPI_Imrecv(buffers[i], items, types[i], &message, &requests[i]));
        } else if (plan->send == PERSISTENT) {
            MUST(MPI_Recv_init(buffers[i], items, types[i], from, DATA + i, comm, &requests[i]));
            MUST(MPI_Start(&requests[i]));
        } else {
            MUST(MPI_Irecv(buffers[i], items, types[i], from, DATA + i, comm, &requests[i]));
        }
    }
    if (plan->post == EARLY)
        go(comm, from);
    if (plan->post == EARLY && plan->meanwhile)
        plan->meanwhile();
    wait_all(plan->count, requests);
    for (int i = 0; i < plan->count; i++) {
        check_in_place(plan, buffers[i], plan->bytes[i], seed_of(other, i));
        if (requests[i] != MPI_REQUEST_NULL)
            MUST(MPI_Request_free(&requests[i]));
        free_type(&types[i]);
        free(buffers[i]);
    }
}

/* There and back. */
static void exchange_over(MPI_Comm comm, const struct plan *plan)
{
    for (int sender = 0; sender < 2; sender++) {
        if (me == sender)
            send_all(plan, comm, other);
        else
            receive_all(plan, comm, other);
    }
}

static void exchange(const struct plan *plan)
{
    exchange_over(MPI_COMM_WORLD, plan);
}

/* With the receives posted in each way, up to @last. */
static void exchange_posted(struct plan plan, enum post last)
{
    for (int post = EARLY; post <= (int)last; post++) {
        plan.post = (enum post)post;
        exchange(&plan);
    }
}

/* ---- the cases ---- */

static const struct plan mixed = {
    .count = 9,
    .bytes = {0, 8, 100, 2048, 2049, 8192, 100000, 300000, 16},
};

/* Short messages, long ones below the threshold, which shorter ones overtake. */
static void eager(void)
{
    struct plan plan = {.count = 8, .bytes = {100000, 8, 70000, 0, 100, 2048, 4096, 16}};
    exchange_posted(plan, LATE);
}

/* More than CH4's lists are walked for. */
static void flood(void)
{
    struct plan plan = {.count = 200, .post = LATE};
    for (int i = 0; i < plan.count; i++)
        plan.bytes[i] = (size_t)i % 3 * 100 + 8;
    exchange(&plan);
    plan.post = EARLY;
    exchange(&plan);
}

static void large(void)
{
    struct plan plan = {.count = 6, .bytes = {200000, MIB, 8, 150000, 4 * MIB, 131072}};
    exchange_posted(plan, PROBED);
}

static void strided(void)
{
    struct plan plan = {.count = 4, .strided = true, .bytes = {64, 8192, 262144, MIB}};
    exchange_posted(plan, PROBED);
}

static void persistent(void)
{
    struct plan plan = mixed;
    plan.send = PERSISTENT;
    exchange_posted(plan, LATE);
}

static void synchronous(void)
{
    struct plan plan = mixed;
    plan.send = SYNCHRONOUS;
    exchange_posted(plan, PROBED);
}

/* A receive that is too short, of a message that is announced and of one that is not. */
static void truncated(void)
{
    static const size_t sizes[] = {4096, MIB};
    for (int late = 0; late < 2; late++) {
        for (int s = 0; s < 2; s++) {
            const size_t bytes = sizes[s];
            char *buffer = check_malloc(bytes);
            MPI_Request request;
            if (me == 0) {
                pattern_fill(buffer, bytes, seed_of(0, s));
                MUST(MPI_Recv(NULL, 0, MPI_BYTE, other, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                BEGIN(
                    MPI_Isend(buffer, (int)bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &request));
                wait_all(1, &request);
            } else {
                const int room = (int)bytes - 100;
                memset(buffer, 0xa5, bytes);
                if (late) {
                    go(MPI_COMM_WORLD, other);
                    check_sleep_ms(30);
                }
                MUST(MPI_Irecv(buffer, room, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &request));
                if (!late)
                    go(MPI_COMM_WORLD, other);
                int error = MPI_Wait(&request, MPI_STATUS_IGNORE), class;
                MPI_Error_class(error, &class);
                if (class != MPI_ERR_TRUNCATE) {
                    must("MPI_Wait", error);
                    CHECK(0, "a truncated message is not said to be one");
                }
                for (int i = 0; i < 100; i++)
                    CHECK((unsigned char)buffer[room + i] == 0xa5, "wrong data past the receive");
            }
            free(buffer);
        }
    }
}

/* Bursts of short messages; environment: they wait for each other. */
static void bursts(void)
{
    struct plan plan = {.count = 24};
    for (int i = 0; i < plan.count; i++)
        plan.bytes[i] = (size_t)(i % 5) * 150;
    for (int round = 0; round < 6; round++) {
        plan.post = round % 2 ? LATE : EARLY;
        exchange(&plan);
    }
}

/* Much more than landing memory holds; environment: that is little. */
static void refused(void)
{
    struct plan plan = {.count = 12, .post = LATE};
    for (int i = 0; i < plan.count; i++)
        plan.bytes[i] = MIB / 2 + (size_t)i * 4096;
    exchange(&plan);
}

static void collectives(void)
{
    enum { WORDS = 50000 };
    MPI_Comm dup, split, self;
    int *mine = check_malloc(WORDS * sizeof *mine), *sum = check_malloc(WORDS * sizeof *sum);

    MUST(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    MUST(MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &split));
    MUST(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &self));
    for (int i = 0; i < WORDS; i++)
        mine[i] = i * (me + 1);
    MUST(MPI_Allreduce(mine, sum, WORDS, MPI_INT, MPI_SUM, dup));
    for (int i = 0; i < WORDS; i++)
        CHECK(sum[i] == 3 * i, "wrong data: sum %d is %d", i, sum[i]);
    MUST(MPI_Alltoall(mine, WORDS / 2, MPI_INT, sum, WORDS / 2, MPI_INT, split));
    for (int i = 0; i < WORDS / 2; i++) {
        /* In `split` rank 1 comes first. */
        const int at = (1 - me) * (WORDS / 2) + i;
        CHECK(sum[i] == 2 * at && sum[WORDS / 2 + i] == at, "wrong data from all: word %d", i);
    }
    MPI_Request requests[2];
    int all = 0, one = me + 1, told = me == 0 ? 42 : 0;
    MUST(MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, dup, &requests[0]));
    MUST(MPI_Ibcast(&told, 1, MPI_INT, 0, split, &requests[1]));
    wait_all(2, requests);
    CHECK(all == 3, "wrong data: sum %d", all);
    /* By another algorithm than the long one's. */
    MUST(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, dup));
    CHECK(all == 3, "wrong data: short sum %d", all);
    exchange_over(dup, &mixed);
    MUST(MPI_Barrier(split));
    MUST(MPI_Comm_free(&self));
    MUST(MPI_Comm_free(&split));
    MUST(MPI_Comm_free(&dup));
    free(mine);
    free(sum);
}

/* ---- one-sided ---- */

enum { CELLS = 40000 };

static void puts_and_gets(MPI_Win win, uint64_t *memory)
{
    uint64_t *from = check_malloc(CELLS * sizeof *from), *to = check_malloc(CELLS * sizeof *to);
    MPI_Request requests[2];
    MPI_Datatype columns;

    MUST(MPI_Type_vector(100, 2, 8, MPI_UINT64_T, &columns));
    MUST(MPI_Type_commit(&columns));
    pattern_fill(from, CELLS * sizeof *from, seed_of(me, 0));
    MUST(MPI_Win_fence(0, win));
    BEGIN(MPI_Put(from, CELLS, MPI_UINT64_T, other, 0, CELLS, MPI_UINT64_T, win));
    MUST(MPI_Win_fence(0, win));
    check_content(memory, CELLS * sizeof *memory, seed_of(other, 0), "put");
    MUST(MPI_Win_fence(0, win));
    BEGIN(MPI_Get(to, CELLS, MPI_UINT64_T, other, 0, CELLS, MPI_UINT64_T, win));
    MUST(MPI_Win_fence(0, win));
    check_content(to, CELLS * sizeof *to, seed_of(me, 0), "get");

    MUST(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    BEGIN(MPI_Rput(from, CELLS / 2, MPI_UINT64_T, other, 0, CELLS / 2, MPI_UINT64_T, win,
                   &requests[0]));
    BEGIN(MPI_Rget(to, CELLS / 2, MPI_UINT64_T, other, CELLS / 2, CELLS / 2, MPI_UINT64_T, win,
                   &requests[1]));
    wait_all(2, requests);
    MUST(MPI_Win_flush(other, win));
    BEGIN(MPI_Put(from, 1, columns, other, 0, 1, columns, win));
    BEGIN(MPI_Get(to, 1, columns, other, CELLS / 2, 1, columns, win));
    MUST(MPI_Win_unlock(other, win));
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    check_content(memory, CELLS / 2 * sizeof *memory, seed_of(other, 0), "put once more");
    /* To ourselves UCX delivers while it sends. */
    MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win));
    BEGIN(MPI_Put(from, 1, MPI_UINT64_T, me, 0, 1, MPI_UINT64_T, win));
    MUST(MPI_Win_unlock(me, win));
    CHECK(memory[0] == from[0], "wrong data: %s", "put to ourselves");
    MUST(MPI_Type_free(&columns));
    free(from);
    free(to);
}

static void accumulate(MPI_Win win, uint64_t *memory)
{
    enum { SUMS = 4000 };
    uint64_t *ones = check_malloc(SUMS * sizeof *ones), *old = check_malloc(SUMS * sizeof *old);
    uint64_t one = 1, found = 0, zero = 0;

    for (int i = 0; i < SUMS; i++)
        ones[i] = 1, memory[i] = 0, old[i] = 7;
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    MUST(MPI_Win_lock_all(0, win));
    /* An error may come when a part has been done: so these are not begun once more. */
    MUST(MPI_Accumulate(ones, SUMS, MPI_UINT64_T, other, 0, SUMS, MPI_UINT64_T, MPI_SUM, win));
    MUST(MPI_Win_flush_all(win));
    MUST(MPI_Get_accumulate(ones, SUMS, MPI_UINT64_T, old, SUMS, MPI_UINT64_T, other, 0, SUMS,
                            MPI_UINT64_T, MPI_SUM, win));
    MUST(MPI_Win_flush_all(win));
    for (int i = 0; i < SUMS; i++)
        CHECK(old[i] == 1, "wrong data: sum %d was %d", i, (int)old[i]);
    MUST(MPI_Accumulate(&one, 1, MPI_UINT64_T, other, 0, 1, MPI_UINT64_T, MPI_SUM, win));
    MUST(MPI_Win_flush_all(win));
    MUST(MPI_Fetch_and_op(&one, &found, MPI_UINT64_T, other, 0, MPI_SUM, win));
    MUST(MPI_Win_flush(other, win));
    CHECK(found == 3, "wrong data: %d found", (int)found);
    MUST(MPI_Compare_and_swap(&zero, &(uint64_t){4}, &found, MPI_UINT64_T, other, 0, win));
    MUST(MPI_Win_unlock_all(win));
    CHECK(found == 4, "wrong data: %d found by comparing", (int)found);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(memory[0] == 0 && memory[1] == 2, "wrong data: sums %d and %d", (int)memory[0],
          (int)memory[1]);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    free(ones);
    free(old);
}

static bool fatal;

static void window(void)
{
    uint64_t *memory = check_malloc(CELLS * sizeof *memory);
    MPI_Win win;

    memset(memory, 0, CELLS * sizeof *memory);
    MUST(MPI_Win_create(memory, CELLS * sizeof *memory, sizeof *memory, MPI_INFO_NULL,
                        MPI_COMM_WORLD, &win));
    if (!fatal)
        MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    puts_and_gets(win, memory);
    accumulate(win, memory);
    MUST(MPI_Win_free(&win));
    free(memory);

    MUST(MPI_Win_allocate(CELLS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                          &memory, &win));
    if (!fatal)
        MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(memory, 0, CELLS * sizeof *memory);
    puts_and_gets(win, memory);
    MUST(MPI_Win_free(&win));
}

/* In a window that promises what UCX's atomic operations need; environment: they are used. */
static void atomics(void)
{
    uint64_t *memory = check_malloc(CELLS * sizeof *memory);
    uint64_t words[4] = {1, 2, 3, 4}, old[4] = {9, 9, 9, 9}, zero = 0, found = 9;
    MPI_Request request;
    MPI_Info info;
    MPI_Win win;

    memset(memory, 0, CELLS * sizeof *memory);
    MUST(MPI_Info_create(&info));
    MUST(MPI_Info_set(info, "which_accumulate_ops", "sum,replace,no_op,cswap"));
    MUST(MPI_Info_set(info, "accumulate_noncontig_dtype", "false"));
    MUST(MPI_Info_set(info, "accumulate_max_bytes", "64"));
    MUST(
        MPI_Win_create(memory, CELLS * sizeof *memory, sizeof *memory, info, MPI_COMM_WORLD, &win));
    MUST(MPI_Info_free(&info));
    if (!fatal)
        MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    MUST(MPI_Win_lock_all(0, win));
    MUST(MPI_Accumulate(words, 4, MPI_UINT64_T, other, 0, 4, MPI_UINT64_T, MPI_SUM, win));
    MUST(MPI_Win_flush(other, win));
    MUST(
        MPI_Raccumulate(words, 4, MPI_UINT64_T, other, 0, 4, MPI_UINT64_T, MPI_SUM, win, &request));
    wait_all(1, &request);
    MUST(MPI_Win_flush(other, win));
    MUST(MPI_Rget_accumulate(words, 4, MPI_UINT64_T, old, 4, MPI_UINT64_T, other, 0, 4,
                             MPI_UINT64_T, MPI_REPLACE, win, &request));
    wait_all(1, &request);
    for (int i = 0; i < 4; i++)
        CHECK(old[i] == 2 * words[i], "wrong data: word %d was %d", i, (int)old[i]);
    MUST(MPI_Fetch_and_op(&words[3], &found, MPI_UINT64_T, other, 1, MPI_SUM, win));
    MUST(MPI_Win_flush(other, win));
    CHECK(found == 2, "wrong data: %d found", (int)found);
    MUST(MPI_Compare_and_swap(&zero, &words[0], &found, MPI_UINT64_T, other, 0, win));
    MUST(MPI_Win_unlock_all(win));
    CHECK(found == 1, "wrong data: %d found by comparing", (int)found);
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(memory[0] == 0 && memory[1] == 6 && memory[3] == 4, "wrong data: %d, %d, %d",
          (int)memory[0], (int)memory[1], (int)memory[3]);
    MUST(MPI_Win_free(&win));
    free(memory);
}

/* ---- other worlds ---- */

static const char *own_name;

/* The processes of both worlds, rank by rank. @meanwhile: unless NULL, when messages are under way
 */
static void exchange_between(MPI_Comm worlds, bool parent, void (*meanwhile)(void))
{
    me = parent ? 0 : 1;
    other = check_rank;
    struct plan plan = {.meanwhile = meanwhile, .count = 4, .bytes = {8, 5000, MIB, 100000}};
    for (int post = EARLY; post <= LATE; post++) {
        plan.post = (enum post)post;
        for (int sender = 0; sender < 2; sender++) {
            /* Seeds go by which is the parent and which the child. */
            if (me == sender) {
                send_all(&plan, worlds, check_rank);
            } else {
                other = sender;
                me = 1 - sender;
                const int from = check_rank;
                receive_all(&plan, worlds, from);
            }
        }
    }
}

/* A process that has parted from a rank keeps it from leaving, as long as that has not. (Not
 * MPI_Barrier(): where it cannot send, it goes on, and waits for an answer.) */
static void stay_together(MPI_Comm worlds)
{
    const char *leaves = getenv("MPIR_CVAR_CH4_ZC_DETACH");
    for (int i = 0; leaves && strcmp(leaves, "1") == 0 && i < check_ranks; i++)
        MUST(MPI_Sendrecv(NULL, 0, MPI_BYTE, i, GO, NULL, 0, MPI_BYTE, i, GO, worlds,
                          MPI_STATUS_IGNORE));
}

/* Makes communicators of the other VCIs, if there are any, and uses each. @meanwhile: unless NULL,
 * when that has connections. */
static void use_vcis_between(MPI_Comm across, bool is_child, void (*meanwhile)(void))
{
    const char *several = getenv("MPIR_CVAR_CH4_NUM_VCIS");
    MPI_Comm all, comm;
    if (!several)
        return;
    MUST(MPI_Intercomm_merge(across, is_child, &all));
    for (int i = 0; i < atoi(several); i++) {
        int sum = 0, size;
        MUST(MPI_Comm_dup(all, &comm));
        MUST(MPI_Comm_size(comm, &size));
        MUST(MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size, "%d of %d", sum, size);
        if (meanwhile)
            meanwhile();
        MUST(MPI_Comm_free(&comm));
    }
    stay_together(across);
    MUST(MPI_Comm_disconnect(&all));
}

static void child(void)
{
    MPI_Comm parent;
    MUST(MPI_Comm_get_parent(&parent));
    return_errors(parent, fatal);
    exchange_between(parent, false, NULL);
    stay_together(parent);
    use_vcis_between(parent, true, NULL);
    MUST(MPI_Comm_disconnect(&parent));
}

static void spawn_and_exchange(void (*meanwhile)(void))
{
    MPI_Comm children;
    char *words[] = {"child", fatal ? "fatal" : NULL, NULL};
    const char *wrapper = getenv("FAIL_NTH_SPAWN");
    CHECK(wrapper, "no wrapper for children: %s", "FAIL_NTH_SPAWN");
    char *more[] = {(char *)own_name, words[0], words[1], NULL};
    MUST(MPI_Comm_spawn(wrapper, more, check_ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                        MPI_ERRCODES_IGNORE));
    return_errors(children, fatal);
    exchange_between(children, true, meanwhile);
    stay_together(children);
    use_vcis_between(children, false, meanwhile);
    MUST(MPI_Comm_disconnect(&children));
}

static void spawn(void)
{
    spawn_and_exchange(NULL);
}

/* ---- several VCIs; environment: how many ---- */

static void vcis(void)
{
    MPI_Comm comms[3];
    for (int i = 0; i < 3; i++)
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    struct plan plan = mixed;
    for (int i = 0; i < 3; i++) {
        plan.post = i % 2 ? LATE : EARLY;
        exchange_over(comms[i], &plan);
    }
    for (int i = 0; i < 3; i++)
        MUST(MPI_Comm_free(&comms[i]));
}

/* ---- a rank that leaves and comes back, and is its own holder; environment: DETACH ---- */

static struct {
    int orders; /* this process's end of the socket */
    int given, carried_out;
} holder;

/* Before MPI_Init. */
static void hold(void)
{
    int ends[2];
    char number[16];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "%s", "no sockets");
    holder.orders = ends[0];
    snprintf(number, sizeof number, "%d", ends[1]);
    setenv("MPIR_CVAR_CH4_ZC_DETACH_FD", number, 1);
}

/* What this process does until a line has come: if nothing else makes progress, that. */
static void pass_time(void)
{
    static const char thread[] = "MPIR_CVAR_CH4_ZC_LANDING_THREAD";
    int there;
    if (strcmp(getenv(thread), "0") == 0)
        MUST(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
    else
        check_sleep_ms(1);
}

/* Rank 1 leaves and comes back. The token is there before, so no other process is needed. Nothing
 * takes connections at the port that is named, so another world does without. */
static void leave(void)
{
    char answers[600];
    size_t length = 0;
    if (check_rank != 1)
        return;
    CHECK(dprintf(holder.orders, "LIVES 1 1 60\nLEAVE\nBIND %d\n", ++holder.given) > 0, "%s",
          "no order");
    for (int lines = 0; lines < 2;) {
        const ssize_t one = recv(holder.orders, answers + length, 1, MSG_DONTWAIT);
        if (one == 1 && length < sizeof answers - 1)
            lines += answers[length++] == '\n';
        else
            pass_time();
    }
    answers[length] = '\0';
    holder.carried_out += strstr(answers, "BOUND") != NULL;
}

static void leaves(void)
{
    struct plan plan = {.meanwhile = leave, .count = 6, .bytes = {8, 3000, 100000, MIB, 0, 200000}};
    const char *fails = getenv("FAIL_NTH_CALL");
    exchange_posted(plan, LATE);
    CHECK(holder.carried_out == holder.given || (fails && *fails),
          "%d of %d orders were carried out", holder.carried_out, holder.given);
}

/* A parent, while it and its children send to each other. */
static void leaves_worlds(void)
{
    const char *fails = getenv("FAIL_NTH_CALL");
    spawn_and_exchange(leave);
    CHECK(holder.carried_out == holder.given || (fails && *fails),
          "%d of %d orders were carried out", holder.carried_out, holder.given);
}

/* On other VCIs than the first; environment: how many. */
static void leaves_vcis(void)
{
    struct plan plan = {
        .meanwhile = leave, .post = LATE, .count = 4, .bytes = {8, 3000, MIB, 200000}};
    const char *fails = getenv("FAIL_NTH_CALL");
    MPI_Comm comms[2];
    for (int i = 0; i < 2; i++)
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < 2; i++)
        exchange_over(comms[i], &plan);
    for (int i = 0; i < 2; i++)
        MUST(MPI_Comm_free(&comms[i]));
    CHECK(holder.carried_out == holder.given || (fails && *fails),
          "%d of %d orders were carried out", holder.carried_out, holder.given);
}

/* A window that is used before, while and after that. */
static void leaves_window(void)
{
    uint64_t *memory = check_malloc(CELLS * sizeof *memory);
    const char *fails = getenv("FAIL_NTH_CALL");
    MPI_Win win;

    memset(memory, 0, CELLS * sizeof *memory);
    MUST(MPI_Win_create(memory, CELLS * sizeof *memory, sizeof *memory, MPI_INFO_NULL,
                        MPI_COMM_WORLD, &win));
    if (!fatal)
        MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3; i++) {
        memset(memory, 0, CELLS * sizeof *memory);
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        puts_and_gets(win, memory);
        leave();
    }
    MUST(MPI_Win_free(&win));
    free(memory);
    CHECK(holder.carried_out == holder.given || (fails && *fails),
          "%d of %d orders were carried out", holder.carried_out, holder.given);
}

/* MPI_Init and MPI_Finalize alone. */
static void nothing(void) {}

static const struct {
    const char *name;
    void (*run)(void);
    int level;
    void (*prepare)(void); /* before MPI_Init */
} cases[] = {
    {"nothing", nothing, MPI_THREAD_SINGLE, NULL},
    {"eager", eager, MPI_THREAD_SINGLE, NULL},
    {"flood", flood, MPI_THREAD_SINGLE, NULL},
    {"large", large, MPI_THREAD_SINGLE, NULL},
    {"strided", strided, MPI_THREAD_SINGLE, NULL},
    {"persistent", persistent, MPI_THREAD_SINGLE, NULL},
    {"synchronous", synchronous, MPI_THREAD_SINGLE, NULL},
    {"truncated", truncated, MPI_THREAD_SINGLE, NULL},
    {"bursts", bursts, MPI_THREAD_SINGLE, NULL},
    {"refused", refused, MPI_THREAD_SINGLE, NULL},
    {"collectives", collectives, MPI_THREAD_SINGLE, NULL},
    {"window", window, MPI_THREAD_SINGLE, NULL},
    {"atomics", atomics, MPI_THREAD_SINGLE, NULL},
    {"spawn", spawn, MPI_THREAD_SINGLE, NULL},
    {"child", child, MPI_THREAD_SINGLE, NULL},
    {"vcis", vcis, MPI_THREAD_MULTIPLE, NULL},
    {"leaves", leaves, MPI_THREAD_SINGLE, hold},
    {"leaves_vcis", leaves_vcis, MPI_THREAD_MULTIPLE, hold},
    {"leaves_window", leaves_window, MPI_THREAD_SINGLE, hold},
    {"leaves_worlds", leaves_worlds, MPI_THREAD_SINGLE, hold},
};

int main(int argc, char **argv)
{
    own_name = argv[0];
    fatal = argc > 2 && !strcmp(argv[2], "fatal");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        if (cases[i].prepare)
            cases[i].prepare();
        check_init(&argc, &argv, cases[i].level);
        me = check_rank;
        other = 1 - me;
        return_errors(MPI_COMM_WORLD, fatal);
        cases[i].run();
        /* Not check_announce_end(): a rank that has not left the barrier is not to be left in
         * finalize. */
        MUST(MPI_Barrier(MPI_COMM_WORLD));
        int error = MPI_Finalize();
        if (error != MPI_SUCCESS) {
            /* What it means is not to be asked any more. */
            fprintf(stderr, "rank %d: MPI_Finalize returned an error\n", check_rank);
            return 3;
        }
        return 0;
    }
    fprintf(stderr, "usage: program CASE [fatal]\n");
    return 2;
}
