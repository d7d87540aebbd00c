/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include "zc_impl.h"
#include "zc_arrival.h"
#include "zc_channel.h"
#include "zc_landing_thread.h"
#include "zc_processors.h"
#include "zc_watch.h"

#if defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif

#define RING_NS 50000L          /* from the bell to the look */
#define REST_NS 4000000L
#define WATCH_BUNDLES_NS 400000L        /* at most, while short messages wait for each other */

#define TRIM_SECONDS 10         /* how often landing memory is looked through for what idles */

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
    int pending;                /* it has been told while it sleeps on the network */
    int stop;
    unsigned long entries;      /* when it was rung last */
} bell;

static void ring_in(long ns)
{
    const struct itimerspec when = {.it_value.tv_nsec = ns };
    __atomic_store_n(&bell.entries, entries(), __ATOMIC_RELAXED);
    int err = timerfd_settime(MPIDI_ZC_global.bell_fd, 0, &when, NULL);
    MPIR_Assert(err == 0);
}

/* What was rung for; silences it. */
static enum bell answer(void)
{
    uint64_t times;
    __atomic_store_n(&bell.pending, 0, __ATOMIC_SEQ_CST);
    if (read(MPIDI_ZC_global.bell_fd, &times, sizeof(times)) < 0) {
        return SILENT;
    }
    return __atomic_load_n(&bell.stop, __ATOMIC_SEQ_CST) ? STOP : RUNG;
}

static bool listening(void)
{
    return __atomic_load_n(&MPIDI_ZC_global.listening, __ATOMIC_SEQ_CST);
}

/* The application may have taken from the network what a collective waits for, and left without
 * the step that this allows; or begun one whose first steps need no network. Told once: a timer
 * that is set again with each call never ends. */
static void ring_for_collectives(void)
{
    if (MPIR_Progress_hook_any_active() &&
        !__atomic_exchange_n(&bell.pending, 1, __ATOMIC_SEQ_CST)) {
        ring_in(RING_NS);
    }
}

void MPIDI_ZC_landing_thread_ring(void)
{
    if (listening()) {
        ring_for_collectives();
        return;
    }
    MPIDU_device_gate_set_on_exit(NULL);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (unlikely(listening())) {
        /* Only since we asked: what it has set for that is to stay. */
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_ring);
        ring_for_collectives();
    } else if (__atomic_exchange_n(&bell.far, 0, __ATOMIC_SEQ_CST)) {
        ring_in(RING_NS);
    }
}

void MPIDI_ZC_landing_thread_look(void)
{
    if (MPIDI_ZC_global.landing_thread_running && !MPIDI_ZC_global.in_landing_thread) {
        ring_in(RING_NS);
    }
}

/* Will the thread look again within milliseconds, whatever happens? Turned off before it sleeps
 * for longer, inside the gate: no call of the application's comes between. */
static void set_watching(bool watching)
{
    __atomic_store_n(&MPIDI_ZC_global.watching, watching, __ATOMIC_RELAXED);
}

/* ---- with how many processors ---- */

static int share = MPIDI_ZC_SHARE_TO_SPARE;

void MPIDI_ZC_landing_thread_share(MPIDI_ZC_share_kind_t kind)
{
    if (MPIDI_ZC_global.landing_thread_running && (int) kind != share) {
        __atomic_store_n(&share, (int) kind, __ATOMIC_SEQ_CST);
        ring_in(1);
    }
}

static bool resting(void)
{
    return __atomic_load_n(&share, __ATOMIC_SEQ_CST) == MPIDI_ZC_SHARE_CROWDED &&
        MPIDI_ZC_global.params.landing_thread_rests;
}

/* Does the application give up its processor for what this thread does? */
static bool shares_processor(void)
{
    return __atomic_load_n(&share, __ATOMIC_RELAXED) != MPIDI_ZC_SHARE_TO_SPARE;
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

/* Does the thread sleep until the network tells of something? Turned on inside the gate. */
static void set_listening(bool listening)
{
    __atomic_store_n(&MPIDI_ZC_global.listening, listening, __ATOMIC_SEQ_CST);
    if (listening) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_ring);
    }
}

static enum bell watch(const MPIDI_ZC_watch_t * how)
{
    struct pollfd fd = {.fd = MPIDI_ZC_global.bell_fd,.events = POLLIN };
    struct timespec timeout = {.tv_nsec = how->sleep_ns };

    set_watching(true);
    if (bundles_flow()) {
        timeout.tv_nsec = MPL_MIN(timeout.tv_nsec, WATCH_BUNDLES_NS);
    }
    __atomic_store_n(&bell.far, how->may_ring, __ATOMIC_SEQ_CST);
    __atomic_store_n(&MPIDI_ZC_global.wants_ring, how->wants_ring, __ATOMIC_SEQ_CST);
    if (how->wants_ring) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_ring);
    }
    const bool rung = ppoll(&fd, 1, &timeout, NULL) > 0;
    __atomic_store_n(&bell.far, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&MPIDI_ZC_global.wants_ring, false, __ATOMIC_RELAXED);
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

    if (application.processor && !shares_processor() && application_transfers()) {
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

/* Inside the gate. */
static void end_bundles(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(v));
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
}

