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
#include "zc_detach.h"
#include "zc_landing_thread.h"
#include "zc_order.h"
#include "zc_processors.h"
#include "zc_spare.h"
#include "zc_watch.h"

#if defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif

#define TIMER_NS 50000L         /* from the application's exit to the look */
#define REST_NS 4000000L        /* between attempts to send what waits, before RESTING lasts */
#define WATCH_BUNDLES_NS 400000L        /* the longest sleep while short messages are bundled */

#define HURRY_MS 50             /* the longest sleep while this rank leaves or comes back */

#define TRIM_SECONDS 10         /* between searches for landing memory that is not used */

/* To measure what deliveries cost takes some 2 ms of a processor, as it takes to copy so much. A
 * process to which less has been delivered does not spend that time. After twice as much a
 * delivery would measure, for which the application would have to wait. */
#define MEASURE_AFTER_BYTES (16 << 20)

typedef enum state { WATCHING, LISTENING, RESTING, ENDED } state_t;

/* The state that only the thread uses. */
typedef struct thread {
    MPIDI_ZC_watch_t watch;
    unsigned long seen;         /* entries() at the last look */
    bool calibrate;             /* still to be done */
} thread_t;

/* Returns how often the application has entered MPI. */
static unsigned long entries(void)
{
    return __atomic_load_n(&MPIDU_device_gate.entries, __ATOMIC_RELAXED);
}

/* ---- the wake-up timer ---- */

/* The application sets a timer when it leaves MPI, and does not wake the thread at once: more often
 * than not it enters again before the timer expires, and a wake-up in vain costs more than a late
 * one. */

typedef enum wakeup { TIMEOUT, TIMER, STOP } wakeup_t;

/* All members are atomic. */
static struct wakeup_timer {
    int accepted;               /* the application may set the timer once, before the next look */
    int pending;                /* it has been set since the thread began to listen */
    int stop;                   /* MPI_Finalize has set it */
    unsigned long entries;      /* entries() when it was last set */
} timer;

static void set_timer(long ns)
{
    const struct itimerspec when = {.it_value.tv_nsec = ns };
    __atomic_store_n(&timer.entries, entries(), __ATOMIC_RELAXED);
    int err = timerfd_settime(MPIDI_ZC_global.wakeup_timer_fd, 0, &when, NULL);
    MPIR_Assert(err == 0);
}

/* Returns why the timer was set, and clears it. TIMEOUT: it has not expired. */
static wakeup_t clear_timer(void)
{
    uint64_t times;
    __atomic_store_n(&timer.pending, 0, __ATOMIC_SEQ_CST);
    if (read(MPIDI_ZC_global.wakeup_timer_fd, &times, sizeof(times)) < 0) {
        return TIMEOUT;
    }
    return __atomic_load_n(&timer.stop, __ATOMIC_SEQ_CST) ? STOP : TIMER;
}

/* Sleeps until the timer expires, or for @timeout (NULL: without limit). True: it has expired. */
static bool sleep_on_timer(const struct timespec *timeout)
{
    struct pollfd fd = {.fd = MPIDI_ZC_global.wakeup_timer_fd,.events = POLLIN };

    return ppoll(&fd, 1, timeout, NULL) > 0;
}

static bool is_listening(void)
{
    return __atomic_load_n(&MPIDI_ZC_global.listening, __ATOMIC_SEQ_CST);
}

/* The application may have received what a collective waits for, and have left without the step
 * that this allows; or it may have begun a collective whose first steps need no network. The timer
 * is set once: if each call set it again, it would never expire. */
static void set_timer_for_collectives(void)
{
    if (MPIR_Progress_hook_any_active() &&
        !__atomic_exchange_n(&timer.pending, 1, __ATOMIC_SEQ_CST)) {
        set_timer(TIMER_NS);
    }
}

void MPIDI_ZC_landing_thread_on_exit(void)
{
    if (is_listening()) {
        set_timer_for_collectives();
        return;
    }
    MPIDU_device_gate_set_on_exit(NULL);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (unlikely(is_listening())) {
        /* The thread has begun to listen just now, and has set this function for that. */
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_on_exit);
        set_timer_for_collectives();
    } else if (__atomic_exchange_n(&timer.accepted, 0, __ATOMIC_SEQ_CST)) {
        set_timer(TIMER_NS);
    }
}

void MPIDI_ZC_landing_thread_look(void)
{
    if (MPIDI_ZC_global.landing_thread_running && !MPIDI_ZC_global.in_landing_thread) {
        set_timer(TIMER_NS);
    }
}

/* @watching: the thread will look again within milliseconds, whatever happens. It sets false inside
 * the gate, before it sleeps for longer: no call of the application comes between. */
static void set_watching(bool watching)
{
    __atomic_store_n(&MPIDI_ZC_global.watching, watching, __ATOMIC_RELAXED);
}

