/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "zc_liveness.h"
#include "zc_hosts.h"
#include "zc_impl.h"

#define LOOK_MS 20
#define NEXT_MS 1000            /* without the token, until the next address is tried as well */
#define LATE_MS 30000           /* without the token, until that is counted */
#define MOST_HOSTS 8
#define PROBES 3

/* ---- the mover ---- */

#define HOSTS_ROOM (MPIDI_ZC_LIVENESS_ROOM - sizeof(MPIDI_ZC_lives_t))

static struct {
    MPIDI_ZC_lives_t lives;
    char hosts[HOSTS_ROOM];
    size_t length;              /* of both; 0: nothing is offered */
} offered;

void MPIDI_ZC_liveness_set(uint16_t port, uint64_t token, uint16_t seconds)
{
    size_t length;

    if (offered.length > 0 && offered.lives.token == token) {
        return;
    }
    offered.length = 0;
    if (MPIDI_ZC_hosts_list(offered.hosts, sizeof(offered.hosts), &length) == 0) {
        offered.lives = (MPIDI_ZC_lives_t) {
            .token = token,.port = htons(port),.silence = seconds
        };
        offered.length = sizeof(offered.lives) + length;
    }
}

size_t MPIDI_ZC_liveness_offer(const void **offer)
{
    *offer = &offered;
    return offered.length;
}

/* ---- the peer ---- */

typedef enum { SEEKING, WATCHED, UNWATCHED, OVER } state_t;

/* What may be the holder. */
typedef struct {
    int fd;                     /* -1: it is not */
    size_t got;                 /* of the token */
    char token[sizeof(uint64_t)];
} candidate_t;

struct MPIDI_ZC_liveness {
    struct MPIDI_ZC_liveness *next;
    int users;
    state_t state;
    bool counted;               /* as unwatched */
    int fd;                     /* of the holder; -1: SEEKING, UNWATCHED */
    uint64_t begun, tried, looked;      /* ms; the last that was tried */
    MPIDI_ZC_lives_t lives;
    MPIDI_ZC_host_t host;       /* SEEKING */
    int nr;
    candidate_t candidates[MOST_HOSTS];
    char hosts[];
};

static MPIDI_ZC_liveness_t *watches;
static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t) now.tv_sec * 1000u + (uint64_t) now.tv_nsec / 1000000u;
}

static void note_unwatched(MPIDI_ZC_liveness_t * watch, const char *why)
{
    static bool reported;

    if (watch && watch->counted) {
        return;
    } else if (watch) {
        watch->counted = true;
    }
    MPIDI_ZC_VCI(0).stats.unwatched++;
    if (!reported) {
        reported = true;
        fprintf(stderr, "zc: rank %d: would not notice the end of a process of another world that is "
                "away: %s; the statistics count further cases\n", MPIR_Process.rank, why);
    }
}

/* Returns what watches the holder with @token, for one more user, or NULL. */
static MPIDI_ZC_liveness_t *find(uint64_t token)
{
    pthread_mutex_lock(&watches_lock);
    MPIDI_ZC_liveness_t *watch = watches;
    while (watch && watch->lives.token != token) {
        watch = watch->next;
    }
    if (watch) {
        watch->users++;
    }
    pthread_mutex_unlock(&watches_lock);
    return watch;
}

static void add(MPIDI_ZC_liveness_t * watch)
{
    pthread_mutex_lock(&watches_lock);
    watch->next = watches;
    watches = watch;
    pthread_mutex_unlock(&watches_lock);
}

/* Takes @watch out, if that was its last user. */
static bool is_last(MPIDI_ZC_liveness_t * watch)
{
    MPIDI_ZC_liveness_t **at = &watches;

    pthread_mutex_lock(&watches_lock);
    const bool last = --watch->users == 0;
    while (last && *at != watch) {
        at = &(*at)->next;
    }
    if (last) {
        *at = watch->next;
    }
    pthread_mutex_unlock(&watches_lock);
    return last;
}

