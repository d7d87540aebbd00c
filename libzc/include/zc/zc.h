/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ZC_H_INCLUDED
#define ZC_ZC_H_INCLUDED

/**
 * libzc - landing buffers and page rebinding
 *
 * A message that arrives before its receive is posted is written into a
 * *landing buffer*: library-owned memory whose offset within the page (within
 * 2 MiB for long messages) equals that of the user buffer it is expected to
 * end in, i.e. the two are *congruent*. When the receive is posted,
 * zc_deliver() moves the data there: whole pages are exchanged between landing
 * buffer and user buffer (*rebound*), the two ragged edges are copied; where
 * an exchange is impossible or slower, everything is copied.
 *
 *   landing buffer        |....####|########|########|##......|
 *   user buffer           |....    |        |        |  ......|
 *                              ^copied  exchanged    ^copied
 *
 * Thread safety: every call on one zc_t may be made from any thread, except
 * zc_destroy(), which must be the last. A zc_landing_t is owned by one thread
 * at a time.
 *
 * Errors: 0 or a negative errno; no global state. A call that fails has
 * changed nothing.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define ZC_NOEXCEPT noexcept
extern "C" {
#else
#define ZC_NOEXCEPT
#endif

#define ZC_PUBLIC __attribute__((visibility("default")))

typedef struct zc_context zc_t;         /* one per process: pool, rebinder, counters */
typedef struct zc_landing zc_landing_t; /* one acquired landing buffer */

/** Means of delivery; also bits (1u << means) of zc_params_t::means. */
typedef enum {
    ZC_MEANS_COPY = 0,   /* memcpy; always allowed, cannot be switched off */
    ZC_MEANS_MREMAP = 1, /* mremap(2) with MREMAP_DONTUNMAP through a spare slot */
    ZC_MEANS_KMOD = 2,   /* /dev/zc: the kernel module exchanges page-table entries */
    ZC_MEANS_COUNT
} zc_means_t;

/** Why bytes that could have been rebound were copied. One cause each. */
typedef enum {
    ZC_REASON_NONE = 0,          /* rebound */
    ZC_REASON_SMALL,             /* the cost model says a copy is cheaper */
    ZC_REASON_UNPREDICTED,       /* landed without an expected address */
    ZC_REASON_NOT_CONGRUENT,     /* mispredicted: offsets within the page differ */
    ZC_REASON_UNMAPPED,          /* part of the range is not mapped (copy will fault) */
    ZC_REASON_SHARED,            /* MAP_SHARED or shmem */
    ZC_REASON_FILE,              /* private mapping of a file */
    ZC_REASON_READ_ONLY,         /* not readable and writable, or executable */
    ZC_REASON_HUGETLB,           /* hugetlbfs pages */
    ZC_REASON_STACK,             /* the main thread's growing stack, vdso and the like */
    ZC_REASON_LOCKED,            /* mlock(2)ed */
    ZC_REASON_PINNED,            /* pinned for a device; for mremap: any page of the process */
    ZC_REASON_PAGE_SIZE,         /* huge pages on one side only, or huge and not 2 MiB-congruent */
    ZC_REASON_MAPPING_LIMIT,     /* would come too near vm.max_map_count */
    ZC_REASON_NO_MEANS,          /* allowed, but not available here */
    ZC_REASON_NO_MEMORY,         /* ENOMEM, no spare address range, or too few to exchange any */
    ZC_REASON_SYSCALL,           /* the kernel refused for a cause we do not know */
    ZC_REASON_COW,               /* shared since fork(2) or merged by KSM */
    ZC_REASON_USERFAULTFD,       /* registered with userfaultfd(2) */
    ZC_REASON_POLICY,            /* mbind(2)ed */
    ZC_REASON_NOTIFIER,          /* a device or KVM mirrors the address space */
    ZC_REASON_RACED,             /* in transit each time it was tried */
    ZC_REASON_POISONED,          /* memory failure */
    ZC_REASON_DISABLED,          /* zc_params_t::means allows nothing but copying */
    ZC_REASON_DEVICE,            /* the process uses a driver that holds pages uncounted */
    ZC_REASON_NODE,              /* the landing buffer's pages are on other NUMA nodes */
    ZC_REASON_COUNT
} zc_reason_t;

/** Short stable name for tables and JSON, e.g. "not_congruent"; never NULL. */
ZC_PUBLIC const char *zc_reason_name(zc_reason_t reason) ZC_NOEXCEPT;
ZC_PUBLIC const char *zc_means_name(zc_means_t means) ZC_NOEXCEPT;

/**
 * Parameters of zc_create(). `size` first: set it to sizeof(zc_params_t);
 * fields beyond the caller's size take their defaults. A zero field takes its
 * default, so `zc_params_t p = { .size = sizeof(p) };` is a full set of defaults.
 */
