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
#define WATCH_MAX_NS 4000000L

static unsigned long entries(void)
{
    return __atomic_load_n(&MPIDU_device_gate.entries, __ATOMIC_RELAXED);
}

/* One round of progress; the number of events. */
static unsigned land_once(void)
{
    unsigned events = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        /* Free: nobody else is inside. But CH4 may want to let go of it for a moment. */
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        events += ucp_worker_progress(vci->worker);
        if (MPIDI_ZC_line_moves(vci)) {
            /* An error here is found again, and reported, by the application. */
            (void) MPIDI_ZC_land_queued(vci);
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
    return events;
}

/* Afterwards poll() will tell of whatever comes; false: something has come. */
static bool arm(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        if (ucp_worker_arm(MPIDI_ZC_VCI(v).worker) != UCS_OK) {
            return false;
        }
    }
    return true;
}

/* Progresses until the network is quiet or the application wants in. True if it
 * is quiet; the workers are then armed. */
static bool land_until_quiet(void)
{
    bool quiet = false;

    if (!MPIDU_device_gate_try()) {
        return false;
    }
    MPIDI_ZC_global.in_landing_thread = true;
    while (!quiet && !MPIDU_device_gate_app_inside()) {
        quiet = land_once() == 0 && arm();
    }
    MPIDI_ZC_global.in_landing_thread = false;
    MPIDU_device_gate_leave();
    return quiet;
}

/* Sleeps until the network or the end; false: the end. */
static bool sleep_on_network(void)
{
    struct pollfd fds[1 + MPIDI_CH4_MAX_VCIS] = {
        {.fd = MPIDI_ZC_global.stop_fd, .events = POLLIN},
    };
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        fds[1 + v] = (struct pollfd) {.fd = MPIDI_ZC_VCI(v).wakeup_fd, .events = POLLIN};
    }
    poll(fds, 1 + MPIDI_global.n_vcis, -1);
    MPIDI_ZC_VCI(0).stats.thread_wakeups++;
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
    unsigned long seen = entries();
    long watch_ns = WATCH_MIN_NS;

    /* The kernel may add 50 µs to every sleep otherwise. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "zc-landing");

    /* Measures what deliveries cost in this process, with its threads, while the
     * application starts up; else its first delivery would wait for it. A
     * failure leaves libzc's estimates. */
    if (MPIDI_ZC_global.params.calibrate) {
        (void) zc_calibrate(MPIDI_ZC_global.landing, NULL);
    }

    while (!stop_requested(watch_ns)) {
        unsigned long now = entries();
        if (MPIDU_device_gate_app_inside()) {
            watch_ns = MPL_MIN(2 * watch_ns, WATCH_MAX_NS);
            continue;
        }
        watch_ns = WATCH_MIN_NS;
        if (now != seen) {
            /* Outside, but it has been inside since: gone, or between two calls? */
            seen = now;
            continue;
        }
        while (land_until_quiet()) {
            if (!sleep_on_network()) {
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
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        ucs_status_t status = ucp_worker_get_efd(MPIDI_ZC_VCI(v).worker,
                                                 &MPIDI_ZC_VCI(v).wakeup_fd);
        MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_efd");
    }
    MPIDI_ZC_global.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    MPIR_ERR_CHKANDJUMP1(MPIDI_ZC_global.stop_fd < 0, mpi_errno, MPI_ERR_OTHER, "**zc_thread",
                         "**zc_thread %s", strerror(errno));

    /* The application's signals are the application's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    /* We are inside MPI; MPI_Init leaves through the gate. */
    MPIDU_device_gate_enable(MPIR_ThreadInfo.thread_provided == MPI_THREAD_MULTIPLE);
    err = pthread_create(&MPIDI_ZC_global.landing_thread, NULL, landing_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    MPIR_ERR_CHKANDJUMP1(err, mpi_errno, MPI_ERR_OTHER, "**zc_thread", "**zc_thread %s",
                         strerror(err));
    MPIDI_ZC_global.landing_thread_running = true;

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDU_device_gate_disable();
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
        MPIDU_device_gate_disable();
    }
}
