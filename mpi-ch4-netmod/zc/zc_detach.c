/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "zc_detach.h"
#include "zc_abridged.h"
#include "zc_addresses.h"
#include "zc_anchor.h"
#include "zc_connecting.h"
#include "zc_context.h"
#include "zc_foreign_path.h"
#include "zc_landing_thread.h"
#include "zc_liveness.h"
#include "zc_order.h"
#include "zc_path.h"
#include "zc_path_message.h"
#include "zc_traffic.h"
#include "zc_vci_locks.h"
#include "zc_windows.h"
#include "zc_worker.h"

typedef enum { ATTACHED, LEAVING, BINDING } state_t;

static struct {
    state_t state;              /* read by any thread */
    uint32_t round, incarnation;
    uint64_t deadline;          /* ns; LEAVING */
    bool finalizes;
    bool put_off;               /* MPIDI_ZC_detach_put_off() */
    struct timespec looked;     /* when the last order was looked for */
} rank;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

int MPIDI_ZC_detach_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    memset(&rank, 0, sizeof(rank));
    if (MPIDI_ZC_global.params.detach) {
        mpi_errno = MPIDI_ZC_paths_init();
        MPIR_ERR_CHECK(mpi_errno);
        const int fd = MPIDI_ZC_order_is_for_this() ? MPIR_CVAR_CH4_ZC_DETACH_FD : -1;
        MPIR_ERR_CHKANDJUMP2(!MPIDI_ZC_order_open(fd), mpi_errno,
                             MPI_ERR_OTHER, "**zc_param", "**zc_param %s %s",
                             "MPIR_CVAR_CH4_ZC_DETACH_FD", "no socket");
        MPIDI_ZC_VCI(0).to_do = true;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_detach_free(void)
{
    (void) MPIDI_ZC_order_open(-1);
    MPIDI_ZC_traffic_close();
    MPIDI_ZC_paths_free();
}

static void set_state(state_t state)
{
    __atomic_store_n(&rank.state, state, __ATOMIC_RELAXED);
}

bool MPIDI_ZC_detach_hurries(void)
{
    return __atomic_load_n(&rank.state, __ATOMIC_RELAXED) != ATTACHED;
}

/* ---- refusals ---- */

/* Returns what is in the way, or NULL. *@passes: that ends without the program's doing. */
static const char *obstacle(bool *passes)
{
    *passes = false;
    if (rank.finalizes) {
        return "it is in MPI_Finalize";
    } else if (MPIDI_ZC_global.transport.shared_memory) {
        return "UCX uses shared memory";
    } else if (MPIDI_ZC_connecting()) {
        *passes = true;         /* a spawn has a port open as well */
        return "it connects to another world";
    } else if (MPIDI_ZC_connecting_ports() > 0) {
        return "it has a port open, whose name has its address";
    }
    return MPIDI_ZC_foreign_path_obstacle(passes);
}

/* @who: the rank that is the reason, or -1. @passes: other ranks that move are in the way. */
static void refuse(const char *why, int who, bool passes)
{
    static bool reported;
    char text[128], number[32] = "";

    if (who >= MPIR_Process.size) {
        snprintf(number, sizeof(number), " (one of another world)");
    } else if (who >= 0) {
        snprintf(number, sizeof(number), " (rank %d)", who);
    }
    snprintf(text, sizeof(text), "%s%s", why, number);
    MPIDI_ZC_VCI(0).stats.detach_refusals++;
    MPIDI_ZC_order_answer(passes ? "REFUSED AGAIN" : "REFUSED", text);
    if (!reported) {
        reported = true;
        fprintf(stderr, "zc: rank %d does not leave: %s; the statistics count further cases\n",
                MPIR_Process.rank, text);
    }
}

static void stay(const char *why, int who, bool passes)
{
    MPIDI_ZC_paths_resume();
    MPIDI_ZC_foreign_path_settle();
    MPIDI_ZC_anchor_forget_company();
    set_state(ATTACHED);
    refuse(why, who, passes);
}

/* ---- DETACHED ---- */

static void end_job(const char *why)
{
    char text[160];

    snprintf(text, sizeof(text), "zc: rank %d is detached and cannot come back: %s",
             MPIR_Process.rank, why);
    MPID_Abort(NULL, MPI_ERR_OTHER, 1, text);
}

static void destroy(void)
{
    MPIDI_ZC_landing_thread_suspend();
    MPIDI_ZC_upid_server_stop();
    MPIDI_ZC_windows_leave();
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        MPIDI_ZC_worker_close(&MPIDI_ZC_VCI(v));
    }
    MPIDI_ZC_context_close();
    MPIDI_ZC_paths_forget_endpoints();
    MPIDI_ZC_anchor_forget_company();
    MPIDI_ZC_traffic_close();
    (void) zc_pool_trim(MPIDI_ZC_global.landing, 1);
    malloc_trim(0);
}

