/* SPDX-License-Identifier: BSD-3-Clause */
/* The second half of zcm_state.c: what is saved, and restored. */

/* ---- layouts as types of MPI ---- */

static MPI_Datatype basic_type(int code)
{
    const MPI_Datatype all[] = {MPI_BYTE,
                                MPI_C_BOOL,
                                MPI_CHAR,
                                MPI_SIGNED_CHAR,
                                MPI_UNSIGNED_CHAR,
                                MPI_SHORT,
                                MPI_UNSIGNED_SHORT,
                                MPI_INT,
                                MPI_UNSIGNED,
                                MPI_LONG,
                                MPI_UNSIGNED_LONG,
                                MPI_LONG_LONG,
                                MPI_UNSIGNED_LONG_LONG,
                                MPI_FLOAT,
                                MPI_DOUBLE,
                                MPI_LONG_DOUBLE,
                                MPI_C_FLOAT_COMPLEX,
                                MPI_C_DOUBLE_COMPLEX,
                                MPI_C_LONG_DOUBLE_COMPLEX}; /* in the order of enum basic */
    return all[code];
}

static MPI_Datatype type_of(int number);

static MPI_Datatype make_type(const struct layout *l)
{
    MPI_Datatype *parts = malloc(sizeof *parts * (size_t)l->nr_fields), bare, made;
    MPI_Aint *at = malloc(sizeof *at * (size_t)l->nr_fields);
    int *counts = malloc(sizeof *counts * (size_t)l->nr_fields), n = 0;
    if (!parts || !at || !counts)
        give_up("out of memory");
    for (int i = 0; i < l->nr_fields; i++) {
        const struct field *f = &l->fields[i];
        if (f->kind != BASIC && (f->kind != RECORD || !layouts[f->of].is_saved))
            continue;
        parts[n] = f->kind == BASIC ? basic_type(f->of) : type_of(f->of);
        counts[n] = (int)f->count;
        at[n++] = (MPI_Aint)f->offset;
    }
    MPI_Type_create_struct(n, counts, at, parts, &bare);
    MPI_Type_create_resized(bare, 0, (MPI_Aint)l->size, &made);
    MPI_Type_free(&bare);
    free(parts);
    free(at);
    free(counts);
    return made;
}

static int is_one_basic(const struct layout *l)
{
    return l->nr_fields == 1 && l->fields[0].kind == BASIC &&
           l->fields[0].count * l->fields[0].size == l->size;
}

/* Of a layout without pointers; lives as long as the program. */
static MPI_Datatype type_of(int number)
{
    if (!types) {
        types = malloc(sizeof *types * (size_t)nr_layouts);
        if (!types)
            give_up("out of memory");
        for (int i = 0; i < nr_layouts; i++)
            types[i] = MPI_DATATYPE_NULL;
    }
    if (types[number] == MPI_DATATYPE_NULL)
        types[number] = make_type(&layouts[number]);
    return types[number];
}

/* Memory without pointers, where it is. */
static int add_plain(const char *name, void *at, size_t bytes, int number)
{
    const struct layout *l = &layouts[number];
    if (bytes % l->size != 0)
        return zcm_register(name, at, bytes, MPI_BYTE);
    if (is_one_basic(l))
        return zcm_register(name, at, bytes / l->fields[0].size, basic_type(l->fields[0].of));
    return zcm_register(name, at, bytes / l->size, type_of(number));
}

/* ---- pointers ---- */

static int by_address(const void *a, const void *b)
{
    const uintptr_t left = (uintptr_t) * (struct block *const *)a;
    const uintptr_t right = (uintptr_t) * (struct block *const *)b;
    return (left > right) - (left < right);
}

static int by_serial(const void *a, const void *b)
{
    const int64_t left = (*(struct block *const *)a)->serial;
    const int64_t right = (*(struct block *const *)b)->serial;
    return (left > right) - (left < right);
}

static void sort_blocks(int (*order)(const void *, const void *))
{
    free(sorted);
    sorted = malloc(sizeof *sorted * (nr_all + 1));
    if (!sorted)
        give_up("out of memory");
    nr_sorted = 0;
    for (struct block *b = all.next; b != &all; b = b->next)
        sorted[nr_sorted++] = b;
    qsort(sorted, nr_sorted, sizeof *sorted, order);
}

