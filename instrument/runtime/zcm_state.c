/* SPDX-License-Identifier: BSD-3-Clause */
/* The part that every program has; zcm-instrument(1) puts the tables of this program in its middle.
 */
#include "zcm_state.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What memory holds. Fields lie one behind the other, with gaps that are not saved. */
enum kind { BASIC, RECORD, POINTER, HANDLE, REQUEST };
enum basic {
    BYTE,
    BOOL,
    CHAR,
    SCHAR,
    UCHAR,
    SHORT,
    USHORT,
    INT,
    UINT,
    LONG,
    ULONG,
    LLONG,
    ULLONG,
    FLOAT,
    DOUBLE,
    LDOUBLE,
    CFLOAT,
    CDOUBLE,
    CLDOUBLE
};

struct field {
    size_t offset, count;
    enum kind kind;
    int of;      /* BASIC: enum basic; RECORD, POINTER: a layout; -1: only parts of the program */
    size_t size; /* of one */
};

struct layout {
    const char *name;
    size_t size;
    const struct field *fields;
    int nr_fields, has_pointers, is_saved;
};

struct root {
    const char *name;
    int layout;
    char *at;
    size_t bytes;
    void *packed;
    int is_registered;
};

/* Before each block of the heap, in a list of all. */
struct block {
    struct block *next, *previous;
    void *raw; /* what libc has to free */
    size_t bytes;
    int64_t serial;
    int layout, part, id; /* when the state is taken: -1 not known */
    int is_registered, is_todo, is_buffer;
    void *packed;
    uint64_t magic;
};

/* A saved pointer: 2 bits of what it points into, 22 of its number, 40 of the offset. Those of
 * NOTHING with a number lead to the arguments of main(). */
enum target { NOTHING, BLOCK, IMAGE, ROOT };
enum { OFFSET_BITS = 40, NUMBER_BITS = 22, ARGUMENTS = (1 << NUMBER_BITS) - 1 };

/* The table that is saved: two words, and three of each block that is. */
enum { NEXT_SERIAL, NR_BLOCKS, FIRST_BLOCK };
enum { SERIAL, BYTES, LAYOUT, WORDS_OF_BLOCK };

#define TABLE "state.table"
static const uint64_t alive = 0x7a636d20626c6f63u;

/* @TABLES@: layouts, nr_layouts, roots, nr_roots, find_statics() */

extern char __executable_start, _end;

static struct block all = {.next = &all, .previous = &all};
static int64_t next_serial = 1;
static size_t nr_all;
static struct block **sorted; /* by address, when the state is taken */
static size_t nr_sorted;
static struct block **saved; /* by id */
static size_t nr_saved;
static int64_t *table;
static int table_is_registered, is_ready, has_failed;
static MPI_Datatype *types;
static const char *const *arguments; /* of main() */

static int fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    if (!has_failed++) {
        fputs("zcm-instrument: ", stderr);
        vfprintf(stderr, format, words);
        fputc('\n', stderr);
    }
    va_end(words);
    return -1;
}

static void give_up(const char *what)
{
    fprintf(stderr, "zcm-instrument: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* ---- the heap ---- */

static struct block *block_of(void *at)
{
    struct block *b = (struct block *)at - 1;
    if (b->magic != alive)
        give_up("memory that was not allocated by the program's own sources is freed");
    return b;
}

static void link_in(struct block *b, void *raw, size_t bytes, int64_t serial)
{
    memset(b, 0, sizeof *b);
    b->raw = raw;
    b->bytes = bytes;
    b->serial = serial;
    b->magic = alive;
    b->layout = b->id = -1;
    b->next = all.next;
    b->previous = &all;
    all.next->previous = b;
    all.next = b;
    nr_all++;
}

static void *allocate(size_t alignment, size_t bytes, int64_t serial)
{
    char *raw, *at;
    if (bytes > SIZE_MAX - alignment - sizeof(struct block))
        return NULL;
    raw = calloc(1, bytes + alignment + sizeof(struct block));
    if (!raw)
        return NULL;
    at = raw + sizeof(struct block) + alignment - 1;
    at -= (uintptr_t)at % alignment;
    link_in((struct block *)(void *)at - 1, raw, bytes, serial);
    return at;
}

static void name_of(const struct block *b, char name[32])
{
    snprintf(name, 32, "heap.%lld", (long long)b->serial);
}

static void unregister_block(struct block *b)
{
    char name[32];
    if (!b->is_registered)
        return;
    name_of(b, name);
    zcm_unregister(name);
    free(b->packed);
    b->packed = NULL;
    b->is_registered = 0;
}

void *zcm_state_malloc(size_t bytes)
{
    return allocate(_Alignof(max_align_t), bytes, next_serial++);
}

void *zcm_state_calloc(size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    return zcm_state_malloc(count * bytes);
}

void *zcm_state_aligned_alloc(size_t alignment, size_t bytes)
{
    return allocate(alignment < 16 ? 16 : alignment, bytes, next_serial++);
}

int zcm_state_posix_memalign(void **at, size_t alignment, size_t bytes)
{
    void *made = zcm_state_aligned_alloc(alignment, bytes);
    if (!made)
        return 12; /* ENOMEM */
    *at = made;
    return 0;
}

char *zcm_state_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *made = zcm_state_malloc(bytes);
    return made ? memcpy(made, text, bytes) : NULL;
}

void zcm_state_free(void *at)
{
    struct block *b;
    if (!at)
        return;
    b = block_of(at);
    unregister_block(b);
    b->next->previous = b->previous;
    b->previous->next = b->next;
    b->magic = 0;
    nr_all--;
    free(b->raw);
}

/* The block keeps its number: to what is saved it is the same one. */
void *zcm_state_realloc(void *at, size_t bytes)
{
    struct block *old;
    void *made;
    if (!at)
        return zcm_state_malloc(bytes);
    old = block_of(at);
    made = allocate(_Alignof(max_align_t), bytes, old->serial);
    if (!made)
        return NULL;
    memcpy(made, at, old->bytes < bytes ? old->bytes : bytes);
    zcm_state_free(at);
    return made;
}