/* Returns the incarnation in the token. */
static uint32_t await_token(void)
{
    MPIDI_ZC_given_t given;

    for (;;) {
        switch (MPIDI_ZC_order_take(true, &given)) {
            case MPIDI_ZC_ORDER_BIND:
                if (given.number > rank.incarnation) {
                    return (uint32_t) given.number;
                }
                MPIDI_ZC_order_answer("REFUSED", "the incarnation is not higher than the last");
                break;
            case MPIDI_ZC_ORDER_CLOSED:
                end_job("its holder has gone");
                break;
            default:
                MPIDI_ZC_order_answer("REFUSED", "it is detached");
                break;
        }
    }
}

static int make(void)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = MPIDI_ZC_context_open();
    MPIR_ERR_CHECK(mpi_errno);
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        mpi_errno = MPIDI_ZC_worker_open(&MPIDI_ZC_VCI(v));
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = MPIDI_ZC_addresses_renew();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_landing_thread_go_on();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_ZC_paths_bind(rank.incarnation);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Destroys all of UCX, answers the holder, waits for the token, and makes UCX anew. */
static void be_detached(const char *answer, const char *more)
{
    destroy();
    MPIDI_ZC_order_answer(answer, more);
    rank.incarnation = await_token();
    MPIDI_ZC_end_job_if(make());
}

static void detach(void)
{
    MPIDI_ZC_stats_t *stats = &MPIDI_ZC_VCI(0).stats;
    const uint64_t before = now_ns();

    stats->detachments++;
    be_detached("DETACHED", NULL);
    stats->detached_us += (now_ns() - before) / 1000;
    set_state(BINDING);
}

/* ---- steps ---- */

static void leave(void)
{
    bool passes;
    const char *why = obstacle(&passes);

    if (!why && MPIDI_ZC_anchor_is_needed()) {
        why = "another rank that is away comes back by it";
        passes = true;
    }
    if (why) {
        MPIDI_ZC_anchor_forget_company();
        refuse(why, -1, passes);
    } else if (!MPIDI_ZC_paths_pause(++rank.round)) {
        MPIDI_ZC_anchor_forget_company();
        refuse("it has no connection to all ranks", -1, false);
    } else {
        rank.deadline = now_ns() + MPIR_CVAR_CH4_ZC_DETACH_SECONDS * (uint64_t) 1000000000;
        set_state(LEAVING);
    }
}

/* The rank itself has to open it: a userfaultfd is of the process that has. No fault is ever left to
 * the holder, so one for faults of user mode alone will do, which needs no privilege. */
static void track(void)
{
    const int fd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

    if (fd < 0) {
        MPIDI_ZC_order_answer("UNTRACKED", strerror(errno));
    } else {
        MPIDI_ZC_order_pass("TRACKED", fd);
        close(fd);
    }
}

/* @clocks: of the holder (zc_order.h). */
static void tell(int64_t clocks)
{
    const int fd = MPIDI_ZC_order_passed();
    const char *why = MPIDI_ZC_traffic_open(fd, clocks);

    if (fd >= 0) {
        close(fd);
    }
    MPIDI_ZC_order_answer(why ? "UNTOLD" : "TELLING", why);
}

/* Is it some milliseconds later than the last look? */
static bool is_later(struct timespec *now)
{
    clock_gettime(CLOCK_MONOTONIC_COARSE, now);
    return now->tv_sec != rank.looked.tv_sec || now->tv_nsec != rank.looked.tv_nsec;
}

/* Looks for orders every few milliseconds: that is a call into the kernel. */
static void look_for_order(void)
{
    struct timespec now;
    MPIDI_ZC_order_t order;
    MPIDI_ZC_given_t given;

    if (MPIDI_ZC_order_descriptor() < 0 || !MPIDI_global.is_initialized || !is_later(&now)) {
        return;
    }
    rank.looked = now;
    do {
        order = MPIDI_ZC_order_take(false, &given);
        if (order == MPIDI_ZC_ORDER_WITH) {
            MPIDI_ZC_anchor_is_company((int) given.number);
        } else if (order == MPIDI_ZC_ORDER_LIVES) {
            MPIDI_ZC_liveness_set(given.port, given.token, given.seconds);
        }
    } while (order == MPIDI_ZC_ORDER_WITH || order == MPIDI_ZC_ORDER_LIVES);
    switch (order) {
        case MPIDI_ZC_ORDER_LEAVE:
            leave();
            break;
        case MPIDI_ZC_ORDER_TRACK:
            track();
            break;
        case MPIDI_ZC_ORDER_TELL:
            tell(given.number);
            break;
        case MPIDI_ZC_ORDER_BIND:
            MPIDI_ZC_order_answer("REFUSED", "it is not detached");
            break;
        case MPIDI_ZC_ORDER_UNKNOWN:
            MPIDI_ZC_order_answer("REFUSED", "unknown order");
            break;
        default:
            break;
    }
}

