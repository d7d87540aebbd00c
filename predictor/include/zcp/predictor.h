/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_PREDICTOR_H_INCLUDED
#define ZCP_PREDICTOR_H_INCLUDED

/**
 * Prediction of MPI receives: which buffer will this message go to, and which
 * receives come next.
 *
 * Pure: no I/O, no globals, no threads, no clock. One zcp_t is used by one
 * thread at a time (the caller locks). Memory is bounded by
 * zcp_params_t::max_bytes; the cost of an event does not grow with history.
 *
 * The caller reports three kinds of event:
 *   zcp_receive()  a message has met its receive: its envelope and user buffer
 *   zcp_arrival()  a message came before its receive: asks where it will go
 *   zcp_settle()   that message has now met its receive: was the answer right?
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ZCP_NOEXCEPT noexcept
extern "C" {
#else
#define ZCP_NOEXCEPT
#endif

#define ZCP_PUBLIC __attribute__((visibility("default")))

typedef struct zcp zcp_t;

/** What a message says of itself before it is matched: match bits and length. */
typedef struct {
    uint32_t comm;   /* context id */
    int32_t source;  /* rank of the sender in comm, never a wildcard */
    int32_t tag;     /* actual tag, never a wildcard; -1 where there is none */
    uint64_t bytes;  /* length of the message, not of the buffer */
} zcp_envelope_t;

/** One receive: envelope and user buffer. */
typedef struct {
    zcp_envelope_t envelope;
    uint64_t addr; /* user virtual address */
} zcp_receive_t;

typedef enum {
    ZCP_DEFAULT = 0, /* the engine the netmod uses */
    ZCP_GRAPH,       /* order-3 graph, Freitag et al., ICCS 2004, section 2 */
    ZCP_DPD,         /* dynamic periodicity detector, ibid. and Freitag, Corbalan, Labarta */
    ZCP_LAST,        /* baseline: last address of the same (comm, source, tag) */
    ZCP_LAST_SIZE,   /* baseline: last address of the same (comm, source, tag, bytes) */
    ZCP_OFFSET,      /* baseline: always page offset 0x10 (a long malloc); landing only */
    ZCP_LAST_SENDER, /* baseline: last address of the same (source, bytes), whatever the tag */
    ZCP_KIND_COUNT
} zcp_kind_t;

/** Stable short name: "default", "graph", "dpd", "last", "last-size", "offset",
 *  "last-sender"; NULL if unknown. */
ZCP_PUBLIC const char *zcp_kind_name(zcp_kind_t kind) ZCP_NOEXCEPT;
/** The kind of that name, or -1. */
ZCP_PUBLIC int zcp_kind_parse(const char *name) ZCP_NOEXCEPT;

/**
 * Parameters of zcp_create(). Set size to sizeof(zcp_params_t); fields beyond
 * the caller's size, and zero fields, take their defaults.
 */
typedef struct {
    size_t size;
    zcp_kind_t kind;
    uint32_t horizon;      /* H: how many predicted receives a landing query searches;
                              default 16, most 512 */
    size_t max_bytes;      /* memory of the engine; default 1 MiB, least 64 KiB */
    uint32_t dpd_window;   /* ZCP_DPD: samples that must repeat; default 256 */
    float min_confidence;  /* below it a landing query answers "unknown"; default 0.25 */
    uint32_t dpd_least;    /* ZCP_DPD: as many as have come are enough, from this many on and if
                              they are a whole period; default dpd_window */
} zcp_params_t;

/**
 * zcp_create - make an engine
 * @params: NULL for defaults
 * @out:    set only on success; free with zcp_destroy()
 *
 * All memory is taken here; no later call allocates or fails for want of it.
 *
 * Return: 0; -EINVAL (size, fields unknown here, unknown kind, horizon above
 * 512, max_bytes below 64 KiB or too small for dpd_window, dpd_least above
 * dpd_window, min_confidence not within 0 … 1); -ENOMEM.
 */
ZCP_PUBLIC int zcp_create(const zcp_params_t *params, zcp_t **out) ZCP_NOEXCEPT;
/** NULL is allowed. */
ZCP_PUBLIC void zcp_destroy(zcp_t *p) ZCP_NOEXCEPT;

/**
 * A receive met its message at once (it was posted first). Learns. One with a
 * negative source is ignored: receives from MPI_PROC_NULL say nothing.
 */
ZCP_PUBLIC void zcp_receive(zcp_t *p, const zcp_receive_t *receive) ZCP_NOEXCEPT;

/** Identifies an unexpected message between zcp_arrival() and zcp_settle(). 0: none. */
typedef uint64_t zcp_claim_t;

/** Answer to a landing query. */
typedef struct {
    uint64_t addr;     /* expected user address, or its remainder (see modulus); 0 if unknown */
    float confidence;  /* 0 … 1: how often this kind of answer has been right of late */
    uint32_t ahead;    /* 1 … H: which of the next predicted receives it is (for ZCP_DEFAULT
                          and the baselines: of those of its envelope); 0 if unknown */
    zcp_claim_t claim; /* pass to zcp_settle() or zcp_cancel(); never 0 */
    uint64_t modulus;  /* 0: addr is the address. Else a power of two, and only the congruence
                          class is known: the address modulo this is addr */
} zcp_landing_t;