typedef struct {
    size_t size;
    size_t budget_bytes;      /* landing memory ever populated at once; default 256 MiB */
    uint32_t means;           /* allowed means, bits 1u << zc_means_t; default all */
    uint32_t flags;           /* ZC_FLAG_* */
    size_t rebind_min_bytes;  /* never rebind below this; default 0: the cost model alone */
    const char *cost_file;    /* NULL: calibrate on this machine when that is worthwhile */
    uint64_t idle_ns;         /* free landing memory unused this long goes back to
                                 the system at the next zc_pool_trim(); default 10 s */
    uint32_t max_splits;      /* mappings a rebind may add, all in all; default
                                 a quarter of vm.max_map_count */
    /* Called before a range of user memory is rebound, by whatever means (NULL:
     * no call), so that a registration cache can forget it. Any thread
     * that calls zc_deliver(); must not call back into libzc. */
    void (*before_rebind)(void *arg, void *addr, size_t len);
    void *before_rebind_arg;
    /* One line per first occurrence of a fallback, without newline; NULL: silent.
     * From zc_create() also why /dev/zc is not used, unless there is none and
     * all means are allowed. */
    void (*log)(void *arg, const char *line);
    void *log_arg;
} zc_params_t;

#define ZC_FLAG_ALLOW_PINNED 1u  /* rebind although VmPin is not zero: before_rebind
                                    deregisters whatever pins the pages */
#define ZC_FLAG_ALWAYS_REBIND 2u /* ignore the cost model (tests): rebind whatever is eligible */
#define ZC_FLAG_ALLOW_DEVICES 4u /* rebind although the process uses NVIDIA's driver, VFIO or
                                    KNEM: none of them is ever given memory that is received
                                    into, or before_rebind takes it away from them */

/**
 * zc_create - make a landing pool with its rebinder
 * @params: NULL for defaults
 * @out:    set only on success; free with zc_destroy()
 *
 * Return: 0; -EINVAL (size, unknown flags or means), -ENOMEM, -ENOENT or
 * -EBADMSG (cost_file missing or malformed).
 */
ZC_PUBLIC int zc_create(const zc_params_t *params, zc_t **out) ZC_NOEXCEPT;

/** Releases all landing memory, also of landings never released. NULL is allowed. */
ZC_PUBLIC void zc_destroy(zc_t *zc) ZC_NOEXCEPT;

/**
 * zc_landing_acquire - a landing buffer for @len bytes
 * @len:      bytes, > 0
 * @expected: the user address the message is expected to be delivered to; only
 *            its value is used, it is never dereferenced. NULL: not known.
 *
 * The buffer is populated (no page faults when it is written) and congruent
 * with @expected: modulo 2 MiB if @len >= 4 MiB or the expected range holds
 * huge pages, else modulo 4 KiB; on huge pages where the expected range is,
 * and on the NUMA node that it is on.
 *
 * Return: 0; -EINVAL; -EMSGSIZE (can never fit the budget or the address space
 * for landing memory); -ENOBUFS (these are in use: try again after a release or
 * delivery); -ENOMEM.
 */
ZC_PUBLIC int zc_landing_acquire(zc_t *zc, size_t len, const void *expected,
                                 zc_landing_t **out) ZC_NOEXCEPT;

/** First byte of the message; stays the same until released or delivered. */
ZC_PUBLIC void *zc_landing_data(const zc_landing_t *landing) ZC_NOEXCEPT;

/** Gives a landing buffer back without delivering it. Its content is lost. */
ZC_PUBLIC void zc_landing_release(zc_t *zc, zc_landing_t *landing) ZC_NOEXCEPT;

/** How one delivery went. bytes_rebound + bytes_copied == the len delivered. */
typedef struct {
    size_t bytes_rebound;
    size_t bytes_copied;
    zc_means_t means;   /* of most rebound bytes; ZC_MEANS_COPY if there are none */
    zc_reason_t reason; /* why pages were copied, the cause of most bytes of them;
                           ZC_REASON_NONE if all but the edges was rebound */
} zc_delivery_t;

/**
 * zc_deliver - move the first @len bytes of a landing buffer to the user
 * @landing: consumed: not to be used afterwards; may be longer than @len
 * @dst:     user address, any alignment, writable for @len bytes
 * @len:     0 <= @len <= acquired length
 * @how:     may be NULL
 *
 * Always delivers. Only [dst, dst + len) changes; at no instant is an address
 * of it, or of any other mapping, unmapped. Pages outside the whole pages of
 * that range are never exchanged, so other threads may use neighbouring bytes.
 * The exchanged pages of the user buffer stay in the pool, content and all,
 * until overwritten by a later message or trimmed.
 *
 * Return: 0; -EINVAL (len longer than acquired; nothing consumed).
 */
ZC_PUBLIC int zc_deliver(zc_t *zc, zc_landing_t *landing, void *dst, size_t len,
                         zc_delivery_t *how) ZC_NOEXCEPT;

/** Returns free landing memory that has been idle for idle_ns to the system;
 *  @all: all free landing memory at once. Returns the bytes given back. */