static struct block *block_around(const char *at)
{
    size_t low = 0, high = nr_sorted;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if ((char *)(sorted[middle] + 1) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || at > (char *)(sorted[low - 1] + 1) + sorted[low - 1]->bytes)
        return NULL;
    return sorted[low - 1];
}

/* What it lies in, or else what it lies behind. */
static int root_around(const char *at)
{
    int behind = -1;
    for (int i = 0; i < nr_roots; i++) {
        if (roots[i].at && at >= roots[i].at && at < roots[i].at + roots[i].bytes)
            return i;
        if (roots[i].at && at == roots[i].at + roots[i].bytes)
            behind = i;
    }
    return behind;
}

/* The number, from 1, of the argument of main() that @at lies in; ARGUMENTS: of what leads to them;
 * 0: it does not. */
static uint64_t argument_around(const char *at)
{
    size_t n = 0;
    for (; arguments && arguments[n] && n < ARGUMENTS - 1; n++)
        if (at >= arguments[n] && at <= arguments[n] + strlen(arguments[n]))
            return n + 1;
    return arguments && at >= (const char *)arguments && at <= (const char *)(arguments + n)
               ? ARGUMENTS
               : 0;
}

static int is_in_image(const char *at)
{
    return at >= &__executable_start && at < &_end;
}

static uint64_t code(enum target what, uint64_t number, uint64_t offset)
{
    return (uint64_t)what << (OFFSET_BITS + NUMBER_BITS) | number << OFFSET_BITS | offset;
}

static int encode(const char *at, uint64_t *to)
{
    const struct block *b;
    int root;
    if (!at) {
        *to = 0;
    } else if (is_in_image(at)) {
        *to = code(IMAGE, 0, (uint64_t)(at - &__executable_start));
    } else if ((b = block_around(at)) != NULL) {
        *to = code(BLOCK, (uint64_t)b->id, (uint64_t)(at - (const char *)(b + 1)));
    } else if ((root = root_around(at)) >= 0) {
        *to = code(ROOT, (uint64_t)root, (uint64_t)(at - roots[root].at));
    } else {
        const uint64_t number = argument_around(at);
        if (number == 0)
            return -1;
        *to = code(NOTHING, number,
                   (uint64_t)(at - (number == ARGUMENTS ? (const char *)arguments
                                                        : arguments[number - 1])));
    }
    return 0;
}

static char *decode(uint64_t from)
{
    const uint64_t offset = from & ((UINT64_C(1) << OFFSET_BITS) - 1);
    const uint64_t number = from >> OFFSET_BITS & ((UINT64_C(1) << NUMBER_BITS) - 1);
    switch ((enum target)(from >> (OFFSET_BITS + NUMBER_BITS))) {
    case NOTHING:
        if (number == 0 || !arguments)
            return NULL;
        return (char *)(uintptr_t)(number == ARGUMENTS ? (const char *)arguments
                                                       : arguments[number - 1]) +
               offset;
    case BLOCK:
        return (char *)(saved[number] + 1) + offset;
    case IMAGE:
        return &__executable_start + offset;
    case ROOT:
        return roots[number].at + offset;
    }
    return NULL;
}

/* ---- what can be reached ---- */

static struct block **todo; /* each block at most once at a time */
static size_t nr_todo;

static void put_down(struct block *b)
{
    if (!b->is_todo)
        todo[nr_todo++] = b;
    b->is_todo = 1;
}

/* Pointers of two types lead to @b: one is to a part of what the other one leads to. */
static int meet(struct block *b, int layout)
{
    const struct layout *is = &layouts[b->layout], *also = &layouts[layout];
    if (b->layout == layout || also->size < is->size)
        return 0;
    if (also->size == is->size && is->has_pointers != also->has_pointers)
        return fail("a block of %zu bytes is used as %s and as %s", b->bytes, is->name, also->name);
    if (also->size == is->size && !also->has_pointers)
        return 0; /* int and float: bytes are bytes */
    if (also->size == is->size || (is->has_pointers && !also->has_pointers))
        return fail("a block of %zu bytes is used as %s and as %s", b->bytes, is->name, also->name);
    b->layout = layout;
    put_down(b);
    return 0;
}