/**
 * zcp_arrival - where will this unexpected message be delivered?
 *
 * Searches the next H predicted receives for the envelope; each predicted
 * receive is claimed by at most one message that is not yet settled, so two
 * messages of one envelope in flight get consecutive buffers.
 *
 * Unsettled messages are bounded by max_bytes (some 5,000 per MiB, never more
 * than 65,536): those beyond are answered unknown, and settling them teaches
 * nothing.
 *
 * Return: 1 an address is given, 0 unknown (out->addr is 0, out->claim valid),
 * -EINVAL (NULL, or a negative source: a wildcard; nothing was counted).
 */
ZCP_PUBLIC int zcp_arrival(zcp_t *p, const zcp_envelope_t *envelope,
                           zcp_landing_t *out) ZCP_NOEXCEPT;

/**
 * The message of @claim has met its receive at @addr. Learns, scores the answer.
 * Claims may settle in any order; one that is not open is ignored.
 */
ZCP_PUBLIC void zcp_settle(zcp_t *p, zcp_claim_t claim, uint64_t addr) ZCP_NOEXCEPT;

/** The message of @claim will never be received (cancelled, communicator freed). */
ZCP_PUBLIC void zcp_cancel(zcp_t *p, zcp_claim_t claim) ZCP_NOEXCEPT;

/**
 * zcp_next - the next receives, as the stream stands
 * @out: room for @k entries, nearest first
 *
 * Return: entries filled, 0 … min(k, horizon); fewer where nothing is known.
 */
ZCP_PUBLIC uint32_t zcp_next(const zcp_t *p, zcp_receive_t *out, uint32_t k) ZCP_NOEXCEPT;

/** Where an answer comes from. */
typedef enum {
    ZCP_CAUSE_NONE = 0,     /* no answer: nothing was received from there with that tag */
    ZCP_CAUSE_UNSURE,       /* no answer: the guess has been wrong too often of late */
    ZCP_CAUSE_BEYOND,       /* no answer: as many messages of it are unsettled as are foreseen */
    ZCP_CAUSE_CONSTANT,     /* the buffer this envelope always had, or has had since it moved */
    ZCP_CAUSE_PERIOD,       /* several buffers in a recurring order */
    ZCP_CAUSE_STRIDE,       /* at a distance from where the last ones went */
    ZCP_CAUSE_ANY_SIZE,     /* the buffers of that sender and tag, whatever the size */
    ZCP_CAUSE_CLASS,        /* addresses do not recur, their page offset does */
    ZCP_CAUSE_STREAM,       /* found among the next receives of all (ZCP_GRAPH, ZCP_DPD) */
    ZCP_CAUSE_FIXED,        /* a rule that learns nothing (ZCP_OFFSET) */
    ZCP_CAUSE_COUNT
} zcp_cause_t;

/** Stable short name: "none", "unsure", "beyond", "constant", …; NULL if unknown. */
ZCP_PUBLIC const char *zcp_cause_name(zcp_cause_t cause) ZCP_NOEXCEPT;

/** Why the next message of an envelope would be answered as it would. */
typedef struct {
    size_t size;       /* in: sizeof(zcp_explanation_t) */
    zcp_cause_t cause;
    uint32_t period;   /* ZCP_CAUSE_PERIOD: receives until the buffers repeat; else 0 */
    uint64_t guess;    /* address or remainder, also where it would be withheld; 0: none */
    uint64_t modulus;  /* as in zcp_landing_t */
    float confidence;  /* of the guess */
    uint32_t unsettled; /* messages of the envelope that came before and are not settled */
    char text[200];    /* one line of English, NUL-terminated */
} zcp_explanation_t;

/**
 * zcp_explain - what zcp_arrival() would answer, and why
 *
 * Changes nothing and claims nothing. Not for the fast path: formats text.
 *
 * Return: 1 an address would be given, 0 unknown, -EINVAL (NULL, explanation->size
 * too small, or a negative source).
 */
ZCP_PUBLIC int zcp_explain(const zcp_t *p, const zcp_envelope_t *envelope,
                           zcp_explanation_t *explanation) ZCP_NOEXCEPT;

/** Counters since zcp_create(). hits + misses + unknown == settled. */
typedef struct {
    size_t size; /* in: sizeof(zcp_stats_t) */
    uint64_t receives; /* events learned, settled ones included */
    uint64_t arrivals;
    uint64_t settled;
    uint64_t hits;      /* right address; right class, where no more was answered */
    uint64_t congruent; /* of the misses: same offset modulo 4 KiB */
    uint64_t misses;
    uint64_t unknown;
    uint64_t cancelled;
    uint64_t bytes;     /* memory held, at most max_bytes */
} zcp_stats_t;

/** Return: 0; -EINVAL (NULL, or stats->size too small). */
ZCP_PUBLIC int zcp_stats(const zcp_t *p, zcp_stats_t *stats) ZCP_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* ZCP_PREDICTOR_H_INCLUDED */
