/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank reports to its agent about its calls, looked up in its own profile after each of
 * them: bytes and messages by peer, and time in MPI. Runs under ZC_MIGRATE=observe, where all
 * ranks are of one MPI_COMM_WORLD, and =1, where each has its own.
 *
 *   profile_calls          with 4 ranks; PROFILE_CALLS_FORTRAN names MPICH's library of Fortran
 *                          bindings, whose calls are looked up too
 *   profile_calls child    spawned by it: a process that is no rank of the job
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <zcm/profile.h>
#include <zcm/zcm.h>

enum { RANKS = 4, TAG = 3, NOTHING = 0 };

static int rank, failures;
static MPI_Comm world; /* all ranks of the job */
static const struct zcm_profile *profile;
static char out[4096], in[4096];
static int right, left;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void find_profile(void)
{
    const char *directory = getenv("ZCM_PROFILE_DIR");
    char end[64], path[4096];
    snprintf(end, sizeof end, ".%d.%ld", rank, (long)getpid());
    DIR *d = opendir(directory ? directory : "");
    for (struct dirent *e; d && !profile && (e = readdir(d));) {
        const size_t length = strlen(e->d_name);
        if (length <= strlen(end) || strcmp(e->d_name + length - strlen(end), end) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        const int fd = open(path, O_RDONLY);
        void *at = mmap(NULL, zcm_profile_size(RANKS, RANKS), PROT_READ, MAP_SHARED, fd, 0);
        profile = fd >= 0 && at != MAP_FAILED ? at : NULL;
    }
    if (!profile || profile->magic != ZCM_PROFILE_MAGIC || profile->rank != (uint32_t)rank)
        die("no profile of this rank");
}

/* ---- what has been reported since the last look ---- */

struct sum {
    uint64_t bytes[RANKS], messages[RANKS], others, ring;
};
static struct sum before;
static uint64_t began_ns;

static struct sum look(void)
{
    struct sum now = {.others = profile->counters.others_bytes, .ring = profile->ring_head};
    for (unsigned i = 0; i < ZCM_PROFILE_PEERS; i++) {
        const struct zcm_profile_peer *p = &profile->peers[i];
        if (p->rank_plus_1 > RANKS)
            die("a peer that does not exist");
        if (p->rank_plus_1) {
            now.bytes[p->rank_plus_1 - 1] = p->bytes;
            now.messages[p->rank_plus_1 - 1] = p->messages;
        }
    }
    return now;
}

static void begin(void)
{
    before = look();
    began_ns = now_ns();
}

/* Since begin(): to each rank so many bytes in so many messages, and in the ring nothing else. */
static void check(const char *what, const uint64_t bytes[RANKS], const uint64_t messages[RANKS])
{
    const struct zcm_profile_message *ring = (const struct zcm_profile_message *)(profile + 1);
    const struct sum now = look();
    const uint64_t end_ns = now_ns();
    uint64_t listed[RANKS] = {0};
    int wrong = now.others != before.others;
    for (uint64_t i = before.ring; i < now.ring; i++) {
        const struct zcm_profile_message *m = &ring[i % ZCM_PROFILE_RING];
        wrong |= m->peer >= RANKS || m->time_ns < began_ns || m->time_ns > end_ns;
        if (m->peer < RANKS)
            listed[m->peer]++;
    }
    for (int peer = 0; peer < RANKS; peer++) {
        const uint64_t b = now.bytes[peer] - before.bytes[peer];
        const uint64_t m = now.messages[peer] - before.messages[peer];
        if (b == bytes[peer] && m == messages[peer] && listed[peer] == messages[peer] && !wrong)
            continue;
        failures++;
        fprintf(
            stderr,
            "rank %d: %s: to %d reported %llu bytes in %llu messages (%llu listed%s), sent %llu "
            "in %llu\n",
            rank, what, peer, (unsigned long long)b, (unsigned long long)m,
            (unsigned long long)listed[peer], wrong ? ", nonsense among them" : "",
            (unsigned long long)bytes[peer], (unsigned long long)messages[peer]);
    }
    begin();
}

static void check_only(const char *what, int peer, uint64_t bytes, uint64_t messages)
{
    uint64_t b[RANKS] = {0}, m[RANKS] = {0};
    if (peer >= 0) {
        b[peer] = bytes;
        m[peer] = messages;
    }
    check(what, b, m);
}

/* ---- messages ---- */

typedef int blocking(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int nonblocking(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void messages(void)
{
    const struct {
        const char *name;
        blocking *send;
    } sends[] = {
        {"Send", MPI_Send}, {"Ssend", MPI_Ssend}, {"Rsend", MPI_Rsend}, {"Bsend", MPI_Bsend}};
    const struct {
        const char *name;
        nonblocking *send;
    } starts[] = {{"Isend", MPI_Isend},
                  {"Issend", MPI_Issend},
                  {"Irsend", MPI_Irsend},
                  {"Ibsend", MPI_Ibsend}};
    static char buffer[1 << 16];
    MPI_Request r[2];
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(in, 100 + i, MPI_BYTE, left, TAG, world, &r[0]);
        MPI_Barrier(world); /* reports nothing */
        sends[i].send(out, 100 + i, MPI_BYTE, right, TAG, world);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        check_only(sends[i].name, right, (uint64_t)(100 + i), 1);
        sends[i].send(out, 100, MPI_BYTE, MPI_PROC_NULL, TAG, world);
        check_only(sends[i].name, MPI_PROC_NULL, NOTHING, NOTHING);

        MPI_Irecv(in, 200 + i, MPI_INT, left, TAG, world, &r[0]);
        MPI_Barrier(world);
        starts[i].send(out, 200 + i, MPI_INT, right, TAG, world, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        check_only(starts[i].name, right, 4 * (uint64_t)(200 + i), 1);
        starts[i].send(out, 200, MPI_INT, MPI_PROC_NULL, TAG, world, &r[1]);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        check_only(starts[i].name, MPI_PROC_NULL, NOTHING, NOTHING);
    }
    int size;
    void *gone;
    MPI_Buffer_detach(&gone, &size);

    MPI_Sendrecv(out, 300, MPI_BYTE, right, TAG, in, 300, MPI_BYTE, left, TAG, world,
                 MPI_STATUS_IGNORE);
    check_only("Sendrecv", right, 300, 1);
    MPI_Sendrecv(out, 300, MPI_BYTE, MPI_PROC_NULL, TAG, in, 300, MPI_BYTE, MPI_PROC_NULL, TAG,
                 world, MPI_STATUS_IGNORE);
    check_only("Sendrecv to MPI_PROC_NULL", MPI_PROC_NULL, NOTHING, NOTHING);
    MPI_Sendrecv_replace(in, 301, MPI_BYTE, right, TAG, left, TAG, world, MPI_STATUS_IGNORE);
    check_only("Sendrecv_replace", right, 301, 1);
    MPI_Sendrecv(out, 0, MPI_BYTE, right, TAG, in, 0, MPI_BYTE, left, TAG, world,
                 MPI_STATUS_IGNORE);
    check_only("an empty message", right, 0, 1);
    MPI_Sendrecv(out, 40, MPI_BYTE, rank, TAG, in, 40, MPI_BYTE, rank, TAG, world,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 40, MPI_BYTE, 0, TAG, in, 40, MPI_BYTE, 0, TAG, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    check_only("to itself", rank, NOTHING, NOTHING);

    MPI_Datatype column; /* 5 doubles out of 50 */
    MPI_Type_vector(5, 1, 10, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Sendrecv(out, 1, column, right, TAG, in, 5, MPI_DOUBLE, left, TAG, world,
                 MPI_STATUS_IGNORE);
    check_only("a derived type", right, 40, 1);
    MPI_Type_free(&column);
}

static void persistent(void)
{
    MPI_Request r[4];
    MPI_Send_init(out, 500, MPI_BYTE, right, TAG, world, &r[0]);
    MPI_Recv_init(in, 500, MPI_BYTE, left, TAG, world, &r[1]);
    MPI_Send_init(out, 600, MPI_BYTE, MPI_PROC_NULL, TAG, world, &r[2]);
    MPI_Recv_init(in, 600, MPI_BYTE, MPI_PROC_NULL, TAG, world, &r[3]);
    check_only("Send_init", right, NOTHING, NOTHING);
    for (int i = 0; i < 10; i++) {
        MPI_Startall(4, r);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    }
    check_only("Startall", right, 5000, 10);
    for (int i = 3; i >= 0; i--)
        MPI_Start(&r[i]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    check_only("Start", right, 500, 1);
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&r[i]);
    /* The same handles come again, for something else. */
    MPI_Recv_init(in, 50, MPI_BYTE, right, TAG, world, &r[0]);
    MPI_Ssend_init(out, 50, MPI_BYTE, left, TAG, world, &r[1]);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    check_only("after Request_free", left, 50, 1);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void communicators(void)
{
    MPI_Comm reversed, half, bridge, copy, both;
    MPI_Comm_split(world, 0, -rank, &reversed);
    MPI_Sendrecv(out, 70, MPI_BYTE, RANKS - 1 - right, TAG, in, 70, MPI_BYTE, RANKS - 1 - left, TAG,
                 reversed, MPI_STATUS_IGNORE);
    check_only("a communicator with other numbers", right, 70, 1);

    /* Ranks 0 and 2 on one side, 1 and 3 on the other; the leaders know each other from there. */
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, reversed, RANKS - 1 - (rank + 1) % 2, TAG, &bridge);
    const int opposite = rank ^ 1;
    MPI_Sendrecv(out, 80, MPI_BYTE, rank / 2, TAG, in, 80, MPI_BYTE, rank / 2, TAG, bridge,
                 MPI_STATUS_IGNORE);
    check_only("an intercommunicator", opposite, 80, 1);
    MPI_Comm_dup(bridge, &copy);
    MPI_Sendrecv(out, 81, MPI_BYTE, rank / 2, TAG, in, 81, MPI_BYTE, rank / 2, TAG, copy,
                 MPI_STATUS_IGNORE);
    check_only("a copy of it", opposite, 81, 1);
    MPI_Bcast(out, 10, MPI_BYTE, rank % 2 ? 1 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL, copy);
    {
        const uint64_t two[RANKS] = {0, 10, 0, 10}, one[RANKS] = {0, 1, 0, 1}, none[RANKS] = {0};
        check("a broadcast to the other side", rank == 2 ? two : none, rank == 2 ? one : none);
    }
    /* Odd ranks come first then: 1 3 0 2. */
    MPI_Intercomm_merge(bridge, rank % 2 == 0, &both);
    MPI_Sendrecv(out, 82, MPI_BYTE, right / 2 + 2 * (right % 2 == 0), TAG, in, 82, MPI_BYTE,
                 left / 2 + 2 * (left % 2 == 0), TAG, both, MPI_STATUS_IGNORE);
    check_only("both sides in one", right, 82, 1);
    MPI_Comm_free(&both);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
}

/* ---- every way to a communicator ---- */

/* The rank of every process that can be sent to on @comm. begin() comes after it. */
static int members_of(MPI_Comm comm, int ranks[RANKS])
{
    int size, is_inter;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter)
        MPI_Comm_remote_size(comm, &size);
    else
        MPI_Comm_size(comm, &size);
    MPI_Allgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, comm);
    return size;
}

/* To each of them goes one message, which is reported with its rank. Frees @comm. */
static void check_members(const char *what, MPI_Comm comm)
{
    int ranks[RANKS], others;
    uint64_t bytes[RANKS] = {0}, messages_sent[RANKS] = {0};
    MPI_Request r[2 * RANKS];
    static char from[RANKS][RANKS + 1];
    if (comm == MPI_COMM_NULL)
        return;
    others = members_of(comm, ranks);
    begin();
    for (int i = 0; i < others; i++) {
        MPI_Irecv(from[i], (int)sizeof from[i], MPI_BYTE, i, TAG, comm, &r[i]);
        MPI_Isend(out, 1 + ranks[i], MPI_BYTE, i, TAG, comm, &r[others + i]);
        if (ranks[i] != rank) {
            bytes[ranks[i]] += (uint64_t)(1 + ranks[i]);
            messages_sent[ranks[i]]++;
        }
    }
    MPI_Waitall(2 * others, r, MPI_STATUSES_IGNORE);
    check(what, bytes, messages_sent);
    MPI_Comm_free(&comm);
}

/* Those of @ranks in the order given: a communicator in them, MPI_COMM_NULL elsewhere. */
static MPI_Comm some(const int *ranks, int count)
{
    MPI_Group all, group;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, count, ranks, &group);
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank)
            MPI_Comm_create_group(world, group, TAG, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    return comm;
}

static void intracommunicators(void)
{
    MPI_Comm comm, grid, bridge;
    MPI_Request request;
    MPI_Group all, two;
    const int sizes[] = {2, 2}, periods[] = {0, 1}, kept[] = {0, 1}, pair[] = {3, 1};
    const int index[] = {1, 2, 3, 4}, edges[] = {1, 0, 3, 2};
    const int one = 1;

    MPI_Comm_dup(world, &comm);
    check_members("Comm_dup", comm);
    MPI_Comm_idup(world, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_members("Comm_idup", comm);
    MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &comm);
    check_members("Comm_dup_with_info", comm);
    MPI_Comm_split(world, rank == 2, -rank, &comm);
    check_members("Comm_split", comm);
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &comm);
    check_members("Comm_split_type", comm);
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 2, pair, &two);
    MPI_Comm_create(world, two, &comm);
    check_members("Comm_create", comm);
    MPI_Group_free(&two);
    MPI_Group_free(&all);
    check_members("Comm_create_group", some((const int[]){2, 0, 3}, 3));
    MPI_Cart_create(world, 2, sizes, periods, 1, &grid);
    MPI_Cart_sub(grid, kept, &comm);
    check_members("Cart_sub", comm);
    check_members("Cart_create", grid);
    MPI_Graph_create(world, RANKS, index, edges, 1, &comm);
    check_members("Graph_create", comm);
    /* Open MPI 4.1 cannot reorder what is on several hosts. */
    MPI_Dist_graph_create(world, 1, &rank, &one, &right, &one, MPI_INFO_NULL, 0, &comm);
    check_members("Dist_graph_create", comm);
    MPI_Dist_graph_create_adjacent(world, 1, &left, &one, 1, &right, &one, MPI_INFO_NULL, 0, &comm);
    check_members("Dist_graph_create_adjacent", comm);
    MPI_Comm_split(world, rank == 0, -rank, &comm);
    MPI_Intercomm_create(comm, 0, world, rank == 0 ? 3 : 0, TAG, &bridge);
    MPI_Comm_free(&comm);
    MPI_Intercomm_merge(bridge, rank == 0, &comm);
    check_members("Intercomm_merge", comm);
    MPI_Comm_idup(bridge, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_members("Comm_idup of an intercommunicator", comm);
    MPI_Comm_split(bridge, rank == 1, rank,
                   &comm); /* with no rank on the side of rank 0 for rank 1 */
    check_members("Comm_split of an intercommunicator", comm);
    MPI_Comm_free(&bridge);
#if MPI_VERSION >= 4
    MPI_Comm_idup_with_info(world, MPI_INFO_NULL, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_members("Comm_idup_with_info", comm);
    /* MPICH 4.0.2 makes these of members of one world only. */
    if (strcmp(getenv("ZC_MIGRATE"), "observe") == 0) {
        MPI_Group mine, theirs;
        const int side[2][2] = {{2, 0}, {1, 3}};
        MPI_Comm_group(world, &all);
        MPI_Group_incl(all, 2, side[rank % 2], &mine);
        MPI_Group_incl(all, 2, side[(rank + 1) % 2], &theirs);
        MPI_Comm_create_from_group(mine, rank % 2 ? "odd" : "even", MPI_INFO_NULL,
                                   MPI_ERRORS_ARE_FATAL, &comm);
        check_members("Comm_create_from_group", comm);
        MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "both", MPI_INFO_NULL,
                                         MPI_ERRORS_ARE_FATAL, &comm);
        check_members("Intercomm_create_from_groups", comm);
        MPI_Group_free(&mine);
        MPI_Group_free(&theirs);
        MPI_Group_free(&all);
    }
#endif
}

/* What the two sides of an intercommunicator are made of is not the same for both. */
static void sides(void)
{
    MPI_Comm local = MPI_COMM_SELF, comm;
    MPI_Request request;

    /* A master, which has not made a communicator for it, and its workers, which have. */
    MPI_Comm_split(world, rank == 0 ? MPI_UNDEFINED : 0, rank, rank == 0 ? &comm : &local);
    MPI_Intercomm_create(local, 0, world, rank == 0 ? 1 : 0, TAG, &comm);
    check_members("Intercomm_create, one side MPI_COMM_SELF", comm);
    if (rank != 0)
        MPI_Comm_free(&local);

    /* One side by one call, the other by another. */
    if (rank < 2) {
        MPI_Comm half = some((const int[]){1, 0}, 2);
        MPI_Comm_idup(half, &local, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&half);
    } else {
        local = some((const int[]){2, 3}, 2);
    }
    MPI_Intercomm_create(local, 0, world, rank < 2 ? 2 : 1, TAG, &comm);
    check_members("Intercomm_create, one side by Comm_idup", comm);
    MPI_Comm_free(&local);
    if (rank < 2) {
        MPI_Comm half = some((const int[]){0, 1}, 2);
        const int one = 1, other = 1 - rank;
        MPI_Dist_graph_create(half, 1, &rank, &one, &other, &one, MPI_INFO_NULL, 0, &local);
        MPI_Comm_free(&half);
    } else {
        local = some((const int[]){3, 2}, 2);
    }
    MPI_Intercomm_create(local, 1, world, rank < 2 ? 2 : 1, TAG, &comm);
    check_members("Intercomm_create, one side by Dist_graph_create", comm);
    MPI_Comm_free(&local);
}

/* By the name of a port that one side sends the other, and by a socket. */
static void connections(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm local = MPI_COMM_SELF, comm;
    MPI_Comm_split(world, rank == 0 ? MPI_UNDEFINED : 0, -rank, rank == 0 ? &comm : &local);
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, world);
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, local, &comm);
    check_members("Comm_accept and Comm_connect", comm);
    if (rank == 0)
        MPI_Close_port(port);
    else
        MPI_Comm_free(&local);

    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "profile_calls.join"};
    int fd = rank < 2 ? socket(AF_UNIX, SOCK_STREAM, 0) : -1;
    if (rank == 0 &&
        (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0))
        die("cannot listen");
    MPI_Barrier(world);
    if (rank == 1 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect");
    if (rank < 2) {
        const int joined = rank == 0 ? accept(fd, NULL, NULL) : fd;
        MPI_Comm_join(joined, &comm);
        check_members("Comm_join", comm);
        close(joined);
        if (rank == 0)
            close(fd);
    }
}