static int reach(const char *at, int layout, const char *from)
{
    struct block *b;
    if (!at || is_in_image(at))
        return 0;
    b = block_around(at);
    if (!b)
        return root_around(at) >= 0 || argument_around(at) != 0
                   ? 0
                   : fail("a pointer in %s leads to memory that is not the program's own", from);
    if (layout < 0)
        return fail("a pointer in %s leads to the heap, where it should not", from);
    if (b->id < 0) {
        b->id = (int)nr_saved;
        saved[nr_saved++] = b;
    }
    if (b->layout >= 0)
        return meet(b, layout);
    if (at != (const char *)(b + 1)) { /* to a field, or to an element */
        if (b->part < 0 || layouts[layout].size > layouts[b->part].size)
            b->part = layout;
        return 0;
    }
    b->layout = layout;
    put_down(b);
    return 0;
}

static int follow(const char *at, size_t bytes, int number, const char *from)
{
    const struct layout *l = &layouts[number];
    if (!l->has_pointers)
        return 0;
    if (bytes % l->size != 0)
        return fail("%zu bytes of %s are no whole number of %s", bytes, from, l->name);
    for (; bytes > 0; bytes -= l->size, at += l->size)
        for (int i = 0; i < l->nr_fields; i++) {
            const struct field *f = &l->fields[i];
            const char *p = at + f->offset, *value;
            if (f->kind == RECORD && follow(p, f->count * f->size, f->of, from) != 0)
                return -1;
            for (size_t n = 0; f->kind == POINTER && n < f->count; n++) {
                memcpy(&value, p + n * sizeof value, sizeof value);
                if (reach(value, f->of, from) != 0)
                    return -1;
            }
        }
    return 0;
}

static int follow_all(void)
{
    char name[32];
    while (nr_todo > 0) {
        struct block *b = todo[--nr_todo];
        b->is_todo = 0;
        name_of(b, name);
        if (follow((char *)(b + 1), b->bytes, b->layout, name) != 0)
            return -1;
    }
    return 0;
}

/* ---- what memory is used as ---- */

static int has_kind(const struct layout *l, int of_handles)
{
    for (int i = 0; i < l->nr_fields; i++) {
        const struct field *f = &l->fields[i];
        if (f->kind == HANDLE || (f->kind == RECORD && has_kind(&layouts[f->of], of_handles)) ||
            (!of_handles && (f->kind == POINTER || f->kind == REQUEST)))
            return 1;
    }
    return 0;
}

static void mark(unsigned char *map, const struct layout *l)
{
    for (int i = 0; i < l->nr_fields; i++) {
        const struct field *f = &l->fields[i];
        for (size_t n = 0; f->kind != BASIC && n < f->count; n++)
            if (f->kind == RECORD)
                mark(map + f->offset + n * f->size, &layouts[f->of]);
            else
                map[f->offset + n * f->size] = f->kind == POINTER ? 1 : 2;
    }
}

/* Where there are pointers, handles and requests in it. Lives as long as the program. */
static const unsigned char *map_of(int number)
{
    static unsigned char **maps;
    if (!maps && !(maps = calloc((size_t)nr_layouts, sizeof *maps)))
        give_up("out of memory");
    if (!maps[number]) {
        maps[number] = calloc(1, layouts[number].size + sizeof(void *));
        if (!maps[number])
            give_up("out of memory");
        mark(maps[number], &layouts[number]);
    }
    return maps[number];
}

/* Is what a pointer takes for @part, @offset bytes behind the beginning of @whole, such a part? */
static int is_part(int whole, size_t bytes, size_t offset, int part)
{
    const struct layout *l = &layouts[whole], *p = &layouts[part];
    if ((whole == part && offset % l->size == 0) || (!has_kind(l, 0) && !has_kind(p, 0)))
        return 1;
    for (size_t k = 0; k < p->size && offset + k < bytes; k++)
        if (map_of(whole)[(offset + k) % l->size] != map_of(part)[k])
            return 0;
    return 1;
}

