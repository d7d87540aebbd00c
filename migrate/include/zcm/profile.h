/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCM_PROFILE_H_INCLUDED
#define ZCM_PROFILE_H_INCLUDED

/**
 * What a rank tells the agent of its node: a file of shared memory, written by the
 * rank alone, read by zcmd once a second.
 *
 *   zcm_profile_create()   at the start, and again after a move, on the new node
 *   zcm_profile_sent()     a message was sent: some ten nanoseconds, no system call
 *   zcm_profile_point()    an iteration has ended
 *   zcm_profile_mpi()      time spent inside MPI
 *   zcm_profile_image()    bytes that a move would carry
 *   zcm_profile_world()    who is where, after each reconfiguration
 *   zcm_profile_close()    the rank leaves this node: the file goes
 *
 * One thread at a time writes (the caller's lock, if it has several). Every function
 * takes NULL for a profile and then does nothing, so that a rank without an agent
 * pays one test. Readers never make the writer wait: counters are guarded by a
 * sequence lock, the ring of messages tells by its head what has been overwritten.
 *
 *       0  struct zcm_profile (header, counters, table of peers)
 *          ring: ZCM_PROFILE_RING entries of struct zcm_profile_message
 *          hosts: world * uint32_t, index of each rank's host
 *          names: hosts_max * ZCM_PROFILE_NAME bytes, NUL-terminated
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZCM_PROFILE_MAGIC 0x5031635au /* "Zc1P" */
#define ZCM_PROFILE_VERSION 2u
#define ZCM_PROFILE_PEERS 256u /* a power of two */
#define ZCM_PROFILE_RING 4096u /* likewise */
#define ZCM_PROFILE_NAME 64u
#define ZCM_PROFILE_MAX_WORLD 1048576u

/** One message sent. */
struct zcm_profile_message {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t peer;
    uint32_t kibibytes; /* rounded up, saturating */
};

/** All that was sent to one rank. */
struct zcm_profile_peer {
    uint32_t rank_plus_1; /* 0: free */
    uint32_t reserved;
    uint64_t bytes;
    uint64_t messages;
};

#define ZCM_PROFILE_MOVABLE 1u /* has called zcm_init() and reaches safe points */
#define ZCM_PROFILE_BUSY 2u    /* its job is being reconfigured */
#define ZCM_PROFILE_ENDED 4u   /* will not write again */
#define ZCM_PROFILE_OBSERVE 8u /* ZC_MIGRATE=observe: decide, say so, do not move */

/** Guarded by sequence: odd while they are being written. */
struct zcm_profile_counters {
    uint64_t epoch; /* reconfigurations of the job so far, plus 1 */
    uint64_t iterations;
    uint64_t total_iterations; /* 0: not known */
    uint64_t image_bytes;
    uint64_t mpi_ns;
    uint64_t start_ns; /* of the job, CLOCK_MONOTONIC of this node */
    uint32_t flags;
    uint32_t hosts; /* names in use */
    uint64_t others_bytes; /* to peers that found no place in the table */
    uint64_t reserved[7];
};

struct zcm_profile {
    uint32_t magic;
    uint32_t version;
    uint64_t size; /* of the file */
    uint64_t job;  /* the same in all ranks of a job, another in every other job */
    uint32_t rank;
    uint32_t world;
    uint32_t pid;
    uint32_t hosts_max;
    char job_name[ZCM_PROFILE_NAME]; /* of its socket: NAME.sock; empty: none */
    uint32_t sequence;
    int32_t lock; /* the writer's descriptor of the file, locked for as long as it lives */
    struct zcm_profile_counters counters;
    uint64_t ring_head; /* messages ever written; the next goes to head % ZCM_PROFILE_RING */
    struct zcm_profile_peer peers[ZCM_PROFILE_PEERS];
};

#ifdef __cplusplus
/* Shared with C, which has no other casts. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif

/** Bytes of the file for so many ranks and hosts. */
static inline uint64_t zcm_profile_size(uint32_t world, uint32_t hosts_max)
{
    return sizeof(struct zcm_profile) +
           (uint64_t)ZCM_PROFILE_RING * sizeof(struct zcm_profile_message) +
           (uint64_t)world * sizeof(uint32_t) + (uint64_t)hosts_max * ZCM_PROFILE_NAME;
}

