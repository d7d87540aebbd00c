/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_H_INCLUDED
#define ZCP_GROUPING_H_INCLUDED

/**
 * Grouping of MPI ranks: which pairs will communicate in the next period, and which
 * ranks should therefore stay, or move, together.
 *
 *   zcp_groups_event()      a message was sent: learns
 *   zcp_groups_forecast()   likely traffic of the next period
 *   zcp_groups_expect()     its mean, to place ranks by
 *   zcp_groups_around()     the ranks that should go with one rank
 *   zcp_groups_cut()        all ranks into groups of bounded size
 *   zcp_patterns_find()     repeated patterns with don't-cares (TEIRESIAS)
 *
 * Pure: no I/O, no globals, no threads, no clock. One zcp_groups_t is used by
 * one thread at a time (the caller locks). Equal calls give equal answers.
 * docs/grouping.md has the algorithms, their sources and measurements.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ZCP_GROUPS_NOEXCEPT noexcept
extern "C" {
#else
#define ZCP_GROUPS_NOEXCEPT
#endif

#define ZCP_GROUPS_PUBLIC __attribute__((visibility("default")))

#define ZCP_GROUPS_MAX_RANKS 46340u /* largest N whose pair alphabet N*N stays below 2^31 */

/* ---- events ------------------------------------------------------------ */

/** One message, seen when it was sent. */
typedef struct {
    uint32_t src;     /* world rank of the sender */
    uint32_t dst;     /* world rank of the receiver */
    uint64_t bytes;
    uint64_t time_ns; /* any origin; only differences count, and only with period_ns */
    uint32_t kind;    /* the caller's classes, 0 … 31, e.g. 0 for point to point; see kinds */
    uint32_t reserved; /* 0 */
} zcp_event_t;

/* ---- predictors -------------------------------------------------------- */

typedef enum {
    ZCP_GROUPS_DEFAULT = 0, /* each sender's next destinations, longest match */
    ZCP_GROUPS_PERSISTENCE, /* baseline: the next period is like the last */
    ZCP_GROUPS_MATRIX,      /* baseline: traffic matrix, halved every period */
    ZCP_GROUPS_BASIC,       /* Singh & Graham: the longest TEIRESIAS pattern goes on */
    ZCP_GROUPS_HISTORICAL,  /* same: what came next when this very pattern was last seen */
    ZCP_GROUPS_LEVENSHTEIN, /* same: what came next after the most similar pattern */
    ZCP_GROUPS_KIND_COUNT
} zcp_groups_kind_t;

typedef struct zcp_groups zcp_groups_t;

/** Stable short name: "default", "persistence", "matrix", "basic", "historical",
 *  "levenshtein"; NULL if unknown. */
ZCP_GROUPS_PUBLIC const char *zcp_groups_kind_name(zcp_groups_kind_t kind) ZCP_GROUPS_NOEXCEPT;
/** The kind of that name, or -1. */
ZCP_GROUPS_PUBLIC int zcp_groups_kind_parse(const char *name) ZCP_GROUPS_NOEXCEPT;

/* Readings of Singh & Graham, where their text has more than one or zc does otherwise:
 * docs/papers/singh-graham.md. */

/** What becomes of patterns that repeat a shorter one (their section 4.5). */
typedef enum {
    ZCP_GROUPS_KMP_OFF = 0, /* they stay: the original predictors */
    ZCP_GROUPS_KMP_ZC,      /* the shorter one takes their place, a last repetition cut short
                               counts, and patterns that repeat nothing stay */
    ZCP_GROUPS_KMP_STRICT,  /* as the paper has it: whole repetitions of a pattern that was found,
                               and what is repeated takes the place of all patterns */
    ZCP_GROUPS_KMP_COUNT
} zcp_groups_kmp_t;

/** When the specific historical predictor knows a pattern again (their section 4.4). */
typedef enum {
    ZCP_GROUPS_MATCH_WHOLE = 0, /* an earlier pattern is equal to it */
    ZCP_GROUPS_MATCH_PREFIX,    /* an earlier pattern begins with it */
    ZCP_GROUPS_MATCH_COUNT
} zcp_groups_match_t;

/** Which sampling period is the most recent one (their sections 4.1 and 4.4). */
typedef enum {
    ZCP_GROUPS_RECENT_OVER = 0, /* the last one that is over */
    ZCP_GROUPS_RECENT_CURRENT,  /* the one in which the request comes, as far as it has come */
    ZCP_GROUPS_RECENT_COUNT
} zcp_groups_recent_t;