/* Does what the pointers in it lead to have its pointers where they take it to have some? */
static int check(const char *at, size_t bytes, int number, const char *from)
{
    const struct layout *l = &layouts[number];
    if (!l->has_pointers)
        return 0;
    for (; bytes >= l->size; bytes -= l->size, at += l->size)
        for (int i = 0; i < l->nr_fields; i++) {
            const struct field *f = &l->fields[i];
            const char *p = at + f->offset, *value;
            if (f->kind == RECORD && check(p, f->count * f->size, f->of, from) != 0)
                return -1;
            for (size_t n = 0; f->kind == POINTER && f->of >= 0 && n < f->count; n++) {
                const struct block *b;
                int root, whole;
                size_t offset, length;
                memcpy(&value, p + n * sizeof value, sizeof value);
                if (!value)
                    continue;
                if (!is_in_image(value) && (b = block_around(value)) != NULL) {
                    whole = b->layout;
                    offset = (size_t)(value - (const char *)(b + 1));
                    length = b->bytes;
                } else if ((root = root_around(value)) >= 0) {
                    whole = roots[root].layout;
                    offset = (size_t)(value - roots[root].at);
                    length = roots[root].bytes;
                } else {
                    continue;
                }
                if (!is_part(whole, length, offset, f->of))
                    return fail("a pointer in %s takes memory for %s that is used as %s", from,
                                layouts[f->of].name, layouts[whole].name);
            }
        }
    return 0;
}

static int check_all(void)
{
    char name[32];
    for (int i = 0; i < nr_roots; i++)
        if (roots[i].at && check(roots[i].at, roots[i].bytes, roots[i].layout, roots[i].name) != 0)
            return -1;
    for (size_t i = 0; i < nr_saved; i++) {
        name_of(saved[i], name);
        if (saved[i]->layout >= 0 &&
            check((char *)(saved[i] + 1), saved[i]->bytes, saved[i]->layout, name) != 0)
            return -1;
    }
    return 0;
}

static int reach_all(void)
{
    sort_blocks(by_address);
    free(saved);
    saved = malloc(sizeof *saved * (nr_all + 1));
    todo = malloc(sizeof *todo * (nr_all + 1));
    if (!saved || !todo)
        give_up("out of memory");
    nr_saved = nr_todo = 0;
    for (size_t i = 0; i < nr_sorted; i++)
        sorted[i]->layout = sorted[i]->part = sorted[i]->id = -1, sorted[i]->is_todo = 0;
    for (int i = 0; i < nr_roots; i++)
        if (roots[i].at && follow(roots[i].at, roots[i].bytes, roots[i].layout, roots[i].name) != 0)
            return -1;
    if (follow_all() != 0)
        return -1;
    /* What no pointer leads to the beginning of is what they take its parts for. */
    for (size_t i = 0; i < nr_saved; i++)
        if (saved[i]->layout < 0) {
            saved[i]->layout = saved[i]->part;
            put_down(saved[i]);
            if (follow_all() != 0)
                return -1;
        }
    for (size_t i = 0; i < nr_sorted; i++)
        if (sorted[i]->is_buffer && sorted[i]->id < 0) {
            sorted[i]->id = (int)nr_saved; /* what is in it is not known: bytes */
            saved[nr_saved++] = sorted[i];
        }
    if (check_all() != 0)
        return -1;
    return nr_saved < (UINT64_C(1) << NUMBER_BITS) ? 0 : fail("%zu blocks are too many", nr_saved);
}

/* ---- memory with pointers is saved as a copy, in which they are encoded ---- */

static int pack(const char *at, size_t bytes, int number, char *to)
{
    const struct layout *l = &layouts[number];
    for (; bytes > 0; bytes -= l->size, at += l->size, to += l->size)
        for (int i = 0; i < l->nr_fields; i++) {
            const struct field *f = &l->fields[i];
            if (f->kind == BASIC)
                memcpy(to + f->offset, at + f->offset, f->count * f->size);
            if (f->kind == RECORD &&
                pack(at + f->offset, f->count * f->size, f->of, to + f->offset))
                return -1;
            for (size_t n = 0; f->kind == POINTER && n < f->count; n++) {
                uint64_t coded;
                const char *value;
                memcpy(&value, at + f->offset + n * sizeof value, sizeof value);
                if (encode(value, &coded) != 0)
                    return fail("a pointer in %s cannot be saved", l->name);
                memcpy(to + f->offset + n * sizeof coded, &coded, sizeof coded);
            }
        }
    return 0;
}

