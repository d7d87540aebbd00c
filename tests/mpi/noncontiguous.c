/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages of data that is not one piece, or that does not fit its receive.
 *
 *   noncontiguous types     of many datatypes, at the sender, the receiver or both, posted first
 *                           or late, whole or truncated: the right bytes in the right places
 *   noncontiguous memory MIB  neither side needs memory that grows with the message, received
 *                           late or not, and either comes through where there is none
 *                           (RLIMIT_AS). The landing budget is less than the message takes
 *   noncontiguous truncated a message of 2 GiB meets a receive of 4 bytes: no memory for what is
 *                           not wanted
 */
#include "counter.h"
#include "status.h"
#include <stddef.h>
#include <sys/resource.h>

enum { GO = 1, DATA = 2 };

/* ---- datatypes ---- */

struct record {
    char kind;
    int number;
    double value;
    short tail;
};

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent)
{
    MPI_Datatype out;
    MPI_Type_create_resized(type, 0, extent, &out);
    MPI_Type_free(&type);
    return out;
}

/* 15 bytes, whose elements begin anywhere once they are packed. */
static MPI_Datatype records(void)
{
    const int lengths[] = {1, 1, 1, 1};
    const MPI_Aint places[] = {offsetof(struct record, kind), offsetof(struct record, number),
                               offsetof(struct record, value), offsetof(struct record, tail)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT};
    MPI_Datatype out;
    MPI_Type_create_struct(4, lengths, places, types, &out);
    return resized(out, sizeof(struct record));
}

static MPI_Datatype strided(void)
{
    MPI_Datatype out;
    MPI_Type_vector(1000, 3, 5, MPI_INT, &out);
    return resized(out, 1000 * 5 * sizeof(int));
}

static MPI_Datatype strided_records(void)
{
    MPI_Datatype record = records(), out;
    MPI_Type_vector(77, 2, 3, record, &out);
    MPI_Type_free(&record);
    return resized(out, 77 * 3 * sizeof(struct record));
}

static MPI_Datatype irregular(void)
{
    enum { BLOCKS = 5000 };
    static int lengths[BLOCKS];
    static MPI_Aint places[BLOCKS];
    uint64_t state = 7;
    MPI_Aint at = 0;
    MPI_Datatype out;
    for (int i = 0; i < BLOCKS; i++) {
        places[i] = at + (MPI_Aint)check_random(&state, 9);
        lengths[i] = 1 + (int)check_random(&state, 40);
        at = places[i] + lengths[i];
    }
    MPI_Type_create_hindexed(BLOCKS, lengths, places, MPI_CHAR, &out);
    return resized(out, at);
}

/* Pieces of unlike kinds, one of them a vector of its own. */
static MPI_Datatype mixed(void)
{
    MPI_Datatype inner = strided_records(), out;
    const int lengths[] = {7, 2, 3};
    const MPI_Aint places[] = {0, 64, 64 + 2 * 77 * 3 * sizeof(struct record) + 16};
    const MPI_Datatype types[] = {MPI_CHAR, inner, MPI_LONG_DOUBLE};
    MPI_Type_create_struct(3, lengths, places, types, &out);
    MPI_Type_free(&inner);
    return resized(out, places[2] + 64);
}

static MPI_Datatype box(void)
{
    const int sizes[] = {40, 50, 60}, parts[] = {31, 33, 35}, starts[] = {3, 5, 7};
    MPI_Datatype out;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_FLOAT, &out);
    return out;
}

