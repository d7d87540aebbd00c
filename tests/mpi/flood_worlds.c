/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood_worlds WHAT [MESSAGES [ROUNDS]]: many short messages between two MPI_COMM_WORLDs come
 * before their receives. All arrive, right and in order, and what waits takes no more than the
 * budget, $MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET in MiB. WHAT, of spawned processes and their parents:
 *
 *   up         they send to rank 0 of their parents, which probes for a tag that never comes
 *   down       each of their parents sends to one of them, which probes likewise
 *   both       each of them and a parent send to each other, and only then receive
 *   greeting   all send a little to all and only then receive, which needs credit from the first
 *              message on; ROUNDS times, so that the budget would be used up if connections
 *              that end did not give it back
 *   rejoin     a child connects to its parent once more, which has given up their first connection
 *              while the child has not: credit is returned both ways all the same
 *   retry      the same after a connection that was given up before it was accepted
 *   die        a child and its parent flood each other; the child is killed before either receives.
 *              The parent's sends end, its receives get what has come, or an error
 */
#include "check.h"
#include "counter.h"
#include <signal.h>

enum { TAGS = 100, NEVER = TAGS, PORT = TAGS + 1, CHILDREN = 2, FEW = 100, STEPS = 200 };
static uint64_t budget;
static struct counter high, held, growth;

static void send_words(MPI_Comm comm, int to, long messages)
{
    for (uint64_t i = 0; i < (uint64_t)messages; i++)
        MPI_Send(&i, 8, MPI_BYTE, to, (int)(i % TAGS), comm);
}

static void receive_words(MPI_Comm comm, int from, long messages)
{
    for (uint64_t i = 0; i < (uint64_t)messages; i++) {
        uint64_t word = ~i;
        MPI_Recv(&word, 8, MPI_BYTE, from, (int)(i % TAGS), comm, MPI_STATUS_IGNORE);
        CHECK(word == i, "from %d: %llu instead of %llu", from, (unsigned long long)word,
              (unsigned long long)i);
    }
}

/* Until nothing more seems to come. */
static void probe_in_vain(MPI_Comm comm, int ms)
{
    check_nothing_comes(comm, NEVER, ms);
}

static void check_budget(int flooded)
{
    const unsigned long long bytes = counter_read(&high);
    CHECK(bytes <= budget, "%llu bytes waited, budget %llu", bytes, (unsigned long long)budget);
    /* A window that has doubled until there was no room, while the other senders waited for some.
     */
    CHECK(!flooded || bytes >= budget / 4, "%llu bytes waited: no flood", bytes);
    CHECK(!flooded || counter_read(&held) > 0, "no sender was held: no flood");
}

/* From @first to before @end of the other side. */
static void receive_late(MPI_Comm comm, int first, int end, long messages)
{
    probe_in_vain(comm, 1000);
    for (int from = first; from < end; from++)
        receive_words(comm, from, messages);
    check_budget(1);
}

static void both_ways(MPI_Comm comm, int peer, long messages)
{
    uint64_t *words = check_malloc((size_t)messages * sizeof *words);
    MPI_Request *requests = check_malloc((size_t)messages * sizeof *requests);
    for (long i = 0; i < messages; i++) {
        words[i] = (uint64_t)i;
        MPI_Isend(&words[i], 8, MPI_BYTE, peer, (int)(i % TAGS), comm, &requests[i]);
    }
    receive_words(comm, peer, messages);
    MPI_Waitall((int)messages, requests, MPI_STATUSES_IGNORE);
    check_budget(0);
    free(requests);
    free(words);
}

static void greeting(MPI_Comm comm, int peers)
{
    for (int to = 0; to < peers; to++)
        send_words(comm, to, FEW);
    for (int from = 0; from < peers; from++)
        receive_words(comm, from, FEW);
    check_budget(0);
}

/* ---- connections that end on one side first ---- */