MPIDI_ZC_liveness_t *MPIDI_ZC_liveness_watch(const void *offer, size_t length)
{
    MPIDI_ZC_liveness_t *watch = NULL;
    MPIDI_ZC_lives_t lives;

    if (length < sizeof(lives)) {
        note_unwatched(NULL, "its holder takes no connections");
        return NULL;
    }
    memcpy(&lives, offer, sizeof(lives));
    watch = find(lives.token);
    if (watch) {
        return watch;
    }
    const size_t hosts = length - sizeof(lives);
    watch = MPL_malloc(sizeof(*watch) + hosts, MPL_MEM_OTHER);
    if (!watch) {
        note_unwatched(NULL, "there is no memory");
        return NULL;
    }
    *watch = (MPIDI_ZC_liveness_t) {
        .users = 1,.state = SEEKING,.fd = -1,.begun = now_ms(),.lives = lives
    };
    memcpy(watch->hosts, (const char *) offer + sizeof(lives), hosts);
    watch->host = (MPIDI_ZC_host_t) {.list = watch->hosts,.length = hosts };
    add(watch);
    return watch;
}

/* Begins to connect to the next address. False: there is none. */
static bool try_next(MPIDI_ZC_liveness_t * watch)
{
    if (watch->nr == MOST_HOSTS || !MPIDI_ZC_hosts_next(&watch->host)) {
        return false;
    }
    watch->tried = now_ms();
    watch->candidates[watch->nr++] = (candidate_t) {
        .fd = MPIDI_ZC_hosts_connect(&watch->host, watch->lives.port)
    };
    return true;
}

/* Has a connection come to its end? recv(2) has returned @got, and says why in errno. */
static bool has_ended(ssize_t got)
{
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* The kernel is to end the connection if the holder's host gives no sign for so many @seconds. */
static void ask_for_probes(int fd, int seconds)
{
    const struct {
        int level, option, value;
    } settings[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, MPL_MAX(1, seconds / 2)},
        {IPPROTO_TCP, TCP_KEEPINTVL, MPL_MAX(1, seconds / 2 / PROBES)},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
    };

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        (void) setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value,
                          sizeof(settings[i].value));
    }
}

/* Reads what has come of the token. Returns whether it is that of @watch. */
static bool proves_itself(const MPIDI_ZC_liveness_t * watch, candidate_t * candidate)
{
    const size_t left = sizeof(candidate->token) - candidate->got;
    const ssize_t got = recv(candidate->fd, candidate->token + candidate->got, left, MSG_DONTWAIT);

    if (got > 0) {
        candidate->got += (size_t) got;
    }
    const bool all = candidate->got == sizeof(candidate->token);
    const bool right = all && memcmp(candidate->token, &watch->lives.token, sizeof(watch->lives.token)) == 0;
    if (!right && (all || has_ended(got))) {
        close(candidate->fd);
        candidate->fd = -1;
    }
    return right;
}

static void close_candidates(MPIDI_ZC_liveness_t * watch)
{
    for (int i = 0; i < watch->nr; i++) {
        if (watch->candidates[i].fd >= 0) {
            close(watch->candidates[i].fd);
        }
    }
    watch->nr = 0;
}

/* @candidate: is the holder. */
static void watch_holder(MPIDI_ZC_liveness_t * watch, candidate_t * candidate)
{
    watch->state = WATCHED;
    watch->fd = candidate->fd;
    candidate->fd = -1;
    ask_for_probes(watch->fd, watch->lives.silence);
    close_candidates(watch);
}

static void look_for_holder(MPIDI_ZC_liveness_t * watch)
{
    int left = 0;

    for (int i = 0; i < watch->nr; i++) {
        candidate_t *candidate = &watch->candidates[i];
        if (candidate->fd >= 0 && proves_itself(watch, candidate)) {
            watch_holder(watch, candidate);
            return;
        }
        left += candidate->fd >= 0;
    }
    const bool waits = left > 0 && now_ms() - watch->tried < NEXT_MS;
    if (!waits && !try_next(watch) && left == 0) {
        watch->state = UNWATCHED;
        note_unwatched(watch, "its holder is not reached");
    } else if (now_ms() - watch->begun > LATE_MS) {
        note_unwatched(watch, "its holder has not answered for long");
    }
}

bool MPIDI_ZC_liveness_is_over(MPIDI_ZC_liveness_t * watch)
{
    const uint64_t now = now_ms();
    char more;

    if (now - watch->looked < LOOK_MS) {
        return watch->state == OVER;
    }
    watch->looked = now;
    if (watch->state == SEEKING) {
        look_for_holder(watch);
    } else if (watch->state == WATCHED &&
               has_ended(recv(watch->fd, &more, sizeof(more), MSG_DONTWAIT))) {
        watch->state = OVER;
    }
    return watch->state == OVER;
}

void MPIDI_ZC_liveness_forget(MPIDI_ZC_liveness_t * watch)
{
    if (!watch || !is_last(watch)) {
        return;
    }
    close_candidates(watch);
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    MPL_free(watch);
}