static const struct {
    const char *name;
    MPI_Datatype (*make)(void);
} kinds[] = {{"a vector", strided},
             {"records", records},
             {"a vector of records", strided_records},
             {"an indexed type", irregular},
             {"a mixed type", mixed},
             {"a subarray", box}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- types ---- */

/* More than is packed as a whole at a time. */
static const size_t wanted = 17 << 20;

enum side { TYPED_TO_PACKED, PACKED_TO_TYPED, TYPED_TO_TYPED, SIDES };
enum when { POSTED_FIRST, LATE, TRUNCATED, WHENS };

struct typed {
    MPI_Datatype type;
    int count;
    int packed;
    size_t span; /* bytes of memory */
};

static struct typed typed_make(MPI_Datatype (*make)(void))
{
    struct typed t = {.type = make()};
    MPI_Aint lb, extent;
    int size;
    MPI_Type_commit(&t.type);
    MPI_Type_size(t.type, &size);
    MPI_Type_get_extent(t.type, &lb, &extent);
    t.count = (int)(wanted / (size_t)size) + 1;
    t.packed = t.count * size;
    t.span = (size_t)t.count * (size_t)extent;
    return t;
}

/* The bytes of the message that @seed stands for. */
static char *packed_content(const struct typed *t, uint64_t seed)
{
    char *memory = check_malloc(t->span), *packed = check_malloc((size_t)t->packed);
    int at = 0;
    pattern_fill(memory, t->span, seed);
    MPI_Pack(memory, t->count, t->type, packed, t->packed, &at, MPI_COMM_SELF);
    CHECK(at == t->packed, "packed %d of %d bytes", at, t->packed);
    free(memory);
    return packed;
}

static void send_one(const struct typed *t, enum side side, enum when when, uint64_t seed)
{
    char *data;
    MPI_Datatype type = t->type;
    MPI_Request request;
    if (side == PACKED_TO_TYPED) {
        data = packed_content(t, seed);
    } else {
        data = check_malloc(t->span);
        pattern_fill(data, t->span, seed);
        MPI_Type_dup(t->type, &type);
    }
    if (when != LATE)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (side == PACKED_TO_TYPED) {
        MPI_Isend(data, t->packed, MPI_PACKED, 0, DATA, MPI_COMM_WORLD, &request);
    } else {
        MPI_Isend(data, t->count, type, 0, DATA, MPI_COMM_WORLD, &request);
        MPI_Type_free(&type); /* while the message is under way */
    }
    if (when == LATE)
        MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
}

static void receive_one(const struct typed *t, enum side side, enum when when, uint64_t seed,
                        const char *name)
{
    const int is_typed = side != TYPED_TO_PACKED;
    char *expected = packed_content(t, seed);
    const int count = (is_typed ? t->count : t->packed) * (when == TRUNCATED ? 2 : 3) / 3;
    struct guarded in = guarded_make(is_typed ? t->span : (size_t)t->packed, 24);
    MPI_Request request;
    MPI_Status status;
    if (when == LATE)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in.at, count, is_typed ? t->type : MPI_PACKED, 1, DATA, MPI_COMM_WORLD, &request);
    if (when != LATE)
        MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    int error = MPI_Wait(&request, &status), class = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    CHECK(class == (when == TRUNCATED ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%s (%d, %d): class %d",
          name, side, when, class);

    const int bytes = (int)((size_t)t->packed / (size_t)(is_typed ? t->count : t->packed)) * count;
    char *want = check_malloc(in.bytes);
    memset(want, 0xa5, in.bytes);
    int at = 0;
    if (is_typed)
        MPI_Unpack(expected, bytes, &at, want, count, t->type, MPI_COMM_SELF);
    else
        memcpy(want, expected, (size_t)bytes);
    for (size_t i = 0; i < in.bytes; i++)
        CHECK(in.at[i] == (unsigned char)want[i], "%s (%d, %d): wrong byte %zu of %zu", name, side,
              when, i, in.bytes);
    guarded_check(&in, name);
    guarded_free(&in);
    free(want);
    free(expected);
}

static void types(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    uint64_t seed = check_seed;
    for (int kind = 0; kind < KINDS; kind++) {
        struct typed t = typed_make(kinds[kind].make);
        for (int side = 0; side < SIDES; side++) {
            for (int when = 0; when < WHENS; when++, seed++) {
                if (when == LATE && side != TYPED_TO_TYPED)
                    continue;
                if (check_rank == 0)
                    receive_one(&t, side, when, seed, kinds[kind].name);
                else
                    send_one(&t, side, when, seed);
            }
        }
        MPI_Type_free(&t.type);
    }
}

/* ---- memory ---- */

/* What this process has needed at most, from here on. */
static size_t peak_begin(void)
{
    FILE *refs = fopen("/proc/self/clear_refs", "w");
    CHECK(refs && fputs("5", refs) >= 0 && fclose(refs) == 0, "no peak without clear_refs: %m");
    return status_kib("VmRSS");
}

static void peak_check(size_t before, size_t allowed, const char *what)
{
    const size_t peak = status_kib("VmHWM");
    printf("%s: at most %zu KiB more than before\n", what, peak > before ? peak - before : 0);
    CHECK(peak < before + (allowed >> 10), "%s: %zu MiB more than before, allowed %zu", what,
          (peak - before) >> 10, allowed >> 20);
}

static void limit_memory(size_t more)
{
    const size_t now = status_kib("VmSize") << 10;
    const struct rlimit limit = {now + more, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

static void unlimit_memory(void)
{
    const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

/* Words of 16 bytes, one of sixteen left out: blocks of 240 bytes. */
enum { WORDS = 15, WORD = 16 };

/* What a message may need beside the user's memory, whatever its size: libraries' pools, and what
 * is packed as a whole. */
static const size_t allowance = 32 * MIB;

static void transfer(char *memory, int blocks, MPI_Datatype type, int late, int turn)
{
    const size_t span = (size_t)blocks * (WORDS + 1) * WORD;
    if (check_rank == 0) {
        MPI_Request request;
        if (late) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_sleep_ms(100);
        }
        MPI_Irecv(memory, 1, type, 1, DATA, MPI_COMM_WORLD, &request);
        if (!late)
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t block = 0; block < (size_t)blocks; block++) {
            const size_t first = block * (WORDS + 1);
            const size_t good = WORDS * WORD;
            CHECK(pattern_find_error_from(memory + first * WORD, good, check_seed + (uint64_t)turn,
                                          first * 2) == good,
                  "turn %d: wrong data in block %zu", turn, block);
        }
        memset(memory, 0, span);
    } else {
        MPI_Request request;
        pattern_fill(memory, span, check_seed + (uint64_t)turn);
        if (!late)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(memory, 1, type, 0, DATA, MPI_COMM_WORLD, &request);
        if (late)
            MPI_Send(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void memory(size_t mib)
{
    const int blocks = (int)((mib * MIB + WORDS * WORD - 1) / (WORDS * WORD));
    const size_t span = (size_t)blocks * (WORDS + 1) * WORD;
    char *buffer = check_malloc(span);
    MPI_Datatype word, type;
    MPI_Type_contiguous(2, MPI_INT64_T, &word);
    MPI_Type_vector(blocks, WORDS, WORDS + 1, word, &type);
    MPI_Type_commit(&type);
    memset(buffer, 0, span);

    for (int late = 0; late < 2; late++) {
        /* Nothing of the next message may come before. */
        MPI_Barrier(MPI_COMM_WORLD);
        const size_t before = peak_begin();
        MPI_Barrier(MPI_COMM_WORLD);
        transfer(buffer, blocks, type, late, 2 * late);
        peak_check(before, allowance, late ? "a vector, received late" : "a vector");
        limit_memory(allowance);
        MPI_Barrier(MPI_COMM_WORLD);
        transfer(buffer, blocks, type, late, 2 * late + 1);
        unlimit_memory();
    }
    MPI_Type_free(&type);
    MPI_Type_free(&word);
    free(buffer);
}

/* ---- truncated ---- */

/* The same MiB 2,048 times, which takes little memory to send. */
static void truncated(void)
{
    enum { TIMES = 2048 };
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *once = check_malloc(MIB);
    MPI_Datatype block, type;
    MPI_Type_contiguous((int)MIB, MPI_BYTE, &block);
    MPI_Type_create_hvector(TIMES, 1, 0, block, &type);
    MPI_Type_commit(&type);
    pattern_fill(once, MIB, check_seed);
    for (int late = 0; late < 2; late++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const size_t before = peak_begin();
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 0) {
            unsigned char in[8] = {[4] = 0xa5, 0xa5, 0xa5, 0xa5};
            MPI_Request request;
            MPI_Status status;
            if (late)
                MPI_Probe(1, DATA, MPI_COMM_WORLD, &status);
            MPI_Irecv(in, 4, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            int error = MPI_Wait(&request, &status), class = MPI_SUCCESS;
            if (error != MPI_SUCCESS)
                MPI_Error_class(error, &class);
            CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
            check_content(in, 4, check_seed, "the bytes that fit");
            CHECK(in[4] == 0xa5 && in[7] == 0xa5, "written beyond the receive");
        } else {
            MPI_Request request;
            if (!late)
                MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(once, 1, type, 0, DATA, MPI_COMM_WORLD, &request);
            if (late)
                MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        peak_check(before, 128 * MIB, late ? "late and truncated" : "truncated");
    }
    MPI_Type_free(&type);
    MPI_Type_free(&block);
    free(once);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(check_ranks == 2, "2 ranks, not %d", check_ranks);
    if (argc > 2 && !strcmp(argv[1], "memory"))
        memory(strtoull(argv[2], NULL, 10));
    else if (argc > 1 && !strcmp(argv[1], "truncated"))
        truncated();
    else
        types();
    return check_finish();
}