ZC_PUBLIC size_t zc_pool_trim(zc_t *zc, int all) ZC_NOEXCEPT;

/** Counters since zc_create(); all monotonic except the *_now fields. */
typedef struct {
    size_t size; /* in: sizeof(zc_stats_t) */
    uint64_t deliveries;
    uint64_t bytes_rebound;
    uint64_t bytes_copied;
    uint64_t rebound_by_means[ZC_MEANS_COUNT];      /* deliveries, by zc_delivery_t::means */
    uint64_t copied_by_reason[ZC_REASON_COUNT];     /* deliveries, by each reason they met */
    uint64_t bytes_copied_by_reason[ZC_REASON_COUNT];
    uint64_t acquired;
    uint64_t refused_budget;  /* acquires answered -ENOBUFS */
    uint64_t populated_now;   /* bytes of landing memory backed by pages */
    uint64_t populated_max;   /* its high-water mark; <= budget_bytes */
    uint64_t in_use_now;      /* bytes of acquired landing buffers */
    uint64_t in_use_max;
    uint64_t pages_populated; /* pages ever populated: small if recycling works */
    uint64_t splits_now;      /* mapping boundaries that rebinding has made */
    uint64_t forced_trims;    /* free landing buffers given up for want of budget */
    uint64_t bytes_rebound_by_means[ZC_MEANS_COUNT];
    int64_t kmod_error;       /* 0: /dev/zc is used. Else why not: -ECANCELED not among the
                                 means, -ENOENT no device, -EACCES no permission, -EPROTO
                                 not the interface we know, or what else open(2) gave */
    uint64_t addresses;       /* bytes of address space for landing memory: 16 times the budget,
                                 or what RLIMIT_AS and RLIMIT_MEMLOCK leave */
    uint64_t refused_addresses; /* acquires refused for want of these */
    uint64_t calibrations;      /* times the machine was measured in this process */
} zc_stats_t;

ZC_PUBLIC int zc_stats(const zc_t *zc, zc_stats_t *stats) ZC_NOEXCEPT;

/**
 * The cost model: nanoseconds to deliver @len bytes, of which @rebindable can
 * be exchanged, by each means. Calibrated inside this process by zc_calibrate().
 */
typedef struct {
    size_t size;
    double copy_ns_fixed, copy_ns_per_byte;         /* memcpy, cold caches, up to 4 MiB */
    double copy_ns_per_byte_long;                   /* beyond */
    double mremap_ns_fixed;                         /* one delivery, eligibility check included */
    double mremap_ns_per_page;                      /* where PTEs are moved one by one */
    double mremap_ns_per_2m;                        /* where page tables or huge pages move whole */
    double kmod_ns_fixed, kmod_ns_per_page;         /* one exchange; 0 without the module */
    double kmod_ns_per_2m;                          /* where huge pages are exchanged whole */
} zc_costs_t;

/** Measures the machine inside this process, about 2 ms (3 ms with the module);
 *  thread count and mm size matter, so call it after the process has its threads. */
ZC_PUBLIC int zc_calibrate(zc_t *zc, zc_costs_t *out /* may be NULL */) ZC_NOEXCEPT;

/** The costs that zc_deliver() decides by now: those measured or read from the
 *  cost file, corrected by what deliveries have taken since. */
ZC_PUBLIC int zc_costs(const zc_t *zc, zc_costs_t *out) ZC_NOEXCEPT;

/**
 * zc_cheapest - the pure decision function behind zc_deliver()
 * @len:        bytes of the message
 * @rebindable: bytes of whole pages in it
 * @tables:     0; 1 if both sides are 2 MiB-congruent; 2 if they are on huge pages, too
 * @means:      allowed and possible means, bits 1u << zc_means_t
 *
 * Where it is cheapest to move whole page tables by mremap and the pages around
 * them by the module, the answer is the means of more bytes.
 */
ZC_PUBLIC zc_means_t zc_cheapest(const zc_costs_t *costs, size_t len, size_t rebindable,
                                 int tables, uint32_t means) ZC_NOEXCEPT;

/**
 * zc_eligible - may [addr, addr + len) be rebound by mremap, as the kernel sees it now?
 * @len: > 0; the whole pages inside the range are examined
 *
 * The module examines by itself what it is about to exchange, page by page.
 *
 * Return: 0 eligible, else a positive zc_reason_t; -EINVAL (len 0 or wrap-around).
 */
ZC_PUBLIC int zc_eligible(zc_t *zc, const void *addr, size_t len) ZC_NOEXCEPT;

/**
 * zc_parse_size - "65536", "64k", "4M", "1g", "inf" (SIZE_MAX), "auto" (0)
 * Return: 0; -EINVAL; -ERANGE.
 */
ZC_PUBLIC int zc_parse_size(const char *text, size_t *bytes) ZC_NOEXCEPT;

/** Library version as "major.minor.patch". */
ZC_PUBLIC const char *zc_version(void) ZC_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* ZC_ZC_H_INCLUDED */
