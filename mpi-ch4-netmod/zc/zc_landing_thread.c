/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_landing_thread.h"

#define WATCH_MIN_NS 50000L
#define WATCH_MAX_NS 1000000L

/* Calls of ucp_worker_progress() between two looks at the application: a long
 * message must not keep it from the lock. */
#define BURST 8

static unsigned long app_activity(void)
{
    return atomic_load_explicit(&MPIDI_ZC_global.app_activity, memory_order_relaxed);
}

/* Which of the two is a lock depends on how MPICH was configured. */
static void enter_library(void)
{
    MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
}

static void leave_library(void)
{
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
}

/* Progresses until the network is quiet or the application is back. Returns
 * with the worker armed if it was quiet, so that poll() will tell of more. */
static bool land_until_quiet(unsigned long seen)
{
    bool armed = false;

    while (!armed && app_activity() == seen) {
        enter_library();
        MPIDI_ZC_global.in_landing_thread = true;
        unsigned events = 0;
        for (int i = 0; i < BURST; i++) {
            unsigned n = ucp_worker_progress(MPIDI_ZC_global.worker);
            events += n;
            if (n == 0) {
                break;
            }
        }
        if (unlikely(MPIDI_ZC_global.retry_queued)) {
            (void) MPIDI_ZC_land_queued();
        }
        if (events == 0) {
            ucs_status_t status = ucp_worker_arm(MPIDI_ZC_global.worker);
            armed = status == UCS_OK;
        }
        MPIDI_ZC_global.in_landing_thread = false;
        leave_library();
    }
    return armed;
}

/* Sleeps until the network or the end; false: the end. */
static bool sleep_on_network(int timeout_ms)
{
    struct pollfd fds[2] = {
        {.fd = MPIDI_ZC_global.stop_fd, .events = POLLIN},
        {.fd = MPIDI_ZC_global.wakeup_fd, .events = POLLIN},
    };
    poll(fds, 2, timeout_ms);
    MPIDI_ZC_global.stats.thread_wakeups++;
    return !(fds[0].revents & POLLIN);
}

static bool stop_requested(long sleep_ns)
{
    struct pollfd fd = {.fd = MPIDI_ZC_global.stop_fd,.events = POLLIN };
    struct timespec timeout = {.tv_nsec = sleep_ns };
    return ppoll(&fd, 1, &timeout, NULL) > 0;
}

static void *landing_thread(void *arg)
{
    unsigned long seen = app_activity();
    long watch_ns = WATCH_MIN_NS;

    /* The kernel may add 50 µs to every sleep otherwise. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "zc-landing");

    while (!stop_requested(watch_ns)) {
        unsigned long now = app_activity();
        if (!MPIR_IS_THREADED) {
            /* still in MPI_Init: nobody takes locks yet */
            continue;
        }
        if (now != seen) {
            seen = now;
            watch_ns = MPL_MIN(2 * watch_ns, WATCH_MAX_NS);
            continue;
        }
        watch_ns = WATCH_MIN_NS;
        while (land_until_quiet(seen)) {
            if (!sleep_on_network(-1)) {
                return NULL;
            }
        }
    }
    return NULL;
}

int MPIDI_ZC_landing_thread_start(void)
{
    int mpi_errno = MPI_SUCCESS;
    sigset_t all, old;
    int err;

    MPIDI_ZC_global.stop_fd = -1;
    ucs_status_t status = ucp_worker_get_efd(MPIDI_ZC_global.worker, &MPIDI_ZC_global.wakeup_fd);
    MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_efd");
    MPIDI_ZC_global.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    MPIR_ERR_CHKANDJUMP1(MPIDI_ZC_global.stop_fd < 0, mpi_errno, MPI_ERR_OTHER, "**zc_thread",
                         "**zc_thread %s", strerror(errno));

    /* The application's signals are the application's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&MPIDI_ZC_global.landing_thread, NULL, landing_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    MPIR_ERR_CHKANDJUMP1(err, mpi_errno, MPI_ERR_OTHER, "**zc_thread", "**zc_thread %s",
                         strerror(err));
    MPIDI_ZC_global.landing_thread_running = true;

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (MPIDI_ZC_global.stop_fd >= 0) {
        close(MPIDI_ZC_global.stop_fd);
    }
    goto fn_exit;
}

void MPIDI_ZC_landing_thread_stop(void)
{
    if (MPIDI_ZC_global.landing_thread_running) {
        uint64_t one = 1;
        ssize_t n = write(MPIDI_ZC_global.stop_fd, &one, sizeof(one));
        MPIR_Assert(n == sizeof(one));
        pthread_join(MPIDI_ZC_global.landing_thread, NULL);
        close(MPIDI_ZC_global.stop_fd);
        MPIDI_ZC_global.landing_thread_running = false;
    }
}
