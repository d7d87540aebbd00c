/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEST_MPIDIMPL_H
#define ZC_TEST_MPIDIMPL_H

/* What the files in rank.h's shared object use of MPICH, and of those parts of the netmod that a
 * test of them does without. rank.c defines it. The macros below name headers whose place this file
 * takes. */

#define ZC_IMPL_H_INCLUDED
#define ZC_ARRIVAL_H_INCLUDED
#define ZC_CHANNEL_H_INCLUDED
#define ZC_FOREIGN_H_INCLUDED
#define ZC_FOREIGN_VCIS_H_INCLUDED
#define ZC_ADDRESSES_H_INCLUDED
#define ZC_CONNECTION_H_INCLUDED
#define ZC_CONTEXT_H_INCLUDED
#define ZC_LANDING_THREAD_H_INCLUDED
#define ZC_WORKER_H_INCLUDED

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>

#include "rank.h"

/* ---- MPICH ---- */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define MPL_STATIC_INLINE_PREFIX __attribute__((unused)) static inline
#define MPL_MAX(a, b) ((a) > (b) ? (a) : (b))
#define MPL_malloc(size, class) zc_test_malloc(size)
#define MPL_calloc(nr, size, class) zc_test_calloc((size_t)(nr) * (size))
#define MPL_realloc(p, size, class) zc_test_realloc(p, size)
#define MPL_free(p) zc_test_free(p)
void *zc_test_malloc(size_t size);
void *zc_test_calloc(size_t size);
void *zc_test_realloc(void *old, size_t size);
void zc_test_free(void *p);

enum {
    MPI_SUCCESS = 0,
    MPI_ERR_OTHER = 15,
    MPIX_ERR_PROC_FAILED = 101,
    MPIDI_ZC_LOST = MPIX_ERR_PROC_FAILED,
    MPI_MAX_ERROR_STRING = 512,
    MPIDI_CH4_MAX_VCIS = ZC_TEST_VCIS,
};