/**
 * zcm_profile_create - begin to tell
 * @directory: NULL: $ZCM_PROFILE_DIR, else $XDG_RUNTIME_DIR/zcm/ranks, if that variable names
 *             a directory that exists and is ours, else /tmp/zcm-UID/ranks; made if needed,
 *             mode 0700, and ours or refused
 * @job, @job_name, @rank, @world: see struct zcm_profile
 * @hosts_max: most different hosts the job may ever be on; at least 1
 * @out:      set only on success
 *
 * The file appears complete, as JOB.RANK.PID, and locked (F_OFD_SETLK): the lock goes with
 * the process, however it ends, and with it what the file says. Return: 0; -EINVAL; -EPERM
 * the directory belongs to somebody else or is open to others; or what the system says.
 */
int zcm_profile_create(const char *directory, uint64_t job, const char *job_name, uint32_t rank,
                       uint32_t world, uint32_t hosts_max, struct zcm_profile **out);

/** Who is where. @host_of: @world indices into @names; @names: @hosts host names (longer
 *  ones are cut). Return: 0; -EINVAL; -ENOSPC more than hosts_max. */
int zcm_profile_world(struct zcm_profile *p, uint64_t epoch, const uint32_t *host_of,
                      const char *const *names, uint32_t hosts);

/** The file goes, and the memory. @directory: as given to zcm_profile_create(). */
void zcm_profile_close(struct zcm_profile *p, const char *directory);

static inline void zcm_profile_begin_(struct zcm_profile *p)
{
    __atomic_store_n(&p->sequence, p->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void zcm_profile_end_(struct zcm_profile *p)
{
    __atomic_store_n(&p->sequence, p->sequence + 1, __ATOMIC_RELEASE);
}

/** An iteration has ended: @iterations so far, of @total (0: not known). */
static inline void zcm_profile_point(struct zcm_profile *p, uint64_t iterations, uint64_t total)
{
    if (!p)
        return;
    zcm_profile_begin_(p);
    p->counters.iterations = iterations;
    p->counters.total_iterations = total;
    zcm_profile_end_(p);
}

/** @ns more were spent inside MPI. */
static inline void zcm_profile_mpi(struct zcm_profile *p, uint64_t ns)
{
    if (p)
        __atomic_store_n(&p->counters.mpi_ns, p->counters.mpi_ns + ns, __ATOMIC_RELAXED);
}

static inline void zcm_profile_image(struct zcm_profile *p, uint64_t bytes)
{
    if (p)
        __atomic_store_n(&p->counters.image_bytes, bytes, __ATOMIC_RELAXED);
}

/** Set @flags to what they shall be: ZCM_PROFILE_MOVABLE and so on. */
static inline void zcm_profile_flags(struct zcm_profile *p, uint32_t flags)
{
    if (p)
        __atomic_store_n(&p->counters.flags, flags, __ATOMIC_RELEASE);
}

/** A message of @bytes to world rank @peer was sent at @time_ns. */
static inline void zcm_profile_sent(struct zcm_profile *p, uint32_t peer, uint64_t bytes,
                                    uint64_t time_ns)
{
    struct zcm_profile_message *ring;
    struct zcm_profile_message *m;
    uint32_t at;
    uint32_t tries;
    uint64_t kib = (bytes + 1023) >> 10;

    if (!p)
        return;
    ring = (struct zcm_profile_message *)(p + 1);
    m = &ring[p->ring_head % ZCM_PROFILE_RING];
    __atomic_store_n(&m->time_ns, time_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&m->peer, peer, __ATOMIC_RELAXED);
    __atomic_store_n(&m->kibibytes, kib > UINT32_MAX ? UINT32_MAX : (uint32_t)kib,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&p->ring_head, p->ring_head + 1, __ATOMIC_RELEASE);

    /* Fibonacci hashing; a place, once taken, is kept. */
    at = (uint32_t)((peer * 2654435769u) >> 24) & (ZCM_PROFILE_PEERS - 1);
    for (tries = 0; tries < 8; tries++, at = (at + 1) & (ZCM_PROFILE_PEERS - 1)) {
        struct zcm_profile_peer *e = &p->peers[at];
        if (e->rank_plus_1 != peer + 1) {
            if (e->rank_plus_1 != 0)
                continue;
            __atomic_store_n(&e->rank_plus_1, peer + 1, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&e->bytes, e->bytes + bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&e->messages, e->messages + 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&p->counters.others_bytes, p->counters.others_bytes + bytes, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif /* ZCM_PROFILE_H_INCLUDED */