/* Every message waits a moment for its receive; were there no credit, each would be held. */
static void step_by_step(MPI_Comm comm)
{
    uint64_t words[FEW];
    MPI_Request requests[FEW];
    const unsigned long long before = counter_read(&held);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < FEW; i++) {
            words[i] = (uint64_t)i;
            MPI_Isend(&words[i], 8, MPI_BYTE, 0, i % TAGS, comm, &requests[i]);
        }
        probe_in_vain(comm, 1);
        receive_words(comm, 0, FEW);
        MPI_Waitall(FEW, requests, MPI_STATUSES_IGNORE);
    }
    const unsigned long long sum = counter_read(&held) - before;
    CHECK(sum < STEPS * FEW / 4, "%llu of %d messages were held", sum, STEPS * FEW);
}

/* With the last connection all that windows have grown by is given back. */
static void check_growth(void)
{
    const double end = MPI_Wtime() + 20;
    int there;
    while (counter_read(&growth) > 0 && MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    CHECK(counter_read(&growth) == 0, "windows of no process have %llu bytes",
          counter_read(&growth));
}

static void connect_in_vain(const char *port)
{
    MPI_Comm none;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &none) != MPI_SUCCESS,
          "accepted by a process that sleeps");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

enum { FILE_NAME_BYTES = 64, PATIENCE_S = 60 };

static void connect_again(int is_retry, MPI_Comm parent)
{
    char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES];
    MPI_Comm across;
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, PORT, parent, MPI_STATUS_IGNORE);
    MPI_Recv(name, sizeof name, MPI_CHAR, 0, PORT, parent, MPI_STATUS_IGNORE);
    MPI_Ssend(NULL, 0, MPI_BYTE, 0, PORT, parent);
    if (is_retry) {
        MPI_Comm_disconnect(&parent);
        connect_in_vain(port);
        CHECK(unlink(name) == 0, "no %s", name);
    } else {
        check_sleep_ms(300);
    }
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    step_by_step(across);
    MPI_Comm_disconnect(&across);
    if (!is_retry)
        MPI_Comm_disconnect(&parent);
    check_growth();
}

/* Outside MPI: the child removes it when it has connected in vain. */
static void await_removal(const char *name)
{
    for (const double end = MPI_Wtime() + PATIENCE_S; access(name, F_OK) == 0; check_sleep_ms(1))
        CHECK(MPI_Wtime() < end, "%s is still there", name);
}

static void accept_again(int is_retry, MPI_Comm child)
{
    char port[MPI_MAX_PORT_NAME], name[FILE_NAME_BYTES] = "/tmp/zc-flood-worlds-XXXXXX";
    MPI_Comm across;
    const int fd = mkstemp(name);
    CHECK(fd >= 0, "cannot make %s", name);
    close(fd);
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, PORT, child);
    MPI_Send(name, sizeof name, MPI_CHAR, 0, PORT, child);
    MPI_Recv(NULL, 0, MPI_BYTE, 0, PORT, child, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&child);
    if (is_retry)
        await_removal(name);
    else
        unlink(name);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across);
    step_by_step(across);
    MPI_Comm_disconnect(&across);
    MPI_Close_port(port);
    check_growth();
}

/* ---- a process that is killed ---- */

/* As many as go without waiting, and more. */
static MPI_Request *flood(MPI_Comm comm, long messages)
{
    uint64_t *words = check_malloc((size_t)messages * sizeof *words);
    MPI_Request *requests = check_malloc((size_t)messages * sizeof *requests);
    for (long i = 0; i < messages; i++) {
        words[i] = (uint64_t)i;
        MPI_Isend(&words[i], 8, MPI_BYTE, 0, (int)(i % TAGS), comm, &requests[i]);
    }
    return requests; /* both live until the process ends */
}

static void be_killed(MPI_Comm parent, long messages)
{
    (void)flood(parent, messages);
    probe_in_vain(parent, 1000);
    raise(SIGKILL);
}