#define MPIR_Assert(x)                                                                             \
    do {                                                                                           \
        if (!(x))                                                                                  \
            MPID_Abort(NULL, MPI_ERR_OTHER, 1, "assertion failed: " #x);                           \
    } while (0)
#define MPIR_ERR_CHECK(error)                                                                      \
    do {                                                                                           \
        if (error)                                                                                 \
            goto fn_fail;                                                                          \
    } while (0)
#define MPIR_ERR_CHKANDJUMP(condition, error, class, text)                                         \
    do {                                                                                           \
        if (condition) {                                                                           \
            (error) = (class);                                                                     \
            goto fn_fail;                                                                          \
        }                                                                                          \
    } while (0)
#define MPIR_ERR_CHKANDJUMP2(condition, error, class, generic, specific, a, b)                     \
    do {                                                                                           \
        if (condition) {                                                                           \
            (void)(a), (void)(b);                                                                  \
            (error) = (class);                                                                     \
            goto fn_fail;                                                                          \
        }                                                                                          \
    } while (0)
_Noreturn void MPID_Abort(void *comm, int error, int code, const char *text);

extern struct zc_test_process {
    int rank, size;
    int node_map[ZC_TEST_RANKS];
} MPIR_Process;
extern int MPIR_CVAR_CH4_ZC_DETACH_FD, MPIR_CVAR_CH4_ZC_DETACH_SECONDS;
extern struct zc_test_global {
    int n_vcis;
    bool is_initialized;
} MPIDI_global;

/* A lock is the number of its VCI. */
typedef struct {
    int lock;
} zc_test_vci_t;
#define MPIDI_VCI(number) ((zc_test_vci_t){.lock = (number)})
#define MPID_THREAD_CS_ENTER(kind, number) zc_test_lock(number)
#define MPID_THREAD_CS_EXIT(kind, number) zc_test_unlock(number)
void zc_test_lock(int vci);
void zc_test_unlock(int vci);

/* ---- the netmod ---- */

#include "zc_pre.h"

typedef struct MPIR_Win {
    struct {
        int local_size;
    } * comm_ptr;
    uint64_t win_id;
    int am_vci;
    const void *members; /* NULL: there are no other worlds */
    struct {
        struct {
            MPIDI_ZC_win_t zc;
        } netmod;
    } dev;
} MPIR_Win;
#define MPIDI_WIN(win, field) ((win)->field)
#define MPIDIG_WIN(win, field) ((win)->field)
void MPIDIG_win_failed(MPIR_Win *win, int rank);

typedef struct {
    MPIDI_ZC_addr_t zc;
} MPIDI_av_entry_t;
extern MPIDI_av_entry_t zc_test_av[ZC_TEST_RANKS];
#define MPIDIU_get_av(table, rank) zc_test_av[rank]
#define MPIDI_ZC_AV(av) ((av)->zc)

typedef struct {
    uint64_t endpoints, bulk_endpoints, bulk_refusals, parked;
    uint64_t detachments, detach_refusals, detached_us;
    uint64_t window_keys, window_refusals;
} MPIDI_ZC_stats_t;

typedef struct {
    int number;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_length;
    bool in_callbacks, to_do;
    MPIDI_ZC_lane_t *lanes;
    MPIDI_ZC_stats_t stats;
    struct {
        ucp_ep_h *eps;
        uint32_t nr, room;
    } bulk;
} MPIDI_ZC_vci_t;

extern struct zc_test_netmod {
    MPIDI_ZC_vci_t vcis[ZC_TEST_VCIS];
    struct MPIDI_ZC_path **paths;
    struct {
        bool detach, bulk_apart, bulk_shares, channels, bundle;
        size_t rndv_threshold, one_copy_threshold;
    } params;
    struct {
        bool shared_memory, one_copy;
    } transport;
    bool closing, rank_died, over, in_landing_thread;
    void *landing;
    const MPIDI_ZC_upid_t *world, *nets;
    size_t world_stride, net_stride;
    const char *lane_addresses;
    size_t lane_stride;
} MPIDI_ZC_global;
#define MPIDI_ZC_VCI(number) MPIDI_ZC_global.vcis[number]

#define MPIDI_ZC_error_class(status)                                                               \
    ((status) == UCS_ERR_CONNECTION_RESET ? MPIX_ERR_PROC_FAILED : MPI_ERR_OTHER)
#define MPIDI_ZC_CHECK_STATUS(status, what)                                                        \
    MPIR_ERR_CHKANDJUMP2((status) != UCS_OK && (status) != UCS_INPROGRESS, mpi_errno,              \
                         MPIDI_ZC_error_class(status), "", "", what, ucs_status_string(status))
void MPIDI_ZC_end_job_if(int mpi_errno);
void MPIDI_ZC_progress_all(void);
unsigned MPIDI_ZC_worker_progress(MPIDI_ZC_vci_t *vci);
void MPIDI_ZC_am_want_bulk(MPIDI_ZC_vci_t *vci, int rank);
int MPIDI_ZC_path_to(const MPIDI_ZC_addr_t *peer);
void MPIDI_ZC_path_announces(int rank, int vci);
void MPIDI_ZC_path_announced(int rank, int vci);
#define MPIDI_ZC_bundle_end(vci) ((void)(vci))

ucs_status_t MPIDI_ZC_channel_send_short(ucp_ep_h ep, unsigned id, const void *header,
                                         size_t header_length, const void *data, size_t length);
void MPIDI_ZC_channel_must_send(ucs_status_t status);
bool MPIDI_ZC_arrivals_fetch(MPIDI_ZC_vci_t *vci, uint64_t sender, bool *memory);

int MPIDI_ZC_foreign_open(struct MPIDI_ZC_foreign *foreign);
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_vcis_peer(struct MPIDI_ZC_foreign *foreign, int vci);

int MPIDI_ZC_context_open(void);
void MPIDI_ZC_context_close(void);
int MPIDI_ZC_worker_open(MPIDI_ZC_vci_t *vci);
void MPIDI_ZC_worker_close(MPIDI_ZC_vci_t *vci);
int MPIDI_ZC_addresses_renew(void);
int MPIDI_ZC_landing_thread_go_on(void);
void MPIDI_ZC_landing_thread_suspend(void);

/* ---- the system ---- */

#define clock_gettime(clock, now) zc_test_gettime(now)
#define malloc_trim(pad) ((void)(pad))
#define zc_pool_trim(pool, which) ((void)(pool), (void)(which))
#define fprintf(...) zc_test_say(__VA_ARGS__)
int zc_test_gettime(struct timespec *now);
__attribute__((format(printf, 2, 3))) void zc_test_say(FILE *to, const char *format, ...);

#endif
