/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_connection.h"
#include "zc_foreign.h"
#include "zc_foreign_path.h"
#include "zc_foreign_vcis.h"
#include "zc_path.h"
#include "zc_path_message.h"

int MPIDI_ZC_foreign_path(const MPIDI_ZC_foreign_t * f)
{
    return f->path;
}

int MPIDI_ZC_foreign_path_of_sender(uint64_t sender)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_sender_connection(sender);
    return f ? f->path : -1;
}

int MPIDI_ZC_foreign_path_of_self(uint64_t self)
{
    const MPIDI_ZC_foreign_t *f = MPIDI_ZC_foreign_of_self(self);
    return f ? f->path : -1;
}

uint64_t MPIDI_ZC_foreign_path_id(const MPIDI_ZC_foreign_t * f)
{
    return f->upid->id;
}

uint64_t MPIDI_ZC_foreign_path_self(const MPIDI_ZC_foreign_t * f)
{
    return f->link.number;
}

uint64_t MPIDI_ZC_foreign_path_other(const MPIDI_ZC_foreign_t * f)
{
    return f->other;
}

MPIDI_ZC_addr_t *MPIDI_ZC_foreign_path_peer(const MPIDI_ZC_foreign_t * f)
{
    return f->avtid >= 0 ? MPIDI_ZC_foreign_address(f) : NULL;
}

bool MPIDI_ZC_foreign_path_is_over(const MPIDI_ZC_foreign_t * f)
{
    return !f->process || f->failed || MPIDI_ZC_disconnect_is_done(f);
}

bool MPIDI_ZC_foreign_path_first_is_lost(const MPIDI_ZC_foreign_t * f)
{
    return f->first_lost;
}

bool MPIDI_ZC_foreign_path_is_given_up(const MPIDI_ZC_foreign_t * f)
{
    return f->avtid < 0 && f->disconnect.fin != MPIDI_ZC_FIN_NONE;
}

bool MPIDI_ZC_foreign_path_has_all(const MPIDI_ZC_foreign_t * f, uint32_t next)
{
    const MPIDI_ZC_inbound_t *in = f->other ? MPIDI_ZC_sender_inbound_if_any(f->other) : NULL;
    return in && in->next == next;
}

ucp_ep_h MPIDI_ZC_foreign_path_endpoint(const MPIDI_ZC_foreign_t * f)
{
    return f->net_ep;
}

int MPIDI_ZC_foreign_path_readdress(MPIDI_ZC_foreign_t * f, const char *address, size_t length)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_upid_t *upid = MPL_malloc(sizeof(*upid) + length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
    *upid = *f->upid;
    memcpy(upid->address, address, length);
    MPL_free(f->upid);
    f->upid = upid;
    f->upid_length = sizeof(*upid) + length;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_ZC_foreign_path_connect(MPIDI_ZC_foreign_t * f, ucp_ep_h * ep)
{
    int mpi_errno = MPI_SUCCESS;

    MPIDI_ZC_foreign_path_forget_endpoint(f);
    mpi_errno = MPIDI_ZC_foreign_endpoint(f, f->upid, ep);
    if (mpi_errno && MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED) {
        mpi_errno = MPI_SUCCESS;
        *ep = NULL;
        MPIDI_ZC_foreign_lost(f);
        goto fn_exit;
    }
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_ZC_foreign_opened(f, *ep);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_foreign_path_forget_endpoint(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_addr_t *peer = MPIDI_ZC_foreign_path_peer(f);

    if (peer) {
        peer->lane.ep = NULL;
    }
    MPIDI_ZC_foreign_opened(f, NULL);
}

void MPIDI_ZC_foreign_path_lose(MPIDI_ZC_foreign_t * f)
{
    MPIDI_ZC_foreign_lost(f);
}

void MPIDI_ZC_foreign_path_refused(MPIDI_ZC_foreign_t * f, ucs_status_t status)
{
    MPIDI_ZC_foreign_refused(f, status);
}

static bool fin_waits;          /* atomic */

static void set_waits(bool waits)
{
    __atomic_store_n(&fin_waits, waits, __ATOMIC_RELAXED);
}

void MPIDI_ZC_foreign_path_postpone(void)
{
    set_waits(true);
}

bool MPIDI_ZC_foreign_path_waits(void)
{
    return __atomic_load_n(&fin_waits, __ATOMIC_RELAXED);
}

/* Returns one of @vci that may be sent or answered, or NULL. */
static MPIDI_ZC_foreign_t *find_settleable(int vci)
{
    for (MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[vci]; f; f = f->next) {
        const bool answers = f->disconnect.unanswered && MPIDI_ZC_sender_is_ready(f->other);
        if ((f->disconnect.postponed || answers) && MPIDI_ZC_path_is_open(f->path)) {
            return f;
        }
    }
    return NULL;
}

/* Sends and answers those of @vci that may be. */
static void settle(int vci)
{
    MPIDI_ZC_foreign_t *f;

    /* Each may free connections. */
    while ((f = find_settleable(vci)) != NULL) {
        if (f->disconnect.postponed) {
            MPIDI_ZC_disconnect(f);
        } else {
            MPIDI_ZC_disconnect_answer(f);
        }
    }
}

static bool any_waits(void)
{
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[v]; f; f = f->next) {
            if (f->disconnect.postponed || f->disconnect.unanswered) {
                return true;
            }
        }
    }
    return false;
}

void MPIDI_ZC_foreign_path_settle(void)
{
    if (MPIDI_ZC_path_messages_wait() || !MPIDI_ZC_foreign_path_waits()) {
        return;                 /* something could not be sent, or none waits */
    }
    for (int v = 0; v < MPIDI_global.n_vcis; v++) {
        settle(v);
    }
    set_waits(any_waits());     /* what one does may make another one wait */
}

/* It would not answer PAUSE, and this process would wait for that in vain. */
#define WITHOUT_DETACH "a process of another world was started without zc-hold, or MPIR_CVAR_CH4_ZC_DETACH=1"

/* The same of the connections of @vci. */
static const char *obstacle_on(int vci, bool *passes)
{
    /* Those that VCI 0 has given up may be on a list (zc_foreign_vcis.h). */
    MPIDI_ZC_foreign_vcis_end(&MPIDI_ZC_VCI(vci));
    if (MPIDI_ZC_disconnect_is_closing(vci)) {
        return "a connection to another world is being closed";
    }
    for (const MPIDI_ZC_foreign_t * f = MPIDI_ZC_connections[vci]; f; f = f->next) {
        if (f->path < 0) {
            *passes = false;
            return "there is no memory for a path to another world";
        }
        if (!MPIDI_ZC_foreign_path_is_over(f) &&
            (f->avtid < 0 || f->disconnect.fin != MPIDI_ZC_FIN_NONE ||
             MPIDI_ZC_disconnect_peer_has_finished(f))) {
            return "it connects to another world, or parts from it";
        }
        if (!MPIDI_ZC_foreign_path_is_over(f) && f->knows_not) {
            *passes = false;
            return WITHOUT_DETACH;
        }
    }
    return NULL;
}

const char *MPIDI_ZC_foreign_path_obstacle(bool *passes)
{
    const char *why = NULL;

    *passes = true;
    for (int v = 0; !why && v < MPIDI_global.n_vcis; v++) {
        why = obstacle_on(v, passes);
    }
    return why ? why : MPIDI_ZC_paths_foreign_obstacle(passes);
}