static void unpack(char *at, size_t bytes, int number, const char *from)
{
    const struct layout *l = &layouts[number];
    for (; bytes > 0; bytes -= l->size, at += l->size, from += l->size)
        for (int i = 0; i < l->nr_fields; i++) {
            const struct field *f = &l->fields[i];
            if (f->kind == BASIC)
                memcpy(at + f->offset, from + f->offset, f->count * f->size);
            if (f->kind == RECORD)
                unpack(at + f->offset, f->count * f->size, f->of, from + f->offset);
            for (size_t n = 0; f->kind == POINTER && n < f->count; n++) {
                uint64_t coded;
                char *value;
                memcpy(&coded, from + f->offset + n * sizeof coded, sizeof coded);
                value = decode(coded);
                memcpy(at + f->offset + n * sizeof value, &value, sizeof value);
            }
        }
}

/* All messages have been completed, so no request is active: nor is it here. */
static void clear_requests(char *at, size_t bytes, int number)
{
    const struct layout *l = &layouts[number];
    const MPI_Request none = MPI_REQUEST_NULL;
    for (; bytes >= l->size; bytes -= l->size, at += l->size)
        for (int i = 0; i < l->nr_fields; i++) {
            const struct field *f = &l->fields[i];
            if (f->kind == RECORD)
                clear_requests(at + f->offset, f->count * f->size, f->of);
            for (size_t n = 0; f->kind == REQUEST && n < f->count; n++)
                memcpy(at + f->offset + n * sizeof none, &none, sizeof none);
        }
}

static int add(const char *name, char *at, size_t bytes, int layout, void **packed, int *done)
{
    if (layout < 0) {
        *done = zcm_register(name, at, bytes, MPI_BYTE) == 0;
        return *done ? 0 : -1;
    }
    if (!layouts[layout].is_saved)
        return 0;
    if (layouts[layout].has_pointers) {
        *packed = calloc(1, bytes ? bytes : 1);
        if (!*packed || (!zcm_resumed() || is_ready ? pack(at, bytes, layout, *packed) : 0) != 0)
            return -1;
        if (zcm_register(name, *packed, bytes, MPI_BYTE) != 0)
            return -1;
    } else if (add_plain(name, at, bytes, layout) != 0) {
        return -1;
    }
    *done = 1;
    return 0;
}

static int add_all(void)
{
    char name[32];
    for (int i = 0; i < nr_roots; i++) {
        struct root *r = &roots[i];
        if (!r->at)
            return fail("%s is nowhere", r->name);
        if (add(r->name, r->at, r->bytes, r->layout, &r->packed, &r->is_registered) != 0)
            return fail("%s cannot be registered", r->name);
    }
    for (size_t i = 0; i < nr_saved; i++) {
        struct block *b = saved[i];
        name_of(b, name);
        if (add(name, (char *)(b + 1), b->bytes, b->layout, &b->packed, &b->is_registered) != 0)
            return fail("%s cannot be registered", name);
    }
    return 0;
}

static void forget_all(void)
{
    for (int i = 0; i < nr_roots; i++) {
        if (roots[i].is_registered)
            zcm_unregister(roots[i].name);
        free(roots[i].packed);
        roots[i].packed = NULL;
        roots[i].is_registered = 0;
    }
    for (struct block *b = all.next; b != &all; b = b->next)
        unregister_block(b);
    if (table_is_registered)
        zcm_unregister(TABLE);
    table_is_registered = 0;
    free(table);
    table = NULL;
}