/* The steps of nonblocking collectives that what has come allows; but for what waits for the
 * application (patch 0117). Nonzero: once more, there may be further ones. */
static unsigned advance_collectives(void)
{
    int made_progress = 0;

    MPIDI_ZC_end_job_if(MPIR_Progress_hook_exec_all(&made_progress));
    end_bundles();
    return made_progress;
}

/* One round of progress; the number of events. */
static unsigned land_once(void)
{
    unsigned events = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        /* Free: nobody else is inside. But CH4 may want to let go of it for a moment. */
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        MPIDI_ZC_bundle_end(vci);
        events += MPIDI_ZC_worker_progress(vci) + MPIDI_ZC_channels_progress(vci, true);
        if (MPIDI_ZC_line_moves(vci)) {
            MPIDI_ZC_land_queued(vci);
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
    return events + advance_collectives();
}

static bool messages_wait(void)
{
    unsigned waiting = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        waiting += __atomic_load_n(&MPIDI_ZC_VCI(v).bundle.waiting, __ATOMIC_RELAXED);
    }
    return waiting > 0;
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
    const struct timespec soon = {.tv_nsec = REST_NS };

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
        set_listening(true);
    }
    MPIDI_ZC_global.in_landing_thread = false;
    MPIDU_device_gate_leave();
    return quiet;
}

/* Landing memory that nobody has used for as long as libzc says (10 s) goes back. What it takes
 * to get it again is nothing beside that. */
static void trim_now_and_then(void)
{
    static time_t last;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec - last >= TRIM_SECONDS) {
        last = now.tv_sec;
        (void) zc_pool_trim(MPIDI_ZC_global.landing, 0);
    }
}

enum wake { WORK, WATCH, END };

/* Sleeps until the network, the bell or the end. WATCH: the application that has rung has been in
 * MPI since, and may be gone or between two calls. */
static enum wake sleep_on_network(void)
{
    struct pollfd fds[1 + 2 * MPIDI_CH4_MAX_VCIS] = {
        {.fd = MPIDI_ZC_global.bell_fd, .events = POLLIN},
    };
    int nr = 1;
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        fds[nr++] = (struct pollfd) {.fd = MPIDI_ZC_VCI(v).wakeup_fd, .events = POLLIN};
        const int channels = MPIDI_ZC_channels_descriptor(&MPIDI_ZC_VCI(v));
        if (channels >= 0) {
            fds[nr++] = (struct pollfd) {.fd = channels,.events = POLLIN };
        }
    }
    while (poll(fds, nr, TRIM_SECONDS * 1000) == 0) {
        trim_now_and_then();
    }
    set_listening(false);
    MPIDI_ZC_VCI(0).stats.thread_wakeups++;
    const enum bell why = fds[0].revents & POLLIN ? answer() : SILENT;
    return why == STOP ? END :
        why == RUNG && entries() != __atomic_load_n(&bell.entries, __ATOMIC_RELAXED) ? WATCH : WORK;
}

static void *landing_thread(void *arg)
{
    unsigned long seen = entries();
    MPIDI_ZC_watch_t how;
    bool calibrate = MPIDI_ZC_global.params.calibrate;

    /* The kernel may add 50 µs to every sleep otherwise. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "zc-landing");

    enum bell why;
    MPIDI_ZC_watch_begin(&how);
    while ((why = resting() ? rest() : watch(&how)) != STOP) {
        const unsigned long now = entries();
        trim_now_and_then();
        if (resting()) {
            continue;
        }
        if (why == RUNG) {
            seen = __atomic_load_n(&bell.entries, __ATOMIC_RELAXED);
        }
        const MPIDI_ZC_look_t look = MPIDU_device_gate_app_inside() ? MPIDI_ZC_LOOK_INSIDE :
            now != seen ? MPIDI_ZC_LOOK_PASSED : MPIDI_ZC_LOOK_AWAY;
        MPIDI_ZC_watch_saw(&how, look, why == RUNG, shares_processor());
        if (look == MPIDI_ZC_LOOK_PASSED) {
            seen = now;
            send_what_waits();
        }
        if (look != MPIDI_ZC_LOOK_AWAY) {
            continue;
        }
        /* What deliveries cost in this process, with its threads: else the first would wait
         * for it. Not before the application computes, or MPI_Init and MPI_Finalize alone
         * would take longer by it. A failure leaves libzc's estimates. */
        if (calibrate) {
            calibrate = false;
            (void) zc_calibrate(MPIDI_ZC_global.landing, NULL);
        }
        enum wake wake = WORK;
        while (wake == WORK && !resting() && land_until_quiet()) {
            wake = sleep_on_network();
            if (wake == END) {
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
    bell.far = bell.pending = bell.stop = 0;
    share = MPIDI_ZC_processors_of_host().kind;
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
