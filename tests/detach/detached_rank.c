/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that exchanges messages with all others, destroys everything it has of UCX in the
 * middle of that, waits, makes it anew, and goes on with the same peers: link.h has the protocol.
 *
 * usage: detached_rank RANK SIZE SOCKET [options]
 *   --cycles N     this process leaves and comes back N times, by itself
 *   --every MS     after so long (default 5)
 *   --away MS      and for so long (default 1)
 *   --orders IN,OUT  or when it is told, by lines on the descriptors, as zc-hold does it:
 *                      IN: LEAVE; BIND INCARNATION; TRACK; end
 *                      OUT: DETACHED; BOUND INCARNATION; REFUSED; TRACKED
 * WHY
 *                      MISLEAD INCARNATION is BIND, after the address before it left
 *   --held         likewise, both on the socket $MPIR_CVAR_CH4_ZC_DETACH_FD; SIGUSR1 is "end"
 *   --lanes WAY    long messages go by libzclane, served by "thread" or "uring"
 *   --gently       endpoints have no error handling, and are not closed by force
 *   --ballast MIB  memory of this size is kept, and checked in the end
 *   --changes      a page of it is changed in each turn
 *
 * The last line on standard output is "result {...}". Whatever is wrong ends the process by
 * SIGABRT. */

#include "ballast.h"
#include "census.h"
#include "launcher.h"
#include "link.h"
#include "userfault.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*   RUN ──▶ PAUSING ──▶ DETACHED ──▶ BINDING ──▶ RUN
 *    └────▶ ENDING ──▶ ENDED                          */
typedef enum { RUN, PAUSING, DETACHED, BINDING, ENDING, ENDED } phase_t;

enum { WARM = 20 }; /* cycles before memory is compared */

typedef struct {
    double pausing, destroying, making, binding; /* ms, sums */
    double longest; /* from the order to leave until all are bound, without the wait */
} times_t;

typedef struct {
    rank_t rank;
    launcher_t launcher;
    phase_t phase;
    long cycles, every_ms, away_ms;
    int orders, notices; /* -1: none */
    char order[64];      /* the line that is being read */
    unsigned order_length;
    size_t ballast_mib;
    ballast_t ballast;
    bool changes;      /* the ballast */
    int maps, pagemap; /* of /proc/self */
    long done;         /* cycles */
    bool finishing;    /* no more messages are made */
    double since, leaving, moved;
    double begun, begun_real; /* ms, by CLOCK_MONOTONIC and CLOCK_REALTIME */
    double spent;             /* ms, of this cycle */
    times_t times;
    census_t before; /* UCX was first made */
    census_t first, half,
        last;   /* detached (or, without cycles, running): warm, later, at the end */
    int shared; /* mappings, when it had come back first */
    bool warm;
    unsigned turns;
} process_t;