/* Around a ring, to both sides; and to the next one alone. */
static void neighbours(void)
{
    MPI_Comm circle, line;
    uint64_t b[RANKS] = {0}, m[RANKS] = {0};
    const int size = RANKS, periodic = 1;
    MPI_Cart_create(world, 1, &size, &periodic, 0, &circle);
    MPI_Dist_graph_create_adjacent(world, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &line);
    begin();
    MPI_Neighbor_alltoall(out, 5, MPI_BYTE, in, 5, MPI_BYTE, circle);
    b[left] = b[right] = 5;
    m[left] = m[right] = 1;
    check("Neighbor_alltoall", b, m);
    MPI_Neighbor_allgather(out, 6, MPI_BYTE, in, 6, MPI_BYTE, line);
    check_only("Neighbor_allgather", right, 6, 1);
    const int count = 7, place = 0;
    MPI_Neighbor_alltoallv(out, &count, &place, MPI_BYTE, in, &count, &place, MPI_BYTE, line);
    check_only("Neighbor_alltoallv", right, 7, 1);
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Allgather_init(&rank, 1, MPI_INT, in, 1, MPI_INT, world, MPI_INFO_NULL, &request);
    check_only("Allgather_init", right, NOTHING, NOTHING);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_only("started collectives", right, 36, 3);
    MPI_Request_free(&request);
#endif
    MPI_Comm_free(&line);
    MPI_Comm_free(&circle);
}