/* ---- suspension ---- */

/* The application's thread destroys the workers, on which this one may sleep. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int wanted;                 /* atomic */
    bool reached;
} suspension = {.lock = PTHREAD_MUTEX_INITIALIZER,.changed = PTHREAD_COND_INITIALIZER };

static void sleep_while_suspended(void)
{
    if (likely(!__atomic_load_n(&suspension.wanted, __ATOMIC_ACQUIRE))) {
        return;
    }
    pthread_mutex_lock(&suspension.lock);
    suspension.reached = true;
    pthread_cond_broadcast(&suspension.changed);
    while (suspension.wanted) {
        pthread_cond_wait(&suspension.changed, &suspension.lock);
    }
    suspension.reached = false;
    pthread_mutex_unlock(&suspension.lock);
}

/* Does another thread than the landing thread, which exists, call this? */
static bool is_suspensible(void)
{
    return MPIDI_ZC_global.landing_thread_running && !MPIDI_ZC_global.in_landing_thread;
}

void MPIDI_ZC_landing_thread_suspend(void)
{
    if (!is_suspensible()) {
        return;
    }
    pthread_mutex_lock(&suspension.lock);
    __atomic_store_n(&suspension.wanted, 1, __ATOMIC_RELEASE);
    while (!suspension.reached) {
        /* It may have just cleared the timer, and be about to sleep. */
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec += (soon.tv_nsec + REST_NS) / 1000000000;
        soon.tv_nsec = (soon.tv_nsec + REST_NS) % 1000000000;
        set_timer(1);
        pthread_cond_timedwait(&suspension.changed, &suspension.lock, &soon);
    }
    pthread_mutex_unlock(&suspension.lock);
}

static int find_descriptors(void)
{
    int mpi_errno = MPI_SUCCESS;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        ucs_status_t status = ucp_worker_get_efd(MPIDI_ZC_VCI(v).worker,
                                                 &MPIDI_ZC_VCI(v).wakeup_fd);
        MPIDI_ZC_CHECK_STATUS(status, "ucp_worker_get_efd");
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_landing_thread_go_on(void)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIDI_ZC_global.landing_thread_running) {
        mpi_errno = find_descriptors();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (is_suspensible()) {
        pthread_mutex_lock(&suspension.lock);
        __atomic_store_n(&suspension.wanted, 0, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&suspension.changed);
        pthread_mutex_unlock(&suspension.lock);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- with how many processors ---- */

/* Atomic, as MPIDI_ZC_share_t has them. */
static struct {
    int kind, ranks;
} share;

static void set_share(MPIDI_ZC_share_t now)
{
    __atomic_store_n(&share.ranks, now.ranks, __ATOMIC_RELAXED);
    __atomic_store_n(&share.kind, (int) now.kind, __ATOMIC_SEQ_CST);
}

void MPIDI_ZC_landing_thread_share(MPIDI_ZC_share_t now)
{
    if (MPIDI_ZC_global.landing_thread_running) {
        const bool changed = (int) now.kind != share.kind;
        set_share(now);
        if (changed) {
            set_timer(1);
        }
    }
}

/* Do processes outnumber processors, and is the thread to rest then? */
static bool is_crowded(void)
{
    return __atomic_load_n(&share.kind, __ATOMIC_SEQ_CST) == MPIDI_ZC_SHARE_CROWDED &&
        MPIDI_ZC_global.params.landing_thread_rests;
}

/* Does the application give up its processor for what this thread does? */
static bool shares_processor(void)
{
    return __atomic_load_n(&share.kind, __ATOMIC_RELAXED) != MPIDI_ZC_SHARE_TO_SPARE ||
        MPIDI_ZC_spare_is_busy();
}

/* Finds out whether the processor that there is to spare is idle. */
static void look_for_processor(void)
{
    if (__atomic_load_n(&share.kind, __ATOMIC_RELAXED) == MPIDI_ZC_SHARE_TO_SPARE) {
        MPIDI_ZC_spare_look(__atomic_load_n(&share.ranks, __ATOMIC_RELAXED));
    }
}

/* Have short messages been bundled since the last call? Others may be, and may wait for too
 * long. */
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

/* @listening: the thread is about to sleep until there is an event of the network. It sets true
 * inside the gate. */
static void set_listening(bool listening)
{
    __atomic_store_n(&MPIDI_ZC_global.listening, listening, __ATOMIC_SEQ_CST);
    if (listening) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_on_exit);
    }
}

