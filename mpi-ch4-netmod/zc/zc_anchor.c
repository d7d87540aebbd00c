/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_anchor.h"
#include "zc_channel.h"
#include "zc_path_message.h"
#include "zc_peer.h"

static struct {
    uint32_t round;             /* of this process's attempts to leave; 0: it is not about to */
    int asked;                  /* rank that has been asked to be its anchor; -1: none */
    int own;                    /* rank that is its anchor; -1: none */
    bool forsaken;              /* there is none that could be */
    int nr_anchored;            /* ranks that this process is the anchor of */
    int nr_returned;            /* and that are back, and not DONE */
} anchors;

void MPIDI_ZC_anchor_init(void)
{
    memset(&anchors, 0, sizeof(anchors));
    anchors.asked = anchors.own = -1;
}

/* Tells @rank that @subject is there, and where. */
static void introduce(int rank, int subject)
{
    const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(subject);
    const MPIDI_ZC_path_message_t message = {
        .kind = MPIDI_ZC_TELL_INTRODUCE,
        .incarnation = path->incarnation,
        .subject = subject,
    };

    /* Without it, both would wait for ever. */
    MPIDI_ZC_channel_must_send(MPIDI_ZC_path_send(MPIDI_ZC_path_endpoint(rank), rank, message,
                                                  path->addresses, path->addresses_length));
}

void MPIDI_ZC_anchor_introduce_to_all(int subject)
{
    for (int rank = 0; anchors.nr_returned > 0 && rank < MPIR_Process.size; rank++) {
        if (MPIDI_ZC_path_of(rank)->returned && rank != subject) {
            introduce(rank, subject);
        }
    }
}

void MPIDI_ZC_anchor_introduce_all(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    anchors.nr_returned += !path->returned;
    path->returned = true;
    for (int other = 0; other < MPIR_Process.size; other++) {
        if (other != rank && other != MPIR_Process.rank &&
            MPIDI_ZC_path_of(other)->state == MPIDI_ZC_PATH_OPEN) {
            introduce(rank, other);
        }
    }
}

void MPIDI_ZC_anchor_forget(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    path->awaits_anchor = false;
    anchors.nr_anchored -= path->anchored;
    anchors.nr_returned -= path->returned;
    path->anchored = path->returned = false;
}

static void be_anchor(int rank)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    path->awaits_anchor = false;
    anchors.nr_anchored += !path->anchored;
    path->anchored = true;
    MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_STAYS);
}

/* Answers all ranks that wait for it whether this process stays. */
static void answer_waiting(bool stays)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        if (path->awaits_anchor && stays) {
            be_anchor(rank);
        } else if (path->awaits_anchor) {
            path->awaits_anchor = false;
            MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_GOES);
        }
    }
}

void MPIDI_ZC_anchor_handle_ask(int rank, const MPIDI_ZC_path_message_t * message)
{
    MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);

    path->asks = message->round;
    if (!anchors.round || anchors.forsaken) {
        be_anchor(rank);
    } else if (rank < MPIR_Process.rank && anchors.own < 0) {
        path->awaits_anchor = true;
    } else {
        MPIDI_ZC_path_tell(rank, MPIDI_ZC_TELL_GOES);
    }
}

/* Asks the next rank. Those of other nodes come first: those of one node often leave together. */
static void ask_next(void)
{
    int least = 0;

    anchors.asked = -1;
    for (int rank = MPIR_Process.size - 1; rank >= 0; rank--) {
        const MPIDI_ZC_path_t *path = MPIDI_ZC_path_of(rank);
        const int drawback = 2 * path->company + MPIDI_ZC_peer_is_local(rank);
        if (rank != MPIR_Process.rank && path->asked != anchors.round && !path->other_round &&
            (anchors.asked < 0 || drawback < least)) {
            anchors.asked = rank;
            least = drawback;
        }
    }
    anchors.forsaken = anchors.asked < 0;
    if (!anchors.forsaken) {
        MPIDI_ZC_path_of(anchors.asked)->asked = anchors.round;
        MPIDI_ZC_path_tell(anchors.asked, MPIDI_ZC_TELL_ASK);
    }
}

void MPIDI_ZC_anchor_handle_answer(int rank, const MPIDI_ZC_path_message_t * message)
{
    if (rank != anchors.asked || message->round != anchors.round) {
        return;
    }
    if (message->kind == MPIDI_ZC_TELL_STAYS) {
        anchors.asked = -1;
        anchors.own = rank;
        answer_waiting(false);
    } else {
        ask_next();
    }
}

void MPIDI_ZC_anchor_is_company(int rank)
{
    if (rank >= 0 && rank < MPIR_Process.size) {
        MPIDI_ZC_path_of(rank)->company = true;
    }
}

void MPIDI_ZC_anchor_forget_company(void)
{
    for (int rank = 0; rank < MPIR_Process.size; rank++) {
        MPIDI_ZC_path_of(rank)->company = false;
    }
}

bool MPIDI_ZC_anchor_is_needed(void)
{
    return anchors.nr_anchored > 0;
}

void MPIDI_ZC_anchor_seek(uint32_t round)
{
    anchors.round = round;
    anchors.own = -1;
    ask_next();
}

void MPIDI_ZC_anchor_progress(void)
{
    if (anchors.asked >= 0 && MPIDI_ZC_path_of(anchors.asked)->lost) {
        ask_next();             /* its answer was lost as well */
    }
}

int MPIDI_ZC_anchor_asked(void)
{
    return anchors.asked;
}

bool MPIDI_ZC_anchor_is_missing(void)
{
    return anchors.forsaken && MPIR_Process.size > 1;
}

void MPIDI_ZC_anchor_stay(void)
{
    anchors.round = 0;
    anchors.asked = anchors.own = -1;
    answer_waiting(true);
}

void MPIDI_ZC_anchor_left(void)
{
    anchors.round = 0;
}

int MPIDI_ZC_anchor_of_this(void)
{
    return anchors.own;
}

void MPIDI_ZC_anchor_release(void)
{
    if (anchors.own >= 0) {
        MPIDI_ZC_path_tell(anchors.own, MPIDI_ZC_TELL_DONE);
    }
    anchors.own = -1;
}

bool MPIDI_ZC_anchor_is_waited_for(void)
{
    return anchors.nr_returned > 0;
}