static void collectives(void)
{
    const uint64_t none[RANKS] = {0};
    uint64_t b[RANKS], m[RANKS];
    int value = rank, sum[RANKS] = {0};
#define ALL(bytes_, messages_)                                                                     \
    for (int peer = 0; peer < RANKS; peer++) {                                                     \
        b[peer] = peer == rank ? 0 : (bytes_);                                                     \
        m[peer] = peer == rank ? 0 : (messages_);                                                  \
    }
    MPI_Bcast(out, 10, MPI_BYTE, 1, world); /* from 1 to 2 and 3, from 2 to 0 */
    {
        const uint64_t b1[RANKS] = {0, 0, 10, 10}, m1[RANKS] = {0, 0, 1, 1};
        const uint64_t b2[RANKS] = {10}, m2[RANKS] = {1};
        check("Bcast",
              rank == 1   ? b1
              : rank == 2 ? b2
                          : none,
              rank == 1   ? m1
              : rank == 2 ? m2
                          : none);
    }
    MPI_Reduce(&value, sum, 1, MPI_INT, MPI_SUM, 1, world); /* the same way back */
    check_only("Reduce", rank == 1 ? MPI_PROC_NULL : rank == 0 ? 2 : 1, 4, 1);
    MPI_Allreduce(&value, sum, 1, MPI_INT, MPI_SUM, world);
    memset(b, 0, sizeof b);
    memset(m, 0, sizeof m);
    b[rank ^ 1] = b[rank ^ 2] = 4;
    m[rank ^ 1] = m[rank ^ 2] = 1;
    check("Allreduce", b, m);
    MPI_Allgather(&value, 1, MPI_INT, sum, 1, MPI_INT, world);
    check_only("Allgather", right, 12, 1);
    MPI_Alltoall(out, 9, MPI_BYTE, in, 9, MPI_BYTE, world);
    ALL(9, 1)
    check("Alltoall", b, m);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 9, MPI_BYTE, world);
    check("Alltoall in place", b, m);
    if (rank == 2)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 8, MPI_BYTE, 2, world);
    else
        MPI_Gather(out, 8, MPI_BYTE, NULL, 0, MPI_DATATYPE_NULL, 2, world);
    check_only("Gather", rank == 2 ? MPI_PROC_NULL : 2, 8, 1);
    if (rank == 2)
        MPI_Scatter(in, 8, MPI_BYTE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 2, world);
    else
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, in, 8, MPI_BYTE, 2, world);
    ALL(8, 1)
    check("Scatter", rank == 2 ? b : none, rank == 2 ? m : none);
    int counts[RANKS], places[RANKS];
    for (int peer = 0; peer < RANKS; peer++) {
        counts[peer] = 10 * (rank + peer);
        places[peer] = 100 * peer;
    }
    MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, world);
    ALL((uint64_t)(10 * (rank + peer)), 1)
    check("Alltoallv", b, m);
    MPI_Datatype types[RANKS];
    for (int peer = 0; peer < RANKS; peer++)
        types[peer] = MPI_BYTE;
    MPI_Alltoallw(out, counts, places, types, in, counts, places, types, world);
    check("Alltoallw", b, m);