/**
 * Parameters of zcp_groups_create(). Set size to sizeof(zcp_groups_params_t);
 * fields beyond the caller's size, and zero fields, take their defaults.
 */
typedef struct {
    size_t size;
    uint32_t ranks;         /* N, ranks of the world; required, 1 … ZCP_GROUPS_MAX_RANKS */
    zcp_groups_kind_t kind;
    uint32_t period_events; /* sampling period and horizon, in events of all ranks;
                               default 8 per rank, at least 512;
                               most 2^20 */
    uint64_t period_ns;     /* if not 0: the period in time instead; period_events is ignored */
    size_t max_bytes;       /* memory, queries included; default 4 MiB + 4 KiB per rank */
    uint32_t kinds;         /* learn only events whose bit (1 << kind) is set; default all */
    /* The rest is for the Singh & Graham predictors only. */
    uint32_t kmp;           /* a zcp_groups_kmp_t */
    uint32_t adaptive;      /* 1: adapt the sampling period to the pattern found */
    uint32_t literals;      /* L, default 3 */
    uint32_t window;        /* W, default 4 */
    uint32_t support;       /* K, default 2 */
    uint32_t match;         /* a zcp_groups_match_t */
    uint32_t recent;        /* a zcp_groups_recent_t */
} zcp_groups_params_t;

/**
 * zcp_groups_create - make an engine
 * @params: not NULL: the number of ranks has no default
 * @out:    set only on success; free with zcp_groups_destroy()
 *
 * No engine, whatever it is fed or asked, takes more than max_bytes.
 *
 * Return: 0; -EINVAL (size, fields unknown here, ranks, kind or a reading out of range,
 * period too long, L/W/K not 2 ≤ L ≤ W ≤ 32, K ≥ 2); -ENOSPC max_bytes is too
 * small for this many ranks; -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int zcp_groups_create(const zcp_groups_params_t *params,
                                        zcp_groups_t **out) ZCP_GROUPS_NOEXCEPT;
/** NULL is allowed. */
ZCP_GROUPS_PUBLIC void zcp_groups_destroy(zcp_groups_t *g) ZCP_GROUPS_NOEXCEPT;

/**
 * A message was sent. Learns; where a period ends, scores the last forecast.
 * Events whose ranks are outside the world, whose kind is 32 or more, or not
 * wanted, are counted and otherwise ignored. A time before the one seen last is
 * taken as equal to it. Constant time, but for the end of a period and for
 * senders without order (one pass over the sender's history).
 */
ZCP_GROUPS_PUBLIC void zcp_groups_event(zcp_groups_t *g,
                                        const zcp_event_t *event) ZCP_GROUPS_NOEXCEPT;

/** Traffic from one rank to another. */
typedef struct {
    uint32_t src, dst; /* never equal */
    uint64_t bytes;    /* saturating */
    uint32_t messages; /* at least 1; saturating */
    float confidence;  /* 0 … 1: how far forecasts of this sender have agreed with what came, of late */
} zcp_flow_t;

/**
 * zcp_groups_forecast - the likely traffic of the period that starts now
 * @flows:    room for @capacity entries; may be NULL if that is 0
 * @capacity: entries
 *
 * Which pairs will communicate: for each sender the one continuation thought best, pairs
 * below half a message left out. Most bytes first; equal ones by src, then dst.
 * O(F log F) for F flows, plus the length of the period.
 *
 * Return: the number of flows there are, which may exceed @capacity; -EINVAL;
 * -ENOMEM (the system's; never for want of max_bytes).
 */
ZCP_GROUPS_PUBLIC int64_t zcp_groups_forecast(const zcp_groups_t *g, zcp_flow_t *flows,
                                              size_t capacity) ZCP_GROUPS_NOEXCEPT;

