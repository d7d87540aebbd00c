/* SPDX-License-Identifier: BSD-3-Clause */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crc32c.h"

#define BLOCK_BYTES ((size_t)64 << 10)
/* More than any record but communicators and collectives: those make room. */
#define RECORD_BYTES ((size_t)128)
/* A program that is killed loses at most what it did in this time. */
#define MAX_AGE_NS INT64_C(1000000000)

/*
 * @to, of the next four: where the next byte goes, in a variable of the caller. No byte that is
 * stored can be a part of it, so it stays in a register.
 */
static inline void put_byte(uint8_t **to, unsigned value)
{
    *(*to)++ = (uint8_t)value;
}

static inline void put_varint(uint8_t **to, uint64_t value)
{
    while (value >= 0x80) {
        put_byte(to, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    put_byte(to, (uint8_t)value);
}

static inline void put_zigzag(uint8_t **to, int64_t value)
{
    put_varint(to, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

/* Difference of values that may lie anywhere: modulo 2^64, no overflow. */
static inline void put_delta(uint8_t **to, uint64_t value, uint64_t last)
{
    put_zigzag(to, (int64_t)(value - last));
}

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static void put_u64(uint8_t **to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        put_byte(to, (uint8_t)(value >> (8 * i)));
}

/* What is behind the records so far. */
static inline uint8_t *end_of(const struct zct_writer *w)
{
    return w->buffer + w->len;
}

static inline void put_until(struct zct_writer *w, const uint8_t *to)
{
    w->len = (size_t)(to - w->buffer);
}

static inline bool usable(const struct zct_writer *w)
{
    return w->buffer && !w->error;
}

static bool grow(struct zct_writer *w, size_t more)
{
    size_t capacity = w->capacity;
    while (capacity - w->len < more + RECORD_BYTES)
        capacity *= 2;
    uint8_t *buffer = capacity <= ZCT_MAX_BLOCK_BYTES ? realloc(w->buffer, capacity) : NULL;
    if (!buffer) {
        w->error = ENOMEM;
        return false;
    }
    w->buffer = buffer;
    w->capacity = capacity;
    return true;
}

/* Room for @more bytes beyond the usual record. */
static inline bool make_room(struct zct_writer *w, size_t more)
{
    return w->capacity - w->len >= more + RECORD_BYTES || grow(w, more);
}

/* As write(2). Beyond the limit of a file's size (ulimit -f) that also sends a signal, which would
 * end the program. */
static ssize_t write_quietly(int fd, const void *from, size_t len)
{
    const struct timespec now = {0};
    sigset_t too_large, before;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    const bool blocked = pthread_sigmask(SIG_BLOCK, &too_large, &before) == 0;
    const ssize_t written = write(fd, from, len);
    const int error = errno;
    if (blocked && !sigismember(&before, SIGXFSZ)) {
        if (written < 0 && error == EFBIG)
            sigtimedwait(&too_large, NULL, &now);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = error;
    return written;
}

static void write_all(struct zct_writer *w, size_t len)
{
    const uint8_t *from = w->buffer;
    while (len) {
        const ssize_t written = write_quietly(w->fd, from, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            w->error = written ? errno : EIO;
            return;
        }
        from += written;
        len -= (size_t)written;
    }
}

static void begin_block(struct zct_writer *w)
{
    uint8_t *to = w->buffer + ZCT_BLOCK_HEAD_BYTES;
    w->empty = true;
    put_zigzag(&to, w->time_ns);
    put_varint(&to, w->began);
    put_varint(&to, w->nr_collectives);
    put_varint(&to, w->nr_comms);
    if (w->calls) {
        put_varint(&to, w->nr_sends);
        put_varint(&to, w->nr_sites);
    }
    put_until(w, to);
    w->completed = w->nr_sends - 1;
    w->order = w->began - 1; /* the next receive's order is relative to began */
    w->ended = w->nr_collectives - 1;
    memset(&w->send, 0, sizeof(w->send));
    memset(&w->receive, 0, sizeof(w->receive));
}

void zct_writer_flush(struct zct_writer *w)
{
    if (!usable(w) || w->empty || w->owner != (int64_t)getpid())
        return;
    const size_t length = w->len - ZCT_BLOCK_HEAD_BYTES;
    put_u32(w->buffer, (uint32_t)length);
    uint32_t crc = zc_crc32c(0, w->buffer, 4);
    crc = zc_crc32c(crc, w->buffer + ZCT_BLOCK_HEAD_BYTES, length);
    put_u32(w->buffer + 4, crc);
    write_all(w, w->len);
    begin_block(w);
}

/* After every record, which ends before @to: the one place where a block is written. */
static inline void record_done(struct zct_writer *w, const uint8_t *to)
{
    put_until(w, to);
    if (w->empty) {
        w->empty = false;
        w->first_ns = w->time_ns;
    }
    if (w->len >= BLOCK_BYTES || w->time_ns - w->first_ns > MAX_AGE_NS)
        zct_writer_flush(w);
}

static void put_string(struct zct_writer *w, const char *text)
{
    const size_t len = strlen(text);
    if (!make_room(w, len))
        return;
    uint8_t *to = end_of(w);
    put_varint(&to, len);
    for (size_t i = 0; i < len; i++)
        *to++ = (uint8_t)text[i];
    put_until(w, to);
}

static void put_head(struct zct_writer *w, const struct zct_head *head)
{
    memcpy(w->buffer, ZCT_MAGIC, ZCT_MAGIC_BYTES);
    put_u32(w->buffer + 8, head->calls ? ZCT_VERSION_CALLS : ZCT_VERSION);
    uint8_t *to = w->buffer + 16;
    put_varint(&to, head->rank);
    put_varint(&to, head->processes);
    put_u64(&to, head->run);
    put_u64(&to, head->start_ns);
    put_until(w, to);
    put_string(w, head->mpi);
    put_string(w, head->program);
    put_string(w, head->command);
    put_string(w, head->host);
    put_u32(w->buffer + 12, (uint32_t)(w->len - 16));
    put_u32(w->buffer + w->len, zc_crc32c(0, w->buffer, w->len));
    w->len += 4;
}

int zct_writer_open(struct zct_writer *w, const char *path, const struct zct_head *head)
{
    memset(w, 0, sizeof(*w));
    w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0)
        return -errno;
    w->owner = (int64_t)getpid();
    w->calls = head->calls;
    w->capacity = BLOCK_BYTES + RECORD_BYTES;
    w->buffer = malloc(w->capacity);
    if (w->buffer)
        put_head(w, head);
    else
        w->error = ENOMEM;
    if (!w->error)
        write_all(w, w->len);
    if (w->error) {
        const int error = w->error;
        zct_writer_close(w, false);
        unlink(path); /* a file without a head is no trace */
        return -error;
    }
    begin_block(w);
    return 0;
}

static inline void put_time(struct zct_writer *w, uint8_t **to, int64_t time_ns)
{
    put_zigzag(to, time_ns - w->time_ns);
    w->time_ns = time_ns;
}

/* The fields a receive and a send share; returns the flags of those that are there. */
static inline unsigned put_envelope(uint8_t **to, struct zct_last *last, uint32_t comm,
                                    int32_t peer, int32_t tag, uint64_t bytes)
{
    unsigned flags = 0;
    if (comm != last->comm) {
        flags |= ZCT_HAS_COMM;
        put_varint(to, comm);
        last->comm = comm;
    }
    if (peer != last->peer) {
        flags |= ZCT_HAS_PEER;
        put_zigzag(to, (int64_t)peer - last->peer);
        last->peer = peer;
    }
    if (tag != last->tag) {
        flags |= ZCT_HAS_TAG;
        put_zigzag(to, (int64_t)tag - last->tag);
        last->tag = tag;
    }
    if (bytes != last->bytes) {
        flags |= ZCT_HAS_BYTES;
        put_varint(to, bytes);
        last->bytes = bytes;
    }
    return flags;
}

/* Where it was posted. */
static inline void put_site(const struct zct_writer *w, uint8_t **to)
{
    if (w->calls)
        put_varint(to, w->site);
}

uint64_t zct_write_send(struct zct_writer *w, int64_t time_ns, uint32_t comm, int32_t peer,
                        int32_t tag, uint64_t bytes)
{
    const uint64_t number = w->nr_sends++;
    if (!usable(w))
        return number;
    uint8_t *const head = end_of(w);
    uint8_t *to = head + 1;
    put_time(w, &to, time_ns);
    const unsigned flags = put_envelope(&to, &w->send, comm, peer, tag, bytes);
    put_site(w, &to);
    *head = (uint8_t)(ZCT_SEND | flags | (w->calls && w->synchronous ? ZCT_SYNCHRONOUS : 0));
    record_done(w, to);
    return number;
}

void zct_write_receive(struct zct_writer *w, const struct zct_receive *r)
{
    if (!usable(w))
        return;
    uint8_t *const head = end_of(w);
    uint8_t *to = head + 1;
    const bool matched = r->matched != r->order;
    put_time(w, &to, r->done_ns);
    put_varint(&to, (uint64_t)(r->done_ns - r->posted_ns));
    put_delta(&to, r->order, w->order + 1);
    w->order = r->order;
    unsigned flags = put_envelope(&to, &w->receive, r->comm, r->peer, r->tag, r->bytes);
    if (r->addr != w->receive.addr) {
        flags |= ZCT_HAS_ADDR;
        put_delta(&to, r->addr, w->receive.addr);
        w->receive.addr = r->addr;
    }
    if (matched)
        put_varint(&to, r->order - r->matched);
    put_site(w, &to);
    *head = (uint8_t)((matched ? ZCT_MATCHED : ZCT_RECEIVE) | flags);
    record_done(w, to);
}

void zct_write_lost(struct zct_writer *w, uint64_t order, uint32_t comm, int32_t peer, int32_t tag)
{
    if (!usable(w))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_LOST);
    put_varint(&to, order);
    put_varint(&to, comm);
    put_zigzag(&to, peer);
    put_zigzag(&to, tag);
    record_done(w, to);
}

static void put_members(struct zct_writer *w, const int *ranks, size_t count)
{
    /* At worst every member is a run of its own: two varints of 5 bytes. */
    if (!make_room(w, 10 * count + 10))
        return;
    uint8_t *to = end_of(w);
    put_varint(&to, count);
    int64_t expected = 0;
    for (size_t i = 0; i < count;) {
        size_t n = 1;
        while (ranks[i] >= 0 && i + n < count && ranks[i + n] == ranks[i] + (int)n)
            n++;
        put_zigzag(&to, ranks[i] - expected);
        put_varint(&to, n);
        expected = (int64_t)ranks[i] + (int64_t)n;
        i += n;
    }
    put_until(w, to);
}

uint32_t zct_write_communicator(struct zct_writer *w, const int *local, size_t nr_local,
                                const int *remote, size_t nr_remote)
{
    const uint32_t comm = (uint32_t)w->nr_comms++;
    if (!usable(w))
        return comm;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_COMMUNICATOR | (remote ? ZCT_INTER : 0));
    put_until(w, to);
    put_members(w, local, nr_local);
    if (usable(w) && remote)
        put_members(w, remote, nr_remote);
    if (usable(w))
        record_done(w, end_of(w));
    return comm;
}

uint64_t zct_write_collective(struct zct_writer *w, int64_t time_ns, uint64_t order,
                              enum zct_kind kind, uint32_t comm, int32_t root)
{
    const uint64_t collective = w->nr_collectives++;
    if (!usable(w))
        return collective;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_COLLECTIVE);
    put_time(w, &to, time_ns);
    put_delta(&to, order, w->order + 1);
    w->order = order;
    put_byte(&to, kind);
    put_varint(&to, comm);
    put_zigzag(&to, root);
    put_site(w, &to);
    put_until(w, to);
    memset(w->run, 0, sizeof(w->run));
    return collective;
}

void zct_write_run(struct zct_writer *w, const struct zct_run *run)
{
    if (!usable(w) || !run->count || !make_room(w, 0))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, run->direction);
    put_zigzag(&to, run->first - w->run[run->direction].peer);
    put_varint(&to, run->count);
    put_delta(&to, run->bytes, w->run[run->direction].bytes);
    w->run[run->direction].peer = run->first + (int64_t)run->count;
    w->run[run->direction].bytes = run->bytes;
    if (run->direction == ZCT_RUN_RECEIVE) {
        put_delta(&to, run->addr, w->run[run->direction].addr);
        if (run->count > 1)
            put_delta(&to, run->stride, run->bytes);
        w->run[run->direction].addr = run->addr + (run->count - 1) * run->stride + run->bytes;
    }
    put_until(w, to);
}