/* Sleeps until the next look. */
static wakeup_t sleep_until_look(const MPIDI_ZC_watch_t * watch)
{
    struct timespec timeout = {.tv_nsec = watch->sleep_ns };

    set_watching(true);
    if (bundles_flow()) {
        timeout.tv_nsec = MPL_MIN(timeout.tv_nsec, WATCH_BUNDLES_NS);
    }
    __atomic_store_n(&timer.accepted, watch->timer_accepted, __ATOMIC_SEQ_CST);
    __atomic_store_n(&MPIDI_ZC_global.timer_wanted, watch->timer_wanted, __ATOMIC_SEQ_CST);
    if (watch->timer_wanted) {
        MPIDU_device_gate_set_on_exit(MPIDI_ZC_landing_thread_on_exit);
    }
    const bool expired = sleep_on_timer(&timeout);
    __atomic_store_n(&timer.accepted, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&MPIDI_ZC_global.timer_wanted, false, __ATOMIC_RELAXED);
    return expired ? clear_timer() : TIMEOUT;
}

/* ---- processors ---- */

#define NONE UINT32_MAX

/* The thread that called MPI_Init, if it is the main thread: any other could end. */
static struct application {
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

/* Is a transfer under way that the application has asked for, so that its work hides it? (It has
 * not asked for what lands: that releases a sender, the sooner the better.) */
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

/* Sends the short messages that wait, inside the gate. */
static void end_bundles(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(v).lock);
        MPIDI_ZC_bundle_end(&MPIDI_ZC_VCI(v));
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(v).lock);
    }
}

/* Takes the steps of nonblocking collectives that are possible now, but for those that wait for the
 * application (patch 0117). Nonzero: further steps may be possible. */
static unsigned advance_collectives(void)
{
    int made_progress = 0;

    MPIDI_ZC_end_job_if(MPIR_Progress_hook_exec_all(&made_progress));
    end_bundles();
    return made_progress;
}

/* Makes one round of progress, and returns the number of events. */
static unsigned land_once(void)
{
    unsigned events = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_vci_t *vci = &MPIDI_ZC_VCI(v);
        /* No other thread is inside, so the lock is free. But CH4 may release it for a moment. */
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

/* Sends what waits, for an application that enters and leaves MPI without calling for progress. */
static void send_what_waits(void)
{
    if (messages_wait() && MPIDU_device_gate_try()) {
        end_bundles();
        MPIDU_device_gate_leave();
    }
}

/* Sends what waits, and lets no message wait from here on. False: the application is in MPI. */
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

static wakeup_t sleep_while_crowded(void)
{
    const struct timespec soon = {.tv_nsec = REST_NS };

    return sleep_on_timer(stop_watching() ? NULL : &soon) ? clear_timer() : TIMEOUT;
}

/* Arms the workers, so that poll() returns when something arrives. False: something has arrived. */
static bool arm(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        if (ucp_worker_arm(MPIDI_ZC_VCI(v).worker) != UCS_OK) {
            return false;
        }
    }
    return true;
}

/* Makes progress until the network is quiet or the application enters MPI. True: the network is
 * quiet, and the workers are armed. */
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

/* Gives landing memory back that has not been used for as long as libzc says (10 s). To get it
 * again takes far less time than that. */
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

/* Returns how many bytes have been delivered from landing memory. */
static uint64_t bytes_delivered(void)
{
    uint64_t bytes = 0;

    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        bytes += MPIDI_ZC_VCI(v).stats.bytes_rebound + MPIDI_ZC_VCI(v).stats.bytes_copied;
    }
    return bytes;
}

/* Measures once what deliveries cost in this process, with its threads, if there are enough of
 * them. If it fails, libzc's estimates stay. */
static void calibrate_if_worthwhile(thread_t * thread)
{
    if (thread->calibrate && bytes_delivered() >= MEASURE_AFTER_BYTES) {
        zc_stats_t landing = {.size = sizeof(landing) };
        thread->calibrate = false;
        if (zc_stats(MPIDI_ZC_global.landing, &landing) == 0 && landing.calibrations == 0) {
            (void) zc_calibrate(MPIDI_ZC_global.landing, NULL);
        }
    }
}

/* Sleeps until there is an event of the network or the timer expires. */
static wakeup_t sleep_on_network(void)
{
    struct pollfd fds[2 + 2 * MPIDI_CH4_MAX_VCIS] = {
        {.fd = MPIDI_ZC_global.wakeup_timer_fd, .events = POLLIN},
        {.fd = MPIDI_ZC_order_descriptor(), .events = POLLIN},
    };
    int nr = 2;
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        fds[nr++] = (struct pollfd) {.fd = MPIDI_ZC_VCI(v).wakeup_fd, .events = POLLIN};
        const int channels = MPIDI_ZC_channels_descriptor(&MPIDI_ZC_VCI(v));
        if (channels >= 0) {
            fds[nr++] = (struct pollfd) {.fd = channels,.events = POLLIN };
        }
    }
    /* A rank that leaves has a deadline. */
    const bool hurries = MPIDI_ZC_detach_hurries();
    while (poll(fds, nr, hurries ? HURRY_MS : TRIM_SECONDS * 1000) == 0 && !hurries) {
        trim_now_and_then();
    }
    set_listening(false);
    MPIDI_ZC_VCI(0).stats.thread_wakeups++;
    return fds[0].revents & POLLIN ? clear_timer() : TIMEOUT;
}

