/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEST_RANK_H
#define ZC_TEST_RANK_H

/* A rank of the simulation in path_test.cpp: the files of the netmod that CMakeLists.txt names, as
 * they are, and rank.c, which takes the place of the rest of the netmod, and of the program. They
 * keep their state in static variables, so each rank is a copy of a shared object.
 *
 * All functions that may end the job, or wait, are called on a fiber of the rank: one for each of
 * its threads, of which there are as many as VCIs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZC_TEST_RANKS 8
#define ZC_TEST_VCIS 3
#define ZC_TEST_ADDRESS 16 /* bytes of the address of a worker */

/* An active message of the program, in its header. */
typedef struct {
    uint32_t sender, receiver, sequence, value;
    bool announced, shares; /* as in MPIDI_ZC_am_header_t */
    bool credit;            /* it has no number, and is a packet of credit */
} zc_test_message_t;

enum { ZC_TEST_WINDOWS = 2 };

/* Which connections announced messages take: those of all else, their own, or these after the first
 * few (zc_peer.h). */
typedef enum {
    ZC_TEST_BULK_WITH_ALL,
    ZC_TEST_BULK_APART,
    ZC_TEST_BULK_SHARES_FIRST,
} zc_test_bulk_t;

/* What the simulation does for a rank. The first argument is its `self`. */
typedef struct {
    void *(*allocate)(void *self, size_t size); /* NULL: it fails */
    void (*release)(void *self, void *p);
    bool (*fails)(void *self, const char *what); /* is this call to fail? */
    uint64_t (*now_ns)(void *self);
    void (*abort)(void *self, const char *text); /* does not return */
    /* The locks of VCIs. Other threads of the rank may run whenever one is taken or given back. */
    void (*lock)(void *self, int vci);
    void (*unlock)(void *self, int vci);
    /* the network */
    ucp_worker_h (*worker_open)(void *self, int vci, char address[ZC_TEST_ADDRESS]);
    void (*worker_close)(void *self, ucp_worker_h worker);
    ucs_status_t (*ep_create)(void *self, ucp_worker_h worker, const ucp_ep_params_t *params,
                              ucp_ep_h *ep);
    ucs_status_ptr_t (*ep_close)(void *self, ucp_ep_h ep, const ucp_request_param_t *param);
    ucs_status_ptr_t (*ep_flush)(void *self, ucp_ep_h ep, const ucp_request_param_t *param);
    ucs_status_ptr_t (*send)(void *self, ucp_ep_h ep, unsigned id, const void *header,
                             size_t header_length, const void *data, size_t length,
                             const ucp_request_param_t *param);
    ucs_status_ptr_t (*worker_flush)(void *self, ucp_worker_h worker);
    ucs_status_t (*request_status)(void *self, void *request);
    void (*request_free)(void *self, void *request);
    void (*fetch)(void *self, void *descriptor);
    /* UCX puts something into the memory of a window, with a key: put() below. */
    void (*put)(void *self, ucp_ep_h ep, int window, uint32_t key);
    bool (*progress)(void *self, int vci); /* delivers messages; false: not this time */
    /* the holder */
    int (*order)(void *self, bool wait, uint32_t *incarnation);
    void (*answer)(void *self, const char *answer, const char *more);
    void (*closed)(void *self);
    /* the program */
    void (*received)(void *self, int sender, int vci, uint32_t value);
    void (*landed)(void *self);
    void (*program)(void *self); /* may call send() below */
    void (*pause)(void *self);   /* lets other ranks run */
} zc_test_world_t;

typedef struct {
    /* Begins anew. @addresses: of the VCIs of all ranks, one after the other on so many @nodes.
     * @incarnations: of all ranks; one that is not 0 is of a rank that has left before the others
     * knew it, as those of other worlds may have. @seconds: until LEAVE is refused. */
    void (*init)(const zc_test_world_t *world, void *self, int rank, int size, int vcis,
                 const char *addresses, const uint32_t *incarnations, const ucp_worker_h *workers,
                 int nodes, zc_test_bulk_t bulk, int seconds);
    /* Progress on all VCIs. @lands: by the landing thread, while no other thread is in MPI. */
    void (*step)(bool lands);
    void (*finalize)(void); /* the program is in MPI_Finalize from here on */
    void (*end)(void);      /* frees all */
    /* False: there was an error, and the message is not sent. Inside the lock of @vci. */
    bool (*send)(int rank, int vci, uint32_t value, bool announced);
    /* Credit is returned to @rank, if there is a connection. Inside the lock of @vci. */
    void (*credit)(int rank, int vci);
    /* The program puts something into memory of @rank. False: UCX does not do it. */
    bool (*put)(int rank, int window);
    /* Is the key to this rank's memory that a put of UCX has come with valid? */
    bool (*is_put)(int window, uint32_t key);
    /* The program receives an announced message, if there is one. */
    void (*fetch_any)(void);
    /* An active message has arrived. @descriptor: it is announced. */
    void (*deliver)(int vci, unsigned id, const void *header, size_t header_length,
                    const void *data, size_t length, void *descriptor);
    void (*fetched)(void *descriptor);
    /* Is there, from here on, something that keeps this rank from leaving? */
    void (*hinder)(bool hinders);
    int (*outstanding)(int rank); /* announced messages of @rank, or to it, that are not here */
    int (*awaited)(void);         /* sends that are not complete */
    int (*state)(int rank);       /* of the path */
    bool (*all_open)(void);
    uint32_t (*incarnation)(int rank);
    void (*describe)(int rank, char *text, size_t room);
} zc_test_rank_t;

__attribute__((visibility("default"))) const zc_test_rank_t *zc_test_rank(void);

#ifdef __cplusplus
}
#endif

#endif
