/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_WRITER_H_INCLUDED
#define ZCT_WRITER_H_INCLUDED

/*
 * Writes a .zct file (zct/format.h). No MPI here, so that tests and benchmarks
 * can use it. Not thread-safe: the caller has a lock. No call but zct_writer_open
 * and the rare growth for a record larger than a block allocates.
 *
 * A failing write (disk full) is remembered in `error`; from then on all calls
 * do nothing, and the program that is traced goes on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zct/format.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the file's header says. */
struct zct_head {
    uint32_t rank;
    uint32_t processes;
    uint64_t run;
    uint64_t start_ns; /* since 1970 */
    const char *mpi;
    const char *program;
    const char *command;
    const char *host;
    bool calls; /* version 3: zct_write_site, _call, _clock and _unrecorded may be used */
};

/** The values that the next record of a type is relative to. */
struct zct_last {
    uint32_t comm;
    int32_t peer;
    int32_t tag;
    uint64_t bytes;
    uint64_t addr;
};

struct zct_writer {
    int fd;
    int error;       /* errno of the write that failed, else 0 */
    int64_t owner;   /* pid: a forked child must not write its copy of the buffer */
    uint8_t *buffer; /* room for the block's head, then state and records */
    size_t capacity;
    size_t len;
    bool empty;       /* no record in the block yet */
    int64_t first_ns; /* time of the first record of the block */
    int64_t time_ns;
    uint64_t order; /* of the last receive or collective written */
    uint64_t began; /* receives posted and collectives begun */
    uint64_t ended; /* the last collective ended */
    uint64_t nr_collectives;
    uint64_t nr_comms;
    uint64_t nr_sends;
    uint64_t nr_sites;
    uint64_t completed; /* the last send that a call is recorded to have completed */
    bool calls;         /* version 3 */
    uint32_t site;      /* of the sends, receives and collectives written next; version 3 */
    bool synchronous;   /* are the sends written next? version 3 */
    struct zct_last send;
    struct zct_last receive;
    struct {
        int64_t peer;
        uint64_t bytes;
        uint64_t addr;
    } run[3];
};

/** Calls of which nothing else is written. */
struct zct_unrecorded_count {
    enum zct_unrecorded what;
    uint32_t site;
    uint64_t calls;
    uint64_t bytes;
    uint64_t ns;
};

/** A completed receive. */
struct zct_receive {
    int64_t posted_ns;
    int64_t done_ns;
    uint64_t order;
    uint64_t matched; /* == order but for MPI_Mrecv */
    uint32_t comm;
    int32_t peer;
    int32_t tag;
    uint64_t bytes;
    uint64_t addr;
};

/** Several messages of a collective call, to or from consecutive ranks. */
struct zct_run {
    enum zct_direction direction;
    int64_t first;
    uint64_t count;
    uint64_t bytes;
    uint64_t addr;   /* receives only */
    uint64_t stride; /* receives only */
};

/** Creates the file, which must not exist. 0, -EEXIST and other errors of open(2), -ENOMEM. */
int zct_writer_open(struct zct_writer *w, const char *path, const struct zct_head *head);

/** The number of the next event; to be called when a receive is posted or a collective begins. */
static inline uint64_t zct_writer_begin(struct zct_writer *w)
{
    return w->began++;
}

/** Returns the send's number. */
uint64_t zct_write_send(struct zct_writer *w, int64_t time_ns, uint32_t comm, int32_t peer,
                        int32_t tag, uint64_t bytes);
void zct_write_receive(struct zct_writer *w, const struct zct_receive *receive);
void zct_write_lost(struct zct_writer *w, uint64_t order, uint32_t comm, int32_t peer, int32_t tag);

/** @remote: NULL but for an intercommunicator. Returns the communicator's number. */
uint32_t zct_write_communicator(struct zct_writer *w, const int *local, size_t nr_local,
                                const int *remote, size_t nr_remote);

/** A collective call, in whole: its beginning, its messages, ready. @order is from
 * zct_writer_begin. Returns the call's number. */
uint64_t zct_write_collective(struct zct_writer *w, int64_t time_ns, uint64_t order,
                              enum zct_kind kind, uint32_t comm, int32_t root);
void zct_write_run(struct zct_writer *w, const struct zct_run *run);
void zct_write_collective_ready(struct zct_writer *w);
void zct_write_collective_end(struct zct_writer *w, int64_t time_ns, uint64_t collective);

/** A place that calls MPI; returns its number. */
uint32_t zct_write_site(struct zct_writer *w, uint64_t address, uint64_t offset, const char *module,
                        const char *symbol);

/** A call that may wait, after what it completed was written. */
struct zct_call {
    int64_t begin_ns;
    int64_t end_ns;
    enum zct_function function;
    uint32_t site;
    const uint64_t *sends; /* that it completed */
    size_t nr_sends;
};
void zct_write_call(struct zct_writer *w, const struct zct_call *call);

/** The clocks were compared. */
void zct_write_clock(struct zct_writer *w, int64_t time_ns, int64_t ahead_ns, uint64_t error_ns);

void zct_write_unrecorded(struct zct_writer *w, const struct zct_unrecorded_count *count);

/** Writes the block out, also if it is not full. */
void zct_writer_flush(struct zct_writer *w);

/** @finished: the program came to its end. Returns 0 or the first error, negative. */
int zct_writer_close(struct zct_writer *w, bool finished);

#ifdef __cplusplus
}
#endif

#endif