static double clock_ms(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static double now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static void lock(process_t *process)
{
    pthread_mutex_lock(&process->rank.ucx.lock);
}

static void unlock(process_t *process)
{
    pthread_mutex_unlock(&process->rank.ucx.lock);
}

static void for_links(process_t *process, void (*act)(link_t *link))
{
    for (uint32_t peer = 0; peer < process->rank.size; peer++) {
        if (peer != process->rank.self) {
            act(&process->rank.links[peer]);
        }
    }
}

static void notify(process_t *process, const char *what)
{
    if (process->notices >= 0 && dprintf(process->notices, "%s\n", what) < 0) {
        die("no notice can be given");
    }
}

/* ---- files of the process itself, which libzc keeps open: they must be its own on the next host
 * ---- */

static void open_own_files(process_t *process)
{
    process->maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    process->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (process->maps < 0 || process->pagemap < 0) {
        die("/proc/self cannot be read");
    }
}

static bool maps_have(int maps, uintptr_t wanted)
{
    char line[1024];
    bool found = false;
    const int copy = dup(maps);
    FILE *file = copy < 0 || lseek(copy, 0, SEEK_SET) != 0 ? NULL : fdopen(copy, "r");
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned long begin, end;
        found = sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= wanted && wanted < end;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static void check_own_files(const process_t *process)
{
    /* A page that this process alone has: it is there, and in its map. */
    volatile unsigned char *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t entry = 0;
    if (page == MAP_FAILED) {
        die("no memory");
    }
    *page = 1;
    if (pread(process->pagemap, &entry, sizeof(entry),
              (off_t)((uintptr_t)page / 4096 * sizeof(entry))) != sizeof(entry) ||
        !(entry >> 63) || !maps_have(process->maps, (uintptr_t)page)) {
        die("/proc/self, opened before, is not this process any more");
    }
    munmap((void *)page, 4096);
}

/* ---- leaving ---- */

static void begin_to_leave(process_t *process)
{
    process->leaving = now_ms();
    process->phase = PAUSING;
    for_links(process, link_pause);
}

/* Nothing may be left of what cannot be carried to another host. */
static void check_detached(process_t *process)
{
    malloc_trim(0); /* what is free belongs in no image */
    const census_t census = census_take();
    if (census.threads != process->before.threads || census.sockets != process->before.sockets ||
        census.anonymous != process->before.anonymous ||
        census.descriptors != process->before.descriptors ||
        census.shared != process->before.shared) {
        census_print_descriptors(stderr);
        die("detached with %d threads, %d descriptors (%d sockets, %d anonymous), %d shared "
            "mappings; "
            "before UCX there were %d, %d (%d, %d), %d",
            census.threads, census.descriptors, census.sockets, census.anonymous, census.shared,
            process->before.threads, process->before.descriptors, process->before.sockets,
            process->before.anonymous, process->before.shared);
    }
    process->last = census;
    if (!process->warm && process->done >= WARM) {
        process->warm = true;
        process->first = census;
    }
    if (process->done <= process->cycles / 2) {
        process->half = census;
    }
}

/* The lock is held, and not afterwards. */
static void destroy(process_t *process)
{
    rank_t *rank = &process->rank;

    free(rank->gone);
    rank->gone = rank_address(rank, &rank->gone_length);
    for_links(process, link_detach);
    while (rank->closing) {
        ucp_worker_progress(rank->ucx.worker);
        rank_tend(rank);
    }
    unlock(process);
    lanes_close(rank);
    ucx_close(&rank->ucx);
}

/* All links are quiet. The lock is held, and not afterwards. */
static void detach(process_t *process)
{
    const double begin = now_ms();

    process->times.pausing += begin - process->leaving;
    destroy(process);
    process->since = now_ms();
    process->times.destroying += process->since - begin;
    process->spent = process->since - process->leaving;
    process->phase = DETACHED;
    check_detached(process);
    notify(process, "DETACHED");
}

/* ---- coming back ---- */

static void attach(process_t *process, uint32_t incarnation)
{
    const double begin = now_ms();
    rank_t *rank = &process->rank;

    rank->incarnation = incarnation;
    lanes_open(rank);
    ucx_open(&rank->ucx, link_handlers, LINK_HANDLERS, rank);
    process->moved = now_ms();
    process->times.making += process->moved - begin;
    process->spent += process->moved - begin;
    lock(process);
    for_links(process, link_attach);
    unlock(process);
    process->phase = BINDING;
}

/* A host that was booted at another time has another CLOCK_MONOTONIC: that of the process goes on,
 * but for the time in which it stands still. */
static void check_clock(const process_t *process)
{
    const double jump = now_ms() - process->begun - clock_ms(CLOCK_REALTIME) + process->begun_real;
    if (fabs(jump) > 60e3) {
        die("CLOCK_MONOTONIC has jumped by %.0f s", jump / 1e3);
    }
}

static void note_bound(process_t *process)
{
    const double now = now_ms();
    check_clock(process);
    process->times.binding += now - process->moved;
    process->spent += now - process->moved;
    if (process->spent > process->times.longest) {
        process->times.longest = process->spent;
    }
    process->since = now;
    if (process->done++ == 0) {
        process->shared = census_take().shared;
    }
    check_own_files(process);
    process->phase = RUN;
    char answer[32];
    snprintf(answer, sizeof(answer), "BOUND %u", process->rank.incarnation);
    notify(process, answer);
}

/* Says which peer refuses this process, and leaves when all have. */
static void leave_if_refused(process_t *process)
{
    bool accepted = false, refused = false;

    for (uint32_t peer = 0; peer < process->rank.size; peer++) {
        link_t *link = &process->rank.links[peer];
        if (link->state == LINK_REFUSED && !link->told) {
            link->told = true;
            fprintf(stderr, "detached_rank: rank %u refuses this process: it is elsewhere\n", peer);
        }
        accepted = accepted || (peer != process->rank.self && link->state == LINK_OPEN);
        refused = refused || link->state == LINK_REFUSED;
    }
    if (accepted && refused) {
        die("some ranks have accepted this process, and others have refused it");
    }
    if (rank_all(&process->rank, LINK_REFUSED)) {
        destroy(process);
        notify(process, "REFUSED by all peers");
        exit(3);
    }
}

/* ---- the end ---- */

static void begin_to_end(process_t *process)
{
    process->finishing = true;
    process->phase = ENDING;
    for_links(process, link_send_last);
}

static bool every_link(const process_t *process, bool (*is)(const link_t *))
{
    for (uint32_t peer = 0; peer < process->rank.size; peer++) {
        if (peer != process->rank.self && !is(&process->rank.links[peer])) {
            return false;
        }
    }
    return true;
}

static bool is_last(const link_t *link)
{
    return link->last;
}
static bool is_done(const link_t *link)
{
    return link->done && link->under_way == 0;
}

static bool any_last(const process_t *process)
{
    for (uint32_t peer = 0; peer < process->rank.size; peer++) {
        if (peer != process->rank.self && is_last(&process->rank.links[peer])) {
            return true;
        }
    }
    return false;
}

static void end_if_complete(process_t *process)
{
    static bool said;
    if (!said && every_link(process, link_is_complete)) {
        said = true;
        for_links(process, link_send_done);
    }
    if (said && every_link(process, is_done)) {
        process->phase = ENDED;
    }
}

static void print_result(process_t *process)
{
    uint64_t sent = 0, received = 0, overtaken = 0, by_lane = 0;
    const census_t *first = &process->first, *half = &process->half, *last = &process->last;
    const double nr = process->done ? (double)process->done : 1;

    for (uint32_t peer = 0; peer < process->rank.size; peer++) {
        sent += process->rank.links[peer].sent;
        received += process->rank.links[peer].received;
        overtaken += process->rank.links[peer].overtaken;
        by_lane += process->rank.links[peer].by_lane;
    }
    printf("result {\"rank\": %u, \"cycles\": %ld, \"incarnation\": %u, \"shared\": %d, ",
           process->rank.self, process->done, process->rank.incarnation, process->shared);
    printf("\"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"overtaken\": %" PRIu64
           ", \"by_lane\": %" PRIu64 ", \"refusals\": %" PRIu64 ", ",
           sent, received, overtaken, by_lane, process->rank.refusals);
    printf("\"pings\": %" PRIu64 ", \"lines\": %" PRIu64 ", ", process->launcher.answered,
           process->launcher.lines_read);
    printf(
        "\"rss_kib\": [%ld, %ld, %ld], \"heap_kib\": [%ld, %ld, %ld], \"mappings\": [%d, %d, %d], "
        "\"threads\": [%d, %d, %d], \"descriptors\": [%d, %d, %d], ",
        first->rss_kib, half->rss_kib, last->rss_kib, first->heap_kib, half->heap_kib,
        last->heap_kib, first->mappings, half->mappings, last->mappings, first->threads,
        half->threads, last->threads, first->descriptors, half->descriptors, last->descriptors);
    printf("\"ms\": {\"pausing\": %.3f, \"destroying\": %.3f, \"making\": %.3f, \"binding\": %.3f, "
           "\"longest\": %.3f}}\n",
           process->times.pausing / nr, process->times.destroying / nr, process->times.making / nr,
           process->times.binding / nr, process->times.longest);
    fflush(stdout);
}

/* ---- orders ---- */

static volatile sig_atomic_t told_to_end;

static void note_end(int signal)
{
    (void)signal;
    told_to_end = 1;
}

static void obey(process_t *process, const char *order)
{
    unsigned incarnation;
    if (strcmp(order, "LEAVE") == 0 && process->phase == RUN) {
        /* A question under way would be answered to a process that is elsewhere. */
        while (launcher_listen(&process->launcher)) {
        }
        begin_to_leave(process);
    } else if (sscanf(order, "BIND %u", &incarnation) == 1 && process->phase == DETACHED) {
        attach(process, incarnation);
    } else if (sscanf(order, "MISLEAD %u", &incarnation) == 1 && process->phase == DETACHED) {
        process->rank.misleads = true;
        attach(process, incarnation);
    } else if (strcmp(order, "TRACK") == 0 && process->phase == RUN) {
        if (userfault_pass(process->orders) != 0) {
            die("no userfaultfd");
        }
    } else if (sscanf(order, "WITH %u", &incarnation) == 1 && process->phase == RUN) {
        /* One rank is away at a time here. */
    } else if (strncmp(order, "LIVES ", 6) == 0 && process->phase == RUN) {
        /* There is no other world. */
    } else if (strncmp(order, "TELL ", 5) == 0) {
        /* It tells nothing. */
    } else if (strcmp(order, "end") == 0 && process->phase == RUN) {
        begin_to_end(process);
    } else {
        die("order %s in phase %d", order, (int)process->phase);
    }
}

/* @timeout_ms: -1: until there is one. */
static void take_orders(process_t *process, int timeout_ms)
{
    struct pollfd wait = {.fd = process->orders, .events = POLLIN};
    while (process->orders >= 0 && poll(&wait, 1, timeout_ms) > 0) {
        char *byte = &process->order[process->order_length];
        if (read(process->orders, byte, 1) != 1) {
            die("nothing gives orders any more");
        }
        if (*byte == '\n') {
            *byte = '\0';
            process->order_length = 0;
            obey(process, process->order);
            return;
        }
        if (++process->order_length == sizeof(process->order)) {
            die("an order too long");
        }
    }
}

/* Without orders the process leaves by itself. */
static void follow_the_clock(process_t *process)
{
    const double since = now_ms() - process->since;
    if (process->orders >= 0 || process->cycles == 0) {
        return;
    }
    if (process->phase == RUN && process->done == process->cycles) {
        begin_to_end(process);
    } else if (process->phase == RUN && since >= (double)process->every_ms) {
        begin_to_leave(process);
    }
}

/* ---- running ---- */

static void make_messages(process_t *process)
{
    for (uint32_t peer = 0; peer < process->rank.size && !process->finishing; peer++) {
        link_t *link = &process->rank.links[peer];
        if (peer != process->rank.self && link_accepts(link)) {
            link_send(link);
        }
    }
}

static void note_own_memory(process_t *process)
{
    if (process->cycles == 0 && process->orders < 0 && process->turns % 4096 == 0) {
        process->last = census_take();
        if (!process->warm && process->turns >= 4 * 4096) {
            process->warm = true;
            process->first = process->last;
        }
    }
}

/* One turn of the program, in any phase but DETACHED. */
static void turn(process_t *process)
{
    lock(process);
    const unsigned events = ucp_worker_progress(process->rank.ucx.worker);
    rank_tend(&process->rank);
    make_messages(process);
    if (process->phase == RUN) {
        take_orders(process, 0);
        follow_the_clock(process);
        if (process->phase == RUN && told_to_end) {
            begin_to_end(process);
        }
    }
    if (process->phase == RUN && any_last(process)) {
        begin_to_end(process);
    } else if (process->phase == PAUSING && rank_all(&process->rank, LINK_PAUSED)) {
        detach(process);
        return;
    } else if (process->phase == BINDING) {
        leave_if_refused(process);
        if (rank_all(&process->rank, LINK_OPEN)) {
            note_bound(process);
        }
    } else if (process->phase == ENDING) {
        end_if_complete(process);
    }
    unlock(process);
    if (++process->turns % 64 == 0 && process->phase != PAUSING) {
        (void)launcher_listen(&process->launcher);
        launcher_ask(&process->launcher);
        launcher_copy_lines(&process->launcher);
    }
    note_own_memory(process);
    if (process->changes) {
        ballast_change(&process->ballast, 1);
    }
    if (events == 0) {
        nanosleep(&(const struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void run(process_t *process)
{
    while (process->phase != ENDED) {
        if (process->phase != DETACHED) {
            turn(process);
        } else if (process->orders >= 0) {
            take_orders(process, -1);
        } else {
            nanosleep(&(const struct timespec){.tv_nsec = process->away_ms * 1000000}, NULL);
            attach(process, process->rank.incarnation + 1);
        }
    }
}

static void begin(process_t *process)
{
    rank_t *rank = &process->rank;
    ucx_init(&rank->ucx);
    open_own_files(process);
    process->before = census_take();
    rank->links = calloc(rank->size, sizeof(*rank->links));
    if (!rank->links) {
        die("no memory");
    }
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        link_init(rank, &rank->links[peer], peer);
    }
    ballast_fill(&process->ballast, process->ballast_mib);
    lanes_open(rank);
    ucx_open(&rank->ucx, link_handlers, LINK_HANDLERS, rank);
    launcher_exchange(&process->launcher, rank);
    lock(process);
    for_links(process, link_connect);
    for_links(process, lanes_connect);
    unlock(process);
    process->since = process->begun = now_ms();
    process->begun_real = clock_ms(CLOCK_REALTIME);
}

static void end(process_t *process)
{
    rank_t *rank = &process->rank;
    lock(process);
    for_links(process, link_detach);
    for (const double begin = now_ms(); rank->closing && now_ms() - begin < 2000;) {
        ucp_worker_progress(rank->ucx.worker);
        rank_tend(rank);
    }
    unlock(process);
    lanes_close(rank);
    ucx_close(&rank->ucx);
    while (launcher_listen(&process->launcher)) {
    }
    ballast_check(&process->ballast);
    print_result(process);
}

static void take_holder(process_t *process)
{
    const char *fd = getenv("MPIR_CVAR_CH4_ZC_DETACH_FD");
    if (!fd) {
        die("it is not held by zc-hold");
    }
    process->orders = process->notices = atoi(fd);
    signal(SIGUSR1, note_end);
}

static void parse(process_t *process, int argc, char **argv)
{
    static const struct option options[] = {
        {"cycles", required_argument, NULL, 'c'},  {"every", required_argument, NULL, 'e'},
        {"away", required_argument, NULL, 'a'},    {"orders", required_argument, NULL, 'o'},
        {"lanes", required_argument, NULL, 'l'},   {"gently", no_argument, NULL, 'g'},
        {"ballast", required_argument, NULL, 'b'}, {"changes", no_argument, NULL, 'C'},
        {"held", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            process->cycles = atol(optarg);
            break;
        case 'e':
            process->every_ms = atol(optarg);
            break;
        case 'a':
            process->away_ms = atol(optarg);
            break;
        case 'b':
            process->ballast_mib = (size_t)atol(optarg);
            break;
        case 'C':
            process->changes = true;
            break;
        case 'l':
            process->rank.lanes_way = strcmp(optarg, "uring") == 0 ? ZCL_WAY_URING : ZCL_WAY_THREAD;
            break;
        case 'g':
            process->rank.by_force = false;
            break;
        case 'h':
            take_holder(process);
            break;
        case 'o':
            if (sscanf(optarg, "%d,%d", &process->orders, &process->notices) == 2) {
                break;
            }
            /* fall through */
        default:
            die("usage: detached_rank RANK SIZE SOCKET [options]");
        }
    }
    if (argc - optind != 3) {
        die("usage: detached_rank RANK SIZE SOCKET [options]");
    }
    process->rank.self = (uint32_t)atoi(argv[optind]);
    process->rank.size = (uint32_t)atoi(argv[optind + 1]);
    launcher_init(&process->launcher, atoi(argv[optind + 2]));
}

int main(int argc, char **argv)
{
    static process_t process = {
        .every_ms = 5,
        .away_ms = 1,
        .orders = -1,
        .notices = -1,
        .rank.by_force = true,
    };
    parse(&process, argc, argv);
    begin(&process);
    run(&process);
    end(&process);
    return 0;
}
