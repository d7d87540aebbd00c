/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ORDER_H_INCLUDED
#define ZC_ORDER_H_INCLUDED

/* A holder, the process that has started this rank, tells the rank to leave and to come back, over a
 * socket (AF_UNIX, of type SOCK_STREAM or SOCK_SEQPACKET) that the rank inherits:
 * MPIR_CVAR_CH4_ZC_DETACH_FD. Each line ends with a newline:
 *
 *   holder                     rank
 *   WITH <rank>         ───▶                       LEAVE is going to be given to that one, too
 *   LIVES <port> <token> <seconds> ───▶            at this port of this host the holder takes
 *                                                  connections, and sends the token on each, until the
 *                                                  rank has ended (zc_liveness.h). It is gone if its
 *                                                  host gives no sign for so long
 *   LEAVE               ───▶
 *                       ◀───   DETACHED            it has nothing of UCX
 *                       ◀───   REFUSED <reason>    or goes on as before; REFUSED AGAIN <reason>, if
 *                                                  other ranks that move are in the way
 *   BIND <incarnation>  ───▶                       to one that is detached: the token
 *                       ◀───   BOUND <incarnation> all others have its new address
 *                       ◀───   REFUSED <reason>    it still waits for a token
 *   TRACK               ───▶                       to one that is not detached
 *                       ◀───   TRACKED             with a userfaultfd(2) of its memory (SCM_RIGHTS)
 *                       ◀───   UNTRACKED <reason>  or it has none
 *   TELL <clocks>       ───▶                       with memory (SCM_RIGHTS), to one that is attached
 *                       ◀───   TELLING             it writes there what it sends (zc_traffic.h), until
 *                                                  it is detached
 *                       ◀───   UNTOLD <reason>     or it does not
 *
 * With the descriptor of TRACKED the holder asks the kernel which pages are written, while the rank
 * goes on: the rank keeps none.
 *
 * WITH, once for each rank of a group, helps the rank to choose one by which it comes back (zc_path.h). It
 * holds for one LEAVE. The token of LIVES is a hexadecimal number. LIVES holds for all LEAVEs that follow, on
 * other hosts, too.
 *
 * <clocks> is CLOCK_REALTIME less CLOCK_MONOTONIC in nanoseconds, as the holder reads them: a rank that
 * CRIU has restored has another CLOCK_MONOTONIC.
 *
 * <incarnation> is a decimal number, higher each time; that of a rank that never left is 0. When the
 * holder closes its end, a rank that is detached ends the job, and any other takes no more orders.
 *
 * All functions are called inside the lock of VCI 0, or by the landing thread inside the gate. */

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    MPIDI_ZC_ORDER_NONE,
    MPIDI_ZC_ORDER_WITH,
    MPIDI_ZC_ORDER_LIVES,
    MPIDI_ZC_ORDER_LEAVE,
    MPIDI_ZC_ORDER_BIND,
    MPIDI_ZC_ORDER_TRACK,
    MPIDI_ZC_ORDER_TELL,
    MPIDI_ZC_ORDER_UNKNOWN,
    MPIDI_ZC_ORDER_CLOSED,      /* there is no holder any more, or none that can be heard */
} MPIDI_ZC_order_t;

/* What an order says. */
typedef struct {
    int64_t number;             /* the rank of WITH, the incarnation of BIND, the clocks of TELL */
    uint16_t port, seconds;     /* LIVES */
    uint64_t token;
} MPIDI_ZC_given_t;

/* Is this process what a holder has started, as far as the environment tells? What it starts in turn has
 * the same environment. */
bool MPIDI_ZC_order_is_for_this(void);

/* Orders come over @fd from now on. -1: there is no holder. False: it is no socket. */
bool MPIDI_ZC_order_open(int fd);

/* Returns the descriptor, or -1. Any thread may call this. */
int MPIDI_ZC_order_descriptor(void);

/* May MPIDI_ZC_order_take() find something, an order or that the holder has gone? */
bool MPIDI_ZC_order_waits(void);

/* Returns the next order, and what it says in *@given. @wait: until there is one. */
MPIDI_ZC_order_t MPIDI_ZC_order_take(bool wait, MPIDI_ZC_given_t * given);

/* Returns the descriptor that came last, which is the caller's from then on; -1: none has come since the
 * last call. */
int MPIDI_ZC_order_passed(void);

/* Sends the holder a line: @answer and, if it is not NULL, @more. */
void MPIDI_ZC_order_answer(const char *answer, const char *more);

/* Sends the holder the line @answer, and with it the descriptor @fd, which stays the caller's. */
void MPIDI_ZC_order_pass(const char *answer, int fd);

#endif /* ZC_ORDER_H_INCLUDED */