#undef ALL
    MPI_Request request;
    MPI_Iallgather(&value, 1, MPI_INT, sum, 1, MPI_INT, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_only("Iallgather", right, 12, 1);
    neighbours();
}

/* ---- time ---- */

static void spin_ms(double ms)
{
    const uint64_t end = now_ns() + (uint64_t)(ms * 1e6);
    while (now_ns() < end)
        continue;
}

/* Between so many and so many ms are reported. A tick of the coarse clock is 10 ms at most. */
static void check_time(const char *what, uint64_t since_ns, double least_ms, double most_ms)
{
    const double reported_ms = (double)(profile->counters.mpi_ns - since_ns) / 1e6;
    if (reported_ms >= least_ms - 10 && reported_ms <= most_ms + 10)
        return;
    failures++;
    fprintf(stderr, "rank %d: %s: reported %.1f ms in MPI, not %.1f to %.1f\n", rank, what,
            reported_ms, least_ms, most_ms);
}

static void times(void)
{
    MPI_Barrier(world);
    uint64_t before_ns = profile->counters.mpi_ns;
    spin_ms(100);
    check_time("no call", before_ns, 0, -10); /* nothing at all */

    MPI_Barrier(world);
    before_ns = profile->counters.mpi_ns;
    uint64_t start = now_ns();
    if (rank == 0) {
        spin_ms(300);
        check_time("the one that is waited for", before_ns, 0, -10);
        for (int peer = 1; peer < RANKS; peer++)
            MPI_Send(out, 1, MPI_BYTE, peer, TAG, world);
    } else {
        MPI_Recv(in, 1, MPI_BYTE, 0, TAG, world, MPI_STATUS_IGNORE);
        const double passed = (double)(now_ns() - start) / 1e6;
        check_time("one long wait", before_ns, passed, passed);
    }

    /* Many short calls: seen as often as ticks come in one, so this is a statistic. */
    MPI_Barrier(world);
    before_ns = profile->counters.mpi_ns;
    start = now_ns();
    int there = 0;
    while (now_ns() - start < 400000000u)
        for (int i = 0; i < 1000; i++)
            MPI_Iprobe(MPI_ANY_SOURCE, TAG, world, &there, MPI_STATUS_IGNORE);
    const double passed = (double)(now_ns() - start) / 1e6;
    check_time("many short probes", before_ns, 0.5 * passed, passed);
}