static void leaving(void)
{
    int who;
    bool passes;
    const char *why = MPIDI_ZC_paths_obstacle(&who, &passes);

    if (!why) {
        why = obstacle(&passes);        /* the program has gone on */
    }
    if (why) {
        stay(why, who, passes);
    } else if (MPIDI_ZC_paths_quiet()) {
        detach();
    } else if (now_ns() > rank.deadline) {
        stay("not all ranks have answered in time", MPIDI_ZC_paths_silent(), false);
    }
}

static void binding(void)
{
    char text[16];

    switch (MPIDI_ZC_paths_binding()) {
        case MPIDI_ZC_BINDING_AWAITED:
            break;
        case MPIDI_ZC_BINDING_DONE:
            set_state(ATTACHED);
            snprintf(text, sizeof(text), "%u", rank.incarnation);
            MPIDI_ZC_order_answer("BOUND", text);
            break;
        case MPIDI_ZC_BINDING_STALE:
            be_detached("REFUSED", "another copy of this rank has come back");
            break;
        case MPIDI_ZC_BINDING_SPLIT:
            end_job("some ranks have accepted another copy of it");
            break;
    }
}

/* Is it worth while to take the locks of all VCIs? What the steps wait for may be what other threads do
 * with those locks. So without a message of the negotiation a thread of the program takes them every few
 * milliseconds. The landing thread, which is alone, does so at once: it may be about to sleep. */
static bool is_due(void)
{
    struct timespec now;

    if (MPIDI_global.n_vcis == 1) {
        return true;
    }
    if (!MPIDI_global.is_initialized) {
        return false;           /* the addresses of the other VCIs may not be known yet */
    }
    if (MPIDI_ZC_path_messages_wait()) {
        return true;
    }
    if (MPIDI_ZC_global.in_landing_thread &&
        (MPIDI_ZC_paths_may_step() || MPIDI_ZC_paths_have_early() ||
         (rank.state == LEAVING && MPIDI_ZC_paths_silent() < 0))) {
        return true;
    }
    if (!is_later(&now)) {
        return false;
    }
    if (rank.state == ATTACHED && MPIDI_ZC_order_waits()) {
        return true;            /* look_for_order() finds that it is later, too */
    }
    rank.looked = now;
    /* A connection may be lost, and there is a deadline. */
    return rank.state != ATTACHED || MPIDI_ZC_paths_may_step() || MPIDI_ZC_paths_have_early() ||
        MPIDI_ZC_foreign_path_waits();
}

/* Paths to other worlds wait for messages on other VCIs as well, where nobody may look: a thread that waits on
 * the first one looks there in one of 256 rounds, each of which may take milliseconds on a busy machine. */
static void look_on_other_vcis(void)
{
    for (int v = 1; v < MPIDI_global.n_vcis && !MPIDI_ZC_paths_to_worlds_open(); v++) {
        (void) MPIDI_ZC_worker_progress(&MPIDI_ZC_VCI(v));
    }
}

/* All steps that are possible. */
static void take_steps(void)
{
    look_on_other_vcis();
    MPIDI_ZC_paths_progress();
    switch (rank.state) {
        case ATTACHED:
            look_for_order();
            break;
        case LEAVING:
            leaving();
            break;
        case BINDING:
            binding();
            break;
    }
}

void MPIDI_ZC_detach_progress(void)
{
    if (rank.finalizes) {
        take_steps();           /* there is no other thread, and no lock */
    } else if (!rank.put_off && is_due()) {
        MPIDI_ZC_vci_locks_enter();
        take_steps();
        MPIDI_ZC_vci_locks_exit();
    }
}

void MPIDI_ZC_detach_put_off(bool put_off)
{
    rank.put_off = put_off && MPIDI_global.n_vcis > 1;
}

void MPIDI_ZC_detach_finalize(void)
{
    if (!MPIDI_ZC_global.paths) {
        return;
    }
    rank.finalizes = true;
    MPIDI_ZC_paths_refuse_all();
    if (rank.state == LEAVING) {
        stay("it is in MPI_Finalize", -1, false);
    }
    while (rank.state != ATTACHED || !MPIDI_ZC_paths_open()) {
        MPIDI_ZC_progress_all();
    }
    (void) MPIDI_ZC_order_open(-1);
}
