/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCX_H
#define UCX_H

/* All that this process has of UCX but its endpoints: a context, a worker, and a thread that sleeps
 * on the worker's descriptor and makes progress, as the netmod's landing thread does. It can be
 * destroyed and made again any number of times.
 *
 * UCX's functions, and so all callbacks, run inside the lock. */

#include <pthread.h>
#include <stdbool.h>
#include <ucp/api/ucp.h>

typedef struct {
    unsigned id;
    ucp_am_recv_callback_t callback;
} ucx_handler_t;

typedef struct {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_length;
    pthread_mutex_t lock;
    pthread_t thread;
    int stop; /* eventfd: the thread is to end */
    bool open;
} ucx_t;

void ucx_init(ucx_t *ucx);

/* Makes all of it, with @nr handlers, which are given @arg. Ends the process if that fails. */
void ucx_open(ucx_t *ucx, const ucx_handler_t *handlers, int nr, void *arg);

/* Destroys all of it. There is no endpoint left, and the lock is not held. */
void ucx_close(ucx_t *ucx);

/* Makes progress until @request is complete (NULL: it is), and frees it. Returns its status. */
ucs_status_t ucx_wait(ucx_t *ucx, ucs_status_ptr_t request);

/* Ends the process, since @what is not as it must be. */
_Noreturn void die(const char *what, ...) __attribute__((format(printf, 1, 2)));

#endif
