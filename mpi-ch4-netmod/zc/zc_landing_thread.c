/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_landing_thread.h"

#if defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif

#define WATCH_MIN_NS 50000L
#define WATCH_MAX_NS 4000000L
#define WATCH_FAR_NS 400000L    /* the bell is rung only during looks so far apart */
#define WATCH_BUNDLES_NS 400000L        /* at most, while short messages wait for each other */

/* How often the application has entered MPI. */
static unsigned long entries(void)
{
    return __atomic_load_n(&MPIDU_device_gate.entries, __ATOMIC_RELAXED);
}

/* ---- the bell ---- */

/* A timer: whoever leaves MPI comes back before it ends more often than not, and waking
 * the thread for nothing costs more than being late. */

enum bell { SILENT, RUNG, STOP };

static struct {
    int far;                    /* the thread sleeps for long, and would like to be told */
    int stop;
    unsigned long entries;      /* when the application left */
} bell;

static void ring_in(long ns)
{
    const struct itimerspec when = {.it_value.tv_nsec = ns };
    int err = timerfd_settime(MPIDI_ZC_global.bell_fd, 0, &when, NULL);
    MPIR_Assert(err == 0);
}

/* What was rung for; silences it. */
static enum bell answer(void)
{
    uint64_t times;
    if (read(MPIDI_ZC_global.bell_fd, &times, sizeof(times)) < 0) {
        return SILENT;
    }
    return __atomic_load_n(&bell.stop, __ATOMIC_SEQ_CST) ? STOP : RUNG;
}

void MPIDI_ZC_landing_thread_ring(void)
{
    MPIDU_device_gate_set_on_exit(NULL);
    if (__atomic_exchange_n(&bell.far, 0, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&bell.entries, entries(), __ATOMIC_RELAXED);
        ring_in(WATCH_MIN_NS);
    }
}

/* Will the thread look again within milliseconds, whatever happens? Turned off before it sleeps
 * for longer, inside the gate: no call of the application's comes between. */
static void set_watching(bool watching)
{
    __atomic_store_n(&MPIDI_ZC_global.watching, watching, __ATOMIC_RELAXED);
}

/* ---- resting ---- */

static struct {
    int processors;             /* that this process may run on */
    int processes;              /* on this host: of our world, and connected ones of others */
    int resting;                /* no processor to spare */
} host;

static void host_init(void)
{
    cpu_set_t set;
    host.processors = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
    host.processes = MPIR_Process.local_size;
    host.resting = 0;
}

void MPIDI_ZC_landing_thread_add_neighbours(int neighbours)
{
    host.processes += neighbours;
    const int resting = host.processes >= host.processors;
    if (MPIDI_ZC_global.landing_thread_running && MPIDI_ZC_global.params.landing_thread_rests &&
        resting != host.resting) {
        __atomic_store_n(&host.resting, resting, __ATOMIC_SEQ_CST);
        ring_in(1);
    }
}

static bool resting(void)
{
    return __atomic_load_n(&host.resting, __ATOMIC_SEQ_CST);
}

/* Have short messages waited for each other since this was last asked? They may again, and
 * longer than they should. */
static bool bundles_flow(void)
{
    static uint64_t before;
    uint64_t bundles = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        bundles += __atomic_load_n(&MPIDI_ZC_VCI(v).stats.bundles, __ATOMIC_RELAXED);
    }
    const bool flow = bundles != before;
    before = bundles;
    return flow;
}

static enum bell watch(long sleep_ns)
{
    struct pollfd fd = {.fd = MPIDI_ZC_global.bell_fd,.events = POLLIN };
    const struct timespec timeout = {.tv_nsec = sleep_ns };

    set_watching(true);
    __atomic_store_n(&bell.far, sleep_ns >= WATCH_FAR_NS, __ATOMIC_SEQ_CST);
    const bool rung = ppoll(&fd, 1, &timeout, NULL) > 0;
    __atomic_store_n(&bell.far, 0, __ATOMIC_SEQ_CST);
    return rung ? answer() : SILENT;
}

/* ---- processors ---- */

#define NONE UINT32_MAX

/* The thread that called MPI_Init, if it is the main thread: any other could end. */
static struct {
    const volatile uint32_t *processor; /* where it runs, kept up to date by the kernel; or NULL */
    uint32_t avoided;           /* NONE: none */
    cpu_set_t allowed;
} application;

static void application_init(void)
{
    application.processor = NULL;
    application.avoided = NONE;
#ifdef HAVE_RSEQ
    const struct rseq *area = (const struct rseq *) ((char *) __builtin_thread_pointer() +
                                                     __rseq_offset);
    if (__rseq_size > 0 && gettid() == getpid() &&
        sched_getaffinity(0, sizeof(application.allowed), &application.allowed) == 0) {
        application.processor = &area->cpu_id;
    }
#endif
}

/* Is a transfer on its way that the application has asked for, and hides behind its work?
 * (What lands, it has not. That frees a sender, the sooner the better.) */
static bool application_transfers(void)
{
    int transfers = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        const MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        transfers += vci->nr_announced + vci->nr_fetching - vci->nr_landing;
    }
    return transfers > 0;
}

/* Moves the calling thread, inside the gate, to where it may do its work. */
static void choose_processor(void)
{
    uint32_t avoided = NONE;

    if (application.processor && application_transfers()) {
        avoided = *application.processor;
    }
    if (avoided == application.avoided || (avoided != NONE && avoided >= CPU_SETSIZE)) {
        return;
    }
    cpu_set_t set = application.allowed;
    if (avoided != NONE) {
        CPU_CLR(avoided, &set);
    }
    if (CPU_COUNT(&set) > 0) {
        (void) sched_setaffinity(0, sizeof(set), &set);
    }
    application.avoided = avoided;
}