static int take(void *unused)
{
    int64_t *t;
    int status;
    (void)unused;
    has_failed = 0;
    forget_all();
    status = reach_all();
    free(todo);
    todo = NULL;
    if (status != 0)
        return -1;
    t = table = malloc(sizeof *table * (FIRST_BLOCK + WORDS_OF_BLOCK * nr_saved));
    if (!t)
        return fail("out of memory");
    t[NEXT_SERIAL] = next_serial;
    t[NR_BLOCKS] = (int64_t)nr_saved;
    for (size_t i = 0; i < nr_saved; i++) {
        t = table + FIRST_BLOCK + WORDS_OF_BLOCK * i;
        t[SERIAL] = saved[i]->serial;
        t[BYTES] = (int64_t)saved[i]->bytes;
        t[LAYOUT] = saved[i]->layout;
    }
    if (zcm_register(TABLE, table, FIRST_BLOCK + WORDS_OF_BLOCK * nr_saved, MPI_INT64_T) != 0)
        return -1;
    table_is_registered = 1;
    return add_all();
}

/* ---- a resumed process ---- */

static struct block *own_block(int64_t serial, size_t bytes, int layout)
{
    const struct block key = {.serial = serial}, *wanted = &key;
    struct block **found = bsearch(&wanted, sorted, nr_sorted, sizeof *sorted, by_serial);
    void *made;
    if (found && (*found)->bytes == bytes)
        return *found;
    if (layout < 0 || has_kind(&layouts[layout], 1))
        give_up("a block with handles of MPI, or a buffer, is not the one that the initialisation "
                "has made");
    if (found)
        (*found)->serial = 0; /* another one has its number now; what led to it is restored */
    made = allocate(_Alignof(max_align_t), bytes, serial);
    if (!made)
        give_up("out of memory for the saved state");
    return (struct block *)made - 1;
}

static void restore(void)
{
    const long long words = zcm_saved_count(TABLE);
    if (words < FIRST_BLOCK)
        give_up("the saved state is not that of an instrumented program");
    table = malloc(sizeof *table * (size_t)words);
    if (!table || zcm_register(TABLE, table, (size_t)words, MPI_INT64_T) != 0)
        give_up("the table of blocks cannot be restored");
    table_is_registered = 1;
    nr_saved = (size_t)table[NR_BLOCKS];
    saved = malloc(sizeof *saved * (nr_saved + 1));
    if (!saved)
        give_up("out of memory");
    sort_blocks(by_serial);
    for (size_t i = 0; i < nr_saved; i++) {
        const int64_t *t = table + FIRST_BLOCK + WORDS_OF_BLOCK * i;
        saved[i] = own_block(t[SERIAL], (size_t)t[BYTES], (int)t[LAYOUT]);
        saved[i]->layout = (int)t[LAYOUT];
        saved[i]->id = (int)i;
    }
    next_serial = table[NEXT_SERIAL];
    if (add_all() != 0)
        give_up("the saved state does not fit the program");
    for (int i = 0; i < nr_roots; i++) {
        if (roots[i].packed)
            unpack(roots[i].at, roots[i].bytes, roots[i].layout, roots[i].packed);
        clear_requests(roots[i].at, roots[i].bytes, roots[i].layout);
    }
    for (size_t i = 0; i < nr_saved; i++) {
        char *at = (char *)(saved[i] + 1);
        if (saved[i]->packed)
            unpack(at, saved[i]->bytes, saved[i]->layout, saved[i]->packed);
        if (saved[i]->layout >= 0)
            clear_requests(at, saved[i]->bytes, saved[i]->layout);
    }
}

/* ---- what the program calls ---- */

int zcm_state_init(int code)
{
    if (code == MPI_SUCCESS && zcm_init(NULL, NULL) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return code;
}

void zcm_state_local(int root, const volatile void *at, size_t bytes)
{
    roots[root].at = (char *)(uintptr_t)at;
    roots[root].bytes = bytes;
}

void zcm_state_arguments(const void *argv)
{
    arguments = argv;
}

void *zcm_state_buffer(const void *at)
{
    for (struct block *b = all.next; b != &all; b = b->next)
        if ((const char *)at >= (const char *)(b + 1) &&
            (const char *)at < (const char *)(b + 1) + b->bytes)
            b->is_buffer = 1;
    return (void *)(uintptr_t)at;
}

void zcm_state_ready(void)
{
    if (is_ready)
        return;
    find_statics();
    if (zcm_resumed())
        restore();
    else if (take(NULL) != 0)
        fprintf(stderr, "zcm-instrument: so requests to move are refused until that is over\n");
    is_ready = 1;
    zcm_on_save(take, NULL);
}