/* ---- others ---- */

/* Processes that do not count are on one side alone, or in between. */
static void strangers(char *program)
{
    MPI_Comm between, both, copy;
    char *arguments[] = {"child", NULL};
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &between, MPI_ERRCODES_IGNORE);
    begin();
    MPI_Intercomm_merge(between, 0, &both);
    MPI_Comm_dup(both, &copy);
    if (rank == 0)
        MPI_Send(out, 10, MPI_BYTE, RANKS, TAG, copy);
    MPI_Barrier(copy);
    check_only("to a stranger", MPI_PROC_NULL, NOTHING, NOTHING);
    MPI_Sendrecv(out, 11, MPI_BYTE, right, TAG, in, 11, MPI_BYTE, left, TAG, copy,
                 MPI_STATUS_IGNORE);
    check_only("among strangers", right, 11, 1);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&both);
    MPI_Comm_free(&between);
}

/* ---- Fortran ---- */

static void *fortran_call(void *library, const char *name)
{
    void *call = library ? dlsym(library, name) : NULL;
    if (!call)
        die(dlerror());
    return call;
}

/* What a Fortran compiler makes of `call MPI_Send(...)`. */
static void fortran(const char *path)
{
    typedef void send(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                      MPI_Fint *);
    typedef void sum(void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
    if (!path)
        return;
    void *library = dlopen(path, RTLD_LAZY); /* it wants MPI-IO, which there may not be */
    send *mpi_send = (send *)fortran_call(library, "mpi_send_");
    sum *mpi_allreduce = (sum *)fortran_call(library, "mpi_allreduce_");
    MPI_Fint count = 100, one = 1, to = right, tag = TAG, error = -1;
    MPI_Fint all_ranks = MPI_Comm_c2f(world), bytes = MPI_Type_c2f(MPI_BYTE);
    MPI_Fint type = MPI_Type_c2f(MPI_INT), add = MPI_Op_c2f(MPI_SUM);
    MPI_Request request;

    MPI_Irecv(in, 100, MPI_BYTE, left, TAG, world, &request);
    begin();
    mpi_send(out, &count, &bytes, &to, &tag, &all_ranks, &error);
    check_only("Fortran's Send", right, 100, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int mine = rank, all = -1;
    begin();
    mpi_allreduce(&mine, &all, &one, &type, &add, &all_ranks, &error);
    uint64_t sent[RANKS] = {0}, messages_sent[RANKS] = {0};
    sent[rank ^ 1] = sent[rank ^ 2] = sizeof mine;
    messages_sent[rank ^ 1] = messages_sent[rank ^ 2] = 1;
    check("Fortran's Allreduce", sent, messages_sent);
    if (error != MPI_SUCCESS || all != 0 + 1 + 2 + 3)
        die("wrong sum");
    if (rank == 0)
        printf("Fortran calls were counted\n");
}

static int be_a_stranger(void)
{
    MPI_Comm parent, both, copy;
    MPI_Comm_get_parent(&parent);
    MPI_Intercomm_merge(parent, 1, &both);
    MPI_Comm_dup(both, &copy);
    MPI_Recv(in, 10, MPI_BYTE, 0, TAG, copy, MPI_STATUS_IGNORE);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&both);
    MPI_Comm_free(&parent);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    int size, all = 0;
    MPI_Init(&argc, &argv);
    if (argc > 1)
        return be_a_stranger();
    if (zcm_init(&argc, &argv) != 0)
        die("cannot start");
    world = zcm_world();
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    if (size != RANKS)
        die("4 ranks are needed");
    right = (rank + 1) % RANKS;
    left = (rank + RANKS - 1) % RANKS;
    find_profile();
    begin();
    messages();
    persistent();
    communicators();
    intracommunicators();
    sides();
    connections();
    collectives();
    times();
    strangers(argv[0]);
    fortran(getenv("PROFILE_CALLS_FORTRAN"));
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, world);
    if (rank == 0) {
        printf("%s\n", all ? "WRONG" : "all right");
        fflush(stdout);
    }
    zcm_finalize();
    MPI_Finalize();
    return all != 0;
}
