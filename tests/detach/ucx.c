/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void die(const char *what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    fputs("detached_rank: ", stderr);
    vfprintf(stderr, what, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    abort();
}

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        die("%s: %s", what, ucs_status_string(status));
    }
}

static void open_context(ucx_t *ucx)
{
    ucp_config_t *config;
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
    };
    check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    /* As the netmod does: UCX 1.13 may end a process that closes an endpoint between two rounds of
     * its questions. */
    (void)ucp_config_modify(config, "KEEPALIVE_NUM_EPS", "inf");
    /* Endpoints over shared memory can be closed by force only with these, which UCX refuses where
     * it has no such transport. */
    if (getenv("DETACH_NEAR")) {
        check(ucp_config_modify(config, "MM_ERROR_HANDLING", "y"), "MM_ERROR_HANDLING");
        check(ucp_config_modify(config, "MEMORY_INVALIDATE", "y"), "MEMORY_INVALIDATE");
    }
    check(ucp_init(&params, config, &ucx->context), "ucp_init");
    ucp_config_release(config);
}

static void open_worker(ucx_t *ucx, const ucx_handler_t *handlers, int nr, void *arg)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    check(ucp_worker_create(ucx->context, &params, &ucx->worker), "ucp_worker_create");
    for (int i = 0; i < nr; i++) {
        const ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = handlers[i].id,
            .flags = UCP_AM_FLAG_WHOLE_MSG,
            .cb = handlers[i].callback,
            .arg = arg,
        };
        check(ucp_worker_set_am_recv_handler(ucx->worker, &handler),
              "ucp_worker_set_am_recv_handler");
    }
    check(ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_length),
          "ucp_worker_get_address");
}

static void *sleep_and_progress(void *arg)
{
    ucx_t *ucx = arg;
    struct pollfd waits[2] = {{.events = POLLIN}, {.fd = ucx->stop, .events = POLLIN}};
    check(ucp_worker_get_efd(ucx->worker, &waits[0].fd), "ucp_worker_get_efd");
    for (;;) {
        pthread_mutex_lock(&ucx->lock);
        ucs_status_t armed;
        do {
            while (ucp_worker_progress(ucx->worker) > 0) {
            }
            armed = ucp_worker_arm(ucx->worker);
        } while (armed == UCS_ERR_BUSY);
        pthread_mutex_unlock(&ucx->lock);
        check(armed, "ucp_worker_arm");
        if (poll(waits, 2, -1) > 0 && waits[1].revents) {
            return NULL;
        }
    }
}

void ucx_init(ucx_t *ucx)
{
    memset(ucx, 0, sizeof(*ucx));
    pthread_mutex_init(&ucx->lock, NULL);
}

void ucx_open(ucx_t *ucx, const ucx_handler_t *handlers, int nr, void *arg)
{
    open_context(ucx);
    open_worker(ucx, handlers, nr, arg);
    ucx->stop = eventfd(0, EFD_CLOEXEC);
    if (ucx->stop < 0 || pthread_create(&ucx->thread, NULL, sleep_and_progress, ucx) != 0) {
        die("no thread");
    }
    ucx->open = true;
}

void ucx_close(ucx_t *ucx)
{
    const uint64_t one = 1;
    if (write(ucx->stop, &one, sizeof(one)) != sizeof(one)) {
        die("the thread cannot be told to end");
    }
    pthread_join(ucx->thread, NULL);
    close(ucx->stop);
    ucp_worker_release_address(ucx->worker, ucx->address);
    ucp_worker_destroy(ucx->worker);
    ucp_cleanup(ucx->context);
    ucx->worker = NULL;
    ucx->context = NULL;
    ucx->open = false;
}

ucs_status_t ucx_wait(ucx_t *ucx, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(ucx->worker);
    }
    ucp_request_free(request);
    return status;
}