static void survive(MPI_Comm child, long messages)
{
    long right = 0, wrong = 0, unsent = 0;
    MPI_Comm_set_errhandler(child, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request *requests = flood(child, messages);
    check_sleep_ms(2500);
    probe_in_vain(child, 500);
    for (long i = 0; i < messages; i++)
        unsent += MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS;
    CHECK(unsent > 0 && unsent < messages, "%ld of %ld sends ended with an error", unsent,
          messages);
    for (int there = 1; there;) {
        const long i = right + wrong;
        uint64_t word = ~0ULL;
        MPI_Iprobe(0, (int)(i % TAGS), child, &there, MPI_STATUS_IGNORE);
        if (!there)
            break;
        if (MPI_Recv(&word, 8, MPI_BYTE, 0, (int)(i % TAGS), child, MPI_STATUS_IGNORE)) {
            wrong++;
        } else {
            right++;
            CHECK(word == (uint64_t)i, "%llu instead of %ld", (unsigned long long)word, i);
        }
    }
    CHECK(right > 0 && wrong > 0, "%ld messages came, %ld are lost", right, wrong);
    printf("%ld of %ld sends ended with an error; %ld messages came, %ld are lost\n", unsent,
           messages, right, wrong);
    MPI_Comm_disconnect(&child);
    check_growth();
    printf("the parent has survived\n");
    fflush(stdout);
}

static void exchange(const char *what, MPI_Comm comm, int is_child, long messages)
{
    int peers;
    MPI_Comm_remote_size(comm, &peers);
    if (strcmp(what, "up") == 0 && is_child)
        send_words(comm, 0, messages);
    else if (strcmp(what, "up") == 0 && check_rank == 0)
        receive_late(comm, 0, peers, messages);
    else if (strcmp(what, "down") == 0 && is_child && check_rank < peers)
        receive_late(comm, check_rank, check_rank + 1, messages);
    else if (strcmp(what, "down") == 0 && check_rank < peers)
        send_words(comm, check_rank, messages);
    else if (strcmp(what, "both") == 0 && check_rank < peers)
        both_ways(comm, check_rank, messages);
    else if (strcmp(what, "greeting") == 0)
        greeting(comm, peers);
}

/* Those that end the connection themselves. True: it was one. */
static int ends(const char *what, MPI_Comm comm, int is_child, long messages)
{
    const int is_retry = strcmp(what, "retry") == 0;
    if (strcmp(what, "die") == 0)
        is_child ? be_killed(comm, messages) : survive(comm, messages);
    else if (is_retry || strcmp(what, "rejoin") == 0)
        is_child ? connect_again(is_retry, comm) : accept_again(is_retry, comm);
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc > 1, "flood_worlds WHAT [MESSAGES [ROUNDS]]");
    const char *what = argv[1], *limit = getenv("MPIR_CVAR_CH4_ZC_UNEXPECTED_BUDGET");
    const long messages = argc > 2 ? atol(argv[2]) : 50000;
    const int rounds = argc > 3 ? atoi(argv[3]) : 1;
    budget = limit && strcmp(limit, "inf") ? strtoull(limit, NULL, 10) << 20 : UINT64_MAX;
    high = counter_open_class("unexpected_memory_high_water", MPI_T_PVAR_CLASS_LEVEL);
    held = counter_open("senders_held");
    growth = counter_open_class("window_growth", MPI_T_PVAR_CLASS_LEVEL);

    MPI_Comm_get_parent(&other);
    if (other != MPI_COMM_NULL) {
        if (!ends(what, other, 1, messages)) {
            exchange(what, other, 1, messages);
            MPI_Comm_disconnect(&other);
        }
        return check_finish();
    }
    const int alone =
        strcmp(what, "rejoin") == 0 || strcmp(what, "retry") == 0 || strcmp(what, "die") == 0;
    for (int i = 0; i < rounds; i++) {
        CHECK(MPI_Comm_spawn(argv[0], argv + 1, alone ? 1 : CHILDREN, MPI_INFO_NULL, 0,
                             MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE) == MPI_SUCCESS,
              "spawn %d", i);
        if (!ends(what, other, 0, messages)) {
            exchange(what, other, 0, messages);
            MPI_Comm_disconnect(&other);
        }
    }
    return check_finish();
}