void zct_write_collective_ready(struct zct_writer *w)
{
    if (!usable(w) || !make_room(w, 0))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_RUN_END);
    record_done(w, to);
}

void zct_write_collective_end(struct zct_writer *w, int64_t time_ns, uint64_t collective)
{
    if (!usable(w))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_COLLECTIVE_END);
    put_time(w, &to, time_ns);
    put_delta(&to, collective, w->ended + 1);
    w->ended = collective;
    record_done(w, to);
}

uint32_t zct_write_site(struct zct_writer *w, uint64_t address, uint64_t offset, const char *module,
                        const char *symbol)
{
    const uint32_t site = (uint32_t)w->nr_sites++;
    if (!usable(w) || !make_room(w, strlen(module) + strlen(symbol)))
        return site;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_SITE);
    put_varint(&to, address);
    put_varint(&to, offset);
    put_until(w, to);
    put_string(w, module);
    put_string(w, symbol);
    record_done(w, end_of(w));
    return site;
}

void zct_write_call(struct zct_writer *w, const struct zct_call *call)
{
    /* At worst ten bytes a number. */
    if (!usable(w) || (call->nr_sends && !make_room(w, 10 * call->nr_sends)))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_CALL);
    put_time(w, &to, call->end_ns);
    put_varint(&to, (uint64_t)(call->end_ns - call->begin_ns));
    put_byte(&to, call->function);
    put_varint(&to, call->site);
    put_varint(&to, call->nr_sends);
    for (size_t i = 0; i < call->nr_sends; i++) {
        put_delta(&to, call->sends[i], w->completed + 1);
        w->completed = call->sends[i];
    }
    record_done(w, to);
}

void zct_write_clock(struct zct_writer *w, int64_t time_ns, int64_t ahead_ns, uint64_t error_ns)
{
    if (!usable(w))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_CLOCK);
    put_time(w, &to, time_ns);
    put_zigzag(&to, ahead_ns);
    put_varint(&to, error_ns);
    record_done(w, to);
}

void zct_write_unrecorded(struct zct_writer *w, const struct zct_unrecorded_count *count)
{
    if (!usable(w))
        return;
    uint8_t *to = end_of(w);
    put_byte(&to, ZCT_UNRECORDED);
    put_byte(&to, count->what);
    put_varint(&to, count->site);
    put_varint(&to, count->calls);
    put_varint(&to, count->bytes);
    put_varint(&to, count->ns);
    record_done(w, to);
}

int zct_writer_close(struct zct_writer *w, bool finished)
{
    if (usable(w) && finished) {
        uint8_t *to = end_of(w);
        put_byte(&to, ZCT_END);
        put_until(w, to);
        w->empty = false;
    }
    zct_writer_flush(w);
    free(w->buffer);
    w->buffer = NULL;
    if (w->fd >= 0 && close(w->fd) != 0 && !w->error)
        w->error = errno;
    w->fd = -1;
    return -w->error;
}