/* ---- the states: zc_landing_thread.h ---- */

/* Looks where the application is. Returns the next state. @why: the thread has woken for this. */
static state_t look(thread_t * thread, wakeup_t why)
{
    const unsigned long now = entries();

    MPIDI_ZC_VCI(0).stats.thread_looks++;
    trim_now_and_then();
    look_for_processor();
    if (is_crowded()) {
        return RESTING;
    }
    if (why == TIMER) {
        thread->seen = __atomic_load_n(&timer.entries, __ATOMIC_RELAXED);
    }
    const MPIDI_ZC_look_t found = MPIDU_device_gate_app_inside() ? MPIDI_ZC_LOOK_INSIDE :
        now != thread->seen ? MPIDI_ZC_LOOK_PASSED : MPIDI_ZC_LOOK_AWAY;
    MPIDI_ZC_watch_saw(&thread->watch, found, why == TIMER, shares_processor());
    if (found == MPIDI_ZC_LOOK_PASSED) {
        thread->seen = now;
        send_what_waits();
    }
    return found == MPIDI_ZC_LOOK_AWAY ? LISTENING : WATCHING;
}

static state_t watching(thread_t * thread)
{
    if (is_crowded()) {
        return RESTING;
    }
    const wakeup_t why = sleep_until_look(&thread->watch);
    return why == STOP ? ENDED : look(thread, why);
}

static state_t listening(thread_t * thread)
{
    look_for_processor();
    if (is_crowded()) {
        return RESTING;
    }
    if (!land_until_quiet()) {
        return WATCHING;
    }
    calibrate_if_worthwhile(thread);
    const wakeup_t why = sleep_on_network();
    if (why == STOP) {
        return ENDED;
    }
    /* An application that has entered MPI since it set the timer may be computing, or be between
     * two calls, which a look decides. */
    const bool entered = why == TIMER &&
        entries() != __atomic_load_n(&timer.entries, __ATOMIC_RELAXED);
    return entered ? WATCHING : LISTENING;
}

static state_t resting(thread_t * thread)
{
    if (!is_crowded()) {
        return WATCHING;
    }
    const wakeup_t why = sleep_while_crowded();
    return why == STOP ? ENDED : look(thread, why);
}

static void *landing_thread(void *arg)
{
    state_t state = WATCHING;
    thread_t thread = {
        .seen = entries(),
        .calibrate = MPIDI_ZC_global.params.calibrate,
    };

    /* The kernel may add 50 µs to every sleep otherwise. */
    prctl(PR_SET_TIMERSLACK, 1000UL);
    prctl(PR_SET_NAME, "zc-landing");

    MPIDI_ZC_watch_begin(&thread.watch);
    while (state != ENDED) {
        sleep_while_suspended();
        switch (state) {
            case WATCHING:
                state = watching(&thread);
                break;
            case LISTENING:
                state = listening(&thread);
                break;
            case RESTING:
                state = resting(&thread);
                break;
            case ENDED:
                break;
        }
    }
    return NULL;
}

int MPIDI_ZC_landing_thread_start(void)
{
    int mpi_errno = MPI_SUCCESS;
    sigset_t all, old;
    int err;

    MPIDI_ZC_global.wakeup_timer_fd = -1;
    timer.accepted = timer.pending = timer.stop = 0;
    set_share(MPIDI_ZC_processors_of_host());
    MPIDI_ZC_spare_init();
    application_init();
    mpi_errno = find_descriptors();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_global.wakeup_timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    MPIR_ERR_CHKANDJUMP1(MPIDI_ZC_global.wakeup_timer_fd < 0, mpi_errno, MPI_ERR_OTHER,
                         "**zc_thread", "**zc_thread %s", strerror(errno));

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
    if (MPIDI_ZC_global.wakeup_timer_fd >= 0) {
        close(MPIDI_ZC_global.wakeup_timer_fd);
    }
    goto fn_exit;
}

void MPIDI_ZC_landing_thread_stop(void)
{
    if (MPIDI_ZC_global.landing_thread_running) {
        __atomic_store_n(&timer.stop, 1, __ATOMIC_SEQ_CST);
        set_timer(1);
        pthread_join(MPIDI_ZC_global.landing_thread, NULL);
        MPIDI_ZC_global.landing_thread_running = false;
        set_watching(false);
        MPIDU_device_gate_disable();
        close(MPIDI_ZC_global.wakeup_timer_fd);
    }
}