/**
 * zcp_groups_expect - the mean traffic of the period that starts now
 *
 * As zcp_groups_forecast(), but all continuations thought possible, each as far as
 * it has deserved trust, so most pairs are there with a part of a message (rounded
 * up in messages, not in bytes). It is what to place ranks by: what stays inside
 * groups is linear in the traffic, so groups that are best for the mean keep most
 * in the mean. Arguments and results as there.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_groups_expect(const zcp_groups_t *g, zcp_flow_t *flows,
                                            size_t capacity) ZCP_GROUPS_NOEXCEPT;

/**
 * zcp_groups_cut - all ranks into groups, by zcp_groups_expect()
 * @max_size: most ranks in a group, ≥ 1
 * @group_of: N entries: the group of each rank, numbered from 0 by their lowest rank
 *
 * The rule is that of zcp_flows_cut(). Return: number of groups; -EINVAL, -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_groups_cut(const zcp_groups_t *g, uint32_t max_size,
                                         uint32_t *group_of) ZCP_GROUPS_NOEXCEPT;

/**
 * zcp_groups_around - the ranks that should go with @rank
 * @max_size: most ranks, @rank included: the room on the target
 * @ranks:    @max_size entries; @rank first, then in the order of joining
 *
 * The rule is that of zcp_flows_around(). Return: number of ranks, ≥ 1;
 * -EINVAL, -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_groups_around(const zcp_groups_t *g, uint32_t rank,
                                            uint32_t max_size,
                                            uint32_t *ranks) ZCP_GROUPS_NOEXCEPT;

/** Counters since zcp_groups_create(). */
typedef struct {
    size_t size; /* in: sizeof(zcp_groups_stats_t) */
    uint64_t events;       /* learned */
    uint64_t ignored;      /* outside the world, or of a kind not wanted */
    uint64_t periods;      /* ended */
    uint64_t pairs_dropped; /* events not entered in a table of pairs because it was full */
    uint64_t partial;      /* pattern searches cut short by their budget */
    uint64_t bytes;        /* memory held */
    uint64_t peak_bytes;   /* highest ever, queries included; at most max_bytes */
    uint64_t max_bytes;
    uint32_t sampling;     /* current sampling period, events; 0 where there is none */
    float agreement;       /* 0 … 1: decayed agreement of forecasts with what came */
} zcp_groups_stats_t;

/** Return: 0; -EINVAL (NULL, or stats->size too small). */
ZCP_GROUPS_PUBLIC int zcp_groups_stats(const zcp_groups_t *g,
                                       zcp_groups_stats_t *stats) ZCP_GROUPS_NOEXCEPT;

/* ---- from traffic to groups --------------------------------------------- */

/**
 * zcp_flows_cut - groups of at most @max_size ranks that keep traffic inside
 * @flows, @nr: traffic of any origin; ranks outside the world are ignored
 * @ranks:      N
 * @group_of:   N entries, set only on success
 *
 * Rule. The weight of two ranks is the bytes both ways plus one per message. Three
 * beginnings:
 *   agglomeration  every rank alone; in rounds, groups merge with the group to which
 *                  they have the highest weight per pair of ranks, if they fit
 *   packing        that, filled up to the fewest groups possible
 *   growth         full groups, one after another, as by zcp_flows_around()
 * From each, in at most 8 passes in order of rank, every rank moves to, or changes
 * places with one of, the group that brings most weight inside. What keeps most
 * inside is taken, the earlier of equals; in worlds below 2048 ranks it is then
 * disturbed and refined again a few times, and the best kept. Ranks without traffic
 * to their group leave it. Ties go to the lowest rank. Deterministic, whatever the order of @flows.
 *
 * Some O(F log F · log N + N²) for F flows. Return: number of groups; -EINVAL; -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_flows_cut(const zcp_flow_t *flows, size_t nr, uint32_t ranks,
                                        uint32_t max_size,
                                        uint32_t *group_of) ZCP_GROUPS_NOEXCEPT;

/**
 * zcp_flows_around - the group of one rank
 * @group: @max_size entries; @rank first, then in the order of joining
 *
 * Rule. Again and again the rank with the highest weight towards the group joins,
 * ties by the smaller weight to ranks outside, then by lowest rank, until the
 * group is full or no other rank exchanges traffic with it.
 *
 * Return: ranks in the group, ≥ 1; -EINVAL; -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_flows_around(const zcp_flow_t *flows, size_t nr, uint32_t ranks,
                                           uint32_t rank, uint32_t max_size,
                                           uint32_t *group) ZCP_GROUPS_NOEXCEPT;

/* ---- patterns (TEIRESIAS) ----------------------------------------------- */

#define ZCP_DONT_CARE UINT32_MAX

typedef struct zcp_patterns zcp_patterns_t;