/* ---- landing ---- */

/* One round of progress; the number of events. */
static unsigned land_once(void)
{
    unsigned events = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        /* Free: nobody else is inside. But CH4 may want to let go of it for a moment. */
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        MPIDI_ZC_bundle_end(vci);
        events += ucp_worker_progress(vci->worker);
        if (MPIDI_ZC_line_moves(vci)) {
            /* An error here is found again, and reported, by the application. */
            (void) MPIDI_ZC_land_queued(vci);
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
    return events;
}

static bool messages_wait(void)
{
    unsigned waiting = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        waiting += __atomic_load_n(&MPIDI_ZC_VCI(v).bundle.waiting, __ATOMIC_RELAXED);
    }
    return waiting > 0;
}

/* Inside the gate. */
static void end_bundles(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(v));
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
}

/* For an application that goes in and out, but never looks for progress. */
static void send_what_waits(void)
{
    if (messages_wait() && MPIDU_device_gate_try()) {
        end_bundles();
        MPIDU_device_gate_leave();
    }
}

/* True if nothing waits, nor will. */
static bool stop_watching(void)
{
    if (__atomic_load_n(&MPIDI_ZC_global.watching, __ATOMIC_RELAXED)) {
        if (!MPIDU_device_gate_try()) {
            return false;
        }
        end_bundles();
        set_watching(false);
        MPIDU_device_gate_leave();
    }
    return true;
}

static enum bell rest(void)
{
    struct pollfd fd = {.fd = MPIDI_ZC_global.bell_fd,.events = POLLIN };
    const struct timespec soon = {.tv_nsec = WATCH_MAX_NS };

    const bool rung = ppoll(&fd, 1, stop_watching() ? NULL : &soon, NULL) > 0;
    return rung ? answer() : SILENT;
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
        choose_processor();
    }
    if (quiet) {
        set_watching(false);
    }
    MPIDI_ZC_global.in_landing_thread = false;
    MPIDU_device_gate_leave();
    return quiet;
}

/* Sleeps until the network, the bell or the end; false: the end. */
static bool sleep_on_network(void)
{
    struct pollfd fds[1 + MPIDI_CH4_MAX_VCIS] = {
        {.fd = MPIDI_ZC_global.bell_fd, .events = POLLIN},
    };
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        fds[1 + v] = (struct pollfd) {.fd = MPIDI_ZC_VCI(v).wakeup_fd, .events = POLLIN};
    }
    poll(fds, 1 + MPIDI_global.n_vcis, -1);
    MPIDI_ZC_VCI(0).stats.thread_wakeups++;
    return !(fds[0].revents & POLLIN) || answer() != STOP;
}

static void *landing_thread(void *arg)
{
    unsigned long seen = entries();
    long watch_ns = WATCH_MIN_NS;
    bool calibrate = MPIDI_ZC_global.params.calibrate;

    /* The kernel may add 50 µs to every sleep otherwise. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "zc-landing");

    enum bell why;
    while ((why = resting() ? rest() : watch(watch_ns)) != STOP) {
        unsigned long now = entries();
        if (resting()) {
            continue;
        }
        if (why == RUNG) {
            seen = __atomic_load_n(&bell.entries, __ATOMIC_RELAXED);
        }
        if (MPIDU_device_gate_app_inside()) {
            watch_ns = why == RUNG ? WATCH_MAX_NS : MPL_MIN(2 * watch_ns, WATCH_MAX_NS);
            if (bundles_flow()) {
                watch_ns = MPL_MIN(watch_ns, WATCH_BUNDLES_NS);
            }
            continue;
        }
        watch_ns = WATCH_MIN_NS;
        if (now != seen) {
            /* Outside, but it has been inside since: gone, or between two calls? */
            seen = now;
            send_what_waits();
            continue;
        }
        /* What deliveries cost in this process, with its threads: else the first would wait
         * for it. Not before the application computes, or MPI_Init and MPI_Finalize alone
         * would take longer by it. A failure leaves libzc's estimates. */
        if (calibrate) {
            calibrate = false;
            (void) zc_calibrate(MPIDI_ZC_global.landing, NULL);
        }
        while (!resting() && land_until_quiet()) {
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

    MPIDI_ZC_global.bell_fd = -1;
    bell.far = bell.stop = 0;
    host_init();
    application_init();
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        ucs_status_t status = ucp_worker_get_efd(MPIDI_ZC_VCI(v).worker,
                                                 &MPIDI_ZC_VCI(v).wakeup_fd);
        MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_efd");
    }
    MPIDI_ZC_global.bell_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    MPIR_ERR_CHKANDJUMP1(MPIDI_ZC_global.bell_fd < 0, mpi_errno, MPI_ERR_OTHER, "**zc_thread",
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
    if (MPIDI_ZC_global.bell_fd >= 0) {
        close(MPIDI_ZC_global.bell_fd);
    }
    goto fn_exit;
}

void MPIDI_ZC_landing_thread_stop(void)
{
    if (MPIDI_ZC_global.landing_thread_running) {
        __atomic_store_n(&bell.stop, 1, __ATOMIC_SEQ_CST);
        ring_in(1);
        pthread_join(MPIDI_ZC_global.landing_thread, NULL);
        MPIDI_ZC_global.landing_thread_running = false;
        set_watching(false);
        MPIDU_device_gate_disable();
        close(MPIDI_ZC_global.bell_fd);
    }
}