/** Why a search stopped. */
typedef enum {
    ZCP_PATTERNS_COMPLETE = 0,
    ZCP_PATTERNS_STEPS,   /* max_steps; the result is the same on every machine */
    ZCP_PATTERNS_TIME,    /* expired() said so */
    ZCP_PATTERNS_MEMORY,  /* max_bytes */
    ZCP_PATTERNS_COUNT    /* max_patterns */
} zcp_patterns_end_t;

/** Set size to sizeof; zero fields, and fields beyond size, take their defaults. */
typedef struct {
    size_t size;
    uint32_t literals;    /* L: default 3, least 2 */
    uint32_t window;      /* W: any L consecutive literals span at most W places; default 5,
                             L … 32 */
    uint32_t support;     /* K: least number of occurrences; default 2, least 2 */
    uint32_t max_length;  /* longest pattern, places; default 4096, least W */
    uint64_t max_steps;   /* text places looked at; default no limit */
    size_t max_bytes;     /* memory of search and result; default 256 MiB */
    size_t max_patterns;  /* default no limit */
    int (*expired)(void *context); /* asked every 65,536 steps or so; not 0: stop. The library
                                      has no clock; default never */
    void *context;
} zcp_patterns_params_t;

/** One maximal pattern. Pointers live as long as the zcp_patterns_t. */
typedef struct {
    const uint32_t *symbols; /* length entries, ZCP_DONT_CARE between literals */
    uint32_t length;         /* places */
    uint32_t literals;
    const uint32_t *offsets; /* where it occurs, ascending */
    uint32_t occurrences;    /* at least K */
    int cut;                 /* 1: places beyond max_length were not looked at */
} zcp_pattern_t;

/**
 * zcp_patterns_find - all maximal <L,W,K> patterns of a text
 * @text: @length symbols, each 0 … 2^31 - 1
 * @out:  set only on success; free with zcp_patterns_destroy()
 *
 * TEIRESIAS (Rigoutsos and Floratos, Bioinformatics 14(1), 1998) on one sequence:
 * support counts occurrences. A pattern is maximal if no literal can be put in
 * place of a don't-care, or added at either side within <L,W>, without losing an
 * occurrence. Each is reported once. A search that hits a budget is no error: its
 * result is part of the full one, frequent beginnings first, and
 * zcp_patterns_end() says so.
 *
 * The number of patterns can grow exponentially with W and with the length for
 * small K: give a budget. Return: 0; -EINVAL (parameters, a symbol ≥ 2^31, text
 * of 2^31 or more); -ENOMEM not even the tables fit in max_bytes.
 */
ZCP_GROUPS_PUBLIC int zcp_patterns_find(const uint32_t *text, size_t length,
                                        const zcp_patterns_params_t *params,
                                        zcp_patterns_t **out) ZCP_GROUPS_NOEXCEPT;
ZCP_GROUPS_PUBLIC zcp_patterns_end_t zcp_patterns_end(const zcp_patterns_t *p)
    ZCP_GROUPS_NOEXCEPT;
ZCP_GROUPS_PUBLIC size_t zcp_patterns_count(const zcp_patterns_t *p) ZCP_GROUPS_NOEXCEPT;
/** Return: 0; -EINVAL no such index. Order: of discovery, deterministic. */
ZCP_GROUPS_PUBLIC int zcp_patterns_get(const zcp_patterns_t *p, size_t index,
                                       zcp_pattern_t *out) ZCP_GROUPS_NOEXCEPT;
/** Peak memory, bytes, and text places looked at; either may be NULL. */
ZCP_GROUPS_PUBLIC void zcp_patterns_cost(const zcp_patterns_t *p, size_t *peak_bytes,
                                         uint64_t *steps) ZCP_GROUPS_NOEXCEPT;
/** NULL is allowed. */
ZCP_GROUPS_PUBLIC void zcp_patterns_destroy(zcp_patterns_t *p) ZCP_GROUPS_NOEXCEPT;

/**
 * zcp_fundamental_period - smallest p such that @text repeats with period p
 *
 * By the failure function of Knuth, Morris and Pratt (SIAM J. Comput. 6(2), 1977,
 * section 2): @length minus the longest border. The last repeat may be cut short.
 * A don't-care equals only a don't-care. O(@length) time, 4 bytes per symbol of
 * memory. Return: p, 1 … @length; 0 for an empty text; -ENOMEM.
 */
ZCP_GROUPS_PUBLIC int64_t zcp_fundamental_period(const uint32_t *text,
                                                 size_t length) ZCP_GROUPS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* ZCP_GROUPING_H_INCLUDED */
