/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that knows nothing of worlds that change: it uses MPI_COMM_WORLD, makes what it likes
 * of it, and runs its whole initialisation when it is resumed, too.
 *
 *   communicators MODE [FILE]   ends once FILE exists
 *
 *   all       communicators of every kind, groups, attributes, error handlers, names, info and
 *             persistent requests, all verified in each iteration
 *   input     rank 0 draws the input, and the initialisation distributes it in many ways
 *   late      a communicator is made after the first safe point; its handle is registered data
 *   library   a library has a communicator of its own
 *   irecv     rank 1 has a receive posted, until FILE.go exists
 *   isend     rank 1 does not wait for a send, until FILE.go exists
 *   freed     requests outlive their communicators: one of them until FILE.go exists
 *   derived   a message crosses each safe point on a communicator that is not MPI_COMM_WORLD
 *   window    a window is open
 *   file      a file is open
 *   released  a window and a file are open, and closed for a move
 *   stranger  a communicator with a spawned process, until FILE.go exists
 *   spawns    a process that has resumed a rank spawns two commands at once
 *   differs   a resumed process does something else
 *   persists  a persistent request is made after the first safe point
 *   caches    attributes are set after the first safe point
 *   recaches  the same, and deleted and set again by the functions of zcm_on_rebuild()
 *   plain     no call of libzcm at all
 *   child     what `stranger` spawns, and one of the commands of `spawns`
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

#include "check.h"

enum { TAG = 4, RANKS = 4 };

static int rank, ranks;
static const char *stop_file;

static void sleep_ms(double ms)
{
    struct timespec span = {.tv_sec = (time_t)(ms / 1e3), .tv_nsec = (long)(ms * 1e6) % 1000000000};
    nanosleep(&span, NULL);
}

static int exists(const char *suffix)
{
    char path[4096];
    int there = 0;
    snprintf(path, sizeof path, "%s%s", stop_file, suffix);
    if (rank == 0)
        there = access(path, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return there;
}

/* One more safe point, unless the test has had enough. */
static int goes_on(void)
{
    sleep_ms(2);
    if (exists(""))
        return 0;
    CHECK(zcm_safe_point() == 0, "safe point");
    return 1;
}

/* Ranks of the world that are in @comm, by their ranks there; on the other side, if it has one. */
static void members(MPI_Comm comm, int found[RANKS], int *count)
{
    int inter;
    MPI_Comm_test_inter(comm, &inter);
    if (inter)
        MPI_Comm_remote_size(comm, count);
    else
        MPI_Comm_size(comm, count);
    MPI_Allgather(&rank, 1, MPI_INT, found, 1, MPI_INT, comm);
}

/* ---- communicators of every kind ---- */

enum { MOST = 24 };

static struct {
    const char *what;
    MPI_Comm comm;
    int members[RANKS], count, rank;
} made[MOST];
static int made_count;
static int errors_seen, copies, deletions, mark;
static MPI_Comm failed_on;
static MPI_Request ring[2], sum_request = MPI_REQUEST_NULL;
static int ring_out, ring_in, sum_out, sum_in;

static MPI_Comm keep(const char *what, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return comm;
    CHECK(made_count < MOST, "more communicators than expected");
    made[made_count].what = what;
    made[made_count].comm = comm;
    members(comm, made[made_count].members, &made[made_count].count);
    MPI_Comm_rank(comm, &made[made_count].rank);
    made_count++;
    return comm;
}

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)key;
    (void)extra;
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    CHECK(value == &mark, "another attribute is deleted");
    deletions++;
    return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    failed_on = *comm;
    errors_seen++;
}

static int key;

static void make_communicators(void)
{
    const int sizes[] = {2, 2}, periods[] = {0, 1}, kept[] = {0, 1}, odd[] = {3, 1};
    const int index[] = {1, 2, 3, 4}, edges[] = {1, 0, 3, 2};
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, one = 7, two = 8;
    MPI_Comm comm, grid, half, inter;
    MPI_Group all, pair;
    MPI_Request request;
    MPI_Info info;

    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &mark);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(keep("dup", comm), "the copy");
    MPI_Info_create(&info);
    MPI_Info_set(info, "zcm_test", "kept");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Comm_idup(comm, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    keep("idup", comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    keep("split", half);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 0, rank, &comm);
    keep("split without rank 2", comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
    MPI_Comm_free(&comm); /* who shares memory changes with a move */
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, odd, &pair);
    MPI_Comm_create(MPI_COMM_WORLD, pair, &comm);
    keep("create", comm);
    if (rank % 2)
        MPI_Comm_create_group(MPI_COMM_WORLD, pair, TAG, &comm);
    else
        comm = MPI_COMM_NULL;
    keep("create_group", comm);
    MPI_Group_free(&pair);
    MPI_Group_free(&all);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &grid);
    keep("cart", grid);
    MPI_Cart_sub(grid, kept, &comm);
    keep("cart_sub", comm);
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, &comm);
    keep("graph", comm);
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, (const int[]){1}, &right, &one, MPI_INFO_NULL,
                          0, &comm);
    keep("dist_graph", comm);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &two, 1, &right, &two, MPI_INFO_NULL,
                                   0, &comm);
    keep("dist_graph_adjacent", comm);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, TAG, &inter);
    keep("intercomm", inter);
    MPI_Comm_dup(inter, &comm);
    keep("dup of intercomm", comm);
    MPI_Intercomm_merge(inter, rank % 2, &comm);
    keep("merge", comm);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    keep("self", comm);
    /* One side is MPI_COMM_SELF, which is not the same for the other. */
    MPI_Comm workers = MPI_COMM_SELF;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank,
                   rank == 0 ? &comm : &workers);
    MPI_Intercomm_create(workers, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, TAG, &comm);
    keep("master and workers", comm);
    if (rank != 0)
        MPI_Comm_free(&workers);
    MPI_Send_init(&ring_out, 1, MPI_INT, right, TAG, made[0].comm, &ring[0]);
    MPI_Recv_init(&ring_in, 1, MPI_INT, left, TAG, made[0].comm, &ring[1]);
#if MPI_VERSION >= 4
    MPI_Allreduce_init(&sum_out, &sum_in, 1, MPI_INT, MPI_SUM, grid, MPI_INFO_NULL, &sum_request);
#endif
}

static MPI_Comm found(const char *what)
{
    for (int i = 0; i < made_count; i++)
        if (!strcmp(made[i].what, what))
            return made[i].comm;
    return MPI_COMM_NULL;
}

static void check_each(long i)
{
    for (int n = 0; n < made_count; n++) {
        int now[RANKS], count, inter, mine, sum = 0, wanted = 0;
        members(made[n].comm, now, &count);
        MPI_Comm_rank(made[n].comm, &mine);
        MPI_Comm_test_inter(made[n].comm, &inter);
        CHECK(count == made[n].count && mine == made[n].rank &&
                  !memcmp(now, made[n].members, (size_t)count * sizeof now[0]),
              "iteration %ld: other members in %s", i, made[n].what);
        const int value = rank + (int)i;
        for (int k = 0; k < count; k++)
            wanted += now[k] + (int)i;
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, made[n].comm);
        CHECK(sum == wanted, "iteration %ld: sum %d over %s, not %d", i, sum, made[n].what, wanted);
        if (!inter) { /* to the next one there, and to any other side's */
            const int to = (mine + 1) % count, from = (mine + count - 1) % count;
            int in = -1;
            MPI_Status status;
            MPI_Sendrecv(&value, 1, MPI_INT, to, TAG, &in, 1, MPI_INT, MPI_ANY_SOURCE, TAG,
                         made[n].comm, &status);
            CHECK(in == now[from] + (int)i && status.MPI_SOURCE == from,
                  "iteration %ld: %d by way of %s", i, in, made[n].what);
        }
    }
}

static void check_topologies(long i)
{
    const MPI_Comm grid = found("cart"), graph = found("graph"), line = found("dist_graph");
    int kind, sizes[2], periods[2], place[2], neighbour, in, out, weighted, weight, more;
    MPI_Topo_test(grid, &kind);
    MPI_Cart_get(grid, 2, sizes, periods, place);
    CHECK(kind == MPI_CART && sizes[0] == 2 && sizes[1] == 2 && !periods[0] && periods[1],
          "iteration %ld: another grid", i);
    MPI_Topo_test(graph, &kind);
    MPI_Graph_neighbors(graph, rank, 1, &neighbour);
    CHECK(kind == MPI_GRAPH && neighbour == (rank ^ 1), "iteration %ld: another graph", i);
    MPI_Topo_test(line, &kind);
    MPI_Dist_graph_neighbors_count(line, &in, &out, &weighted);
    CHECK(kind == MPI_DIST_GRAPH && in == 1 && out == 1 && weighted,
          "iteration %ld: another distributed graph", i);
    MPI_Dist_graph_neighbors(line, 1, &in, &weight, 1, &out, &more);
    CHECK(in == (rank + ranks - 1) % ranks && out == (rank + 1) % ranks && weight == 7 && more == 7,
          "iteration %ld: neighbours %d and %d", i, in, out);
    int from[2] = {-1, -1};
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, from, 1, MPI_INT, line);
    CHECK(from[0] == in, "iteration %ld: a neighbour's %d", i, from[0]);
}

static void check_belongings(long i)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length, there;
    void *value;
    MPI_Info info;
    MPI_Group all, copy;
    MPI_Comm_get_name(found("dup"), name, &length);
    CHECK(!strcmp(name, "the copy"), "iteration %ld: the name is '%s'", i, name);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(!strcmp(name, "MPI_COMM_WORLD"), "iteration %ld: the world's name is '%s'", i, name);
    MPI_Comm_get_attr(found("dup"), key, &value, &there);
    CHECK(there && value == &mark, "iteration %ld: no attribute", i);
    MPI_Comm_get_attr(found("split"), key, &value, &there);
    CHECK(!there, "iteration %ld: an attribute that was not copied", i);
    int *most;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &there);
    CHECK(there && *most >= 32767, "iteration %ld: no MPI_TAG_UB", i);
    MPI_Comm_get_info(found("dup"), &info);
    MPI_Info_free(&info);
    errors_seen = 0;
    MPI_Send(&i, 1, MPI_LONG, ranks + 3, TAG, found("dup")); /* there is no such rank */
    CHECK(errors_seen == 1 && failed_on == found("dup"), "iteration %ld: error handler", i);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(found("merge"), &copy);
    int mine, there_too;
    MPI_Group_rank(copy, &mine);
    MPI_Group_translate_ranks(copy, 1, &mine, all, &there_too);
    MPI_Group_compare(all, copy, &length);
    CHECK(there_too == rank && length == MPI_SIMILAR, "iteration %ld: groups", i);
    MPI_Group_free(&all);
    MPI_Group_free(&copy);
}

static void check_persistent(long i)
{
    const int left = (rank + ranks - 1) % ranks;
    ring_out = rank * 100 + (int)i % 100;
    MPI_Startall(2, ring);
    MPI_Waitall(2, ring, MPI_STATUSES_IGNORE);
    CHECK(ring_in == left * 100 + (int)i % 100, "iteration %ld: persistent %d", i, ring_in);
    if (sum_request == MPI_REQUEST_NULL)
        return;
    sum_out = rank + (int)i;
    MPI_Start(&sum_request);
    MPI_Wait(&sum_request, MPI_STATUS_IGNORE);
    CHECK(sum_in == 6 + ranks * (int)i, "iteration %ld: persistent sum %d", i, sum_in);
}

static void all(void)
{
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    make_communicators();
    CHECK(copies >= 1 && ranks == RANKS, "copies %d", copies);
    while (goes_on()) {
        check_each(i);
        check_topologies(i);
        check_belongings(i);
        check_persistent(i);
        MPI_Comm passing; /* ids go on alike in all */
        MPI_Comm_split(found("dup"), rank / 2, rank, &passing);
        MPI_Barrier(passing);
        MPI_Comm_free(&passing);
        i++;
    }
    const int before = deletions;
    for (int n = made_count - 1; n >= 0; n--)
        MPI_Comm_free(&made[n].comm);
    CHECK(deletions >= before + 2, "%d attributes were deleted", deletions - before);
    MPI_Request_free(&ring[0]);
    MPI_Request_free(&ring[1]);
    if (sum_request != MPI_REQUEST_NULL)
        MPI_Request_free(&sum_request);
}

/* ---- an initialisation that communicates ---- */

static void input(void)
{
    long i = 0;
    int value = 0, wide[RANKS] = {0}, own = -1, sum = 0, prefix = 0, sent, got[3] = {0}, flag = 0;
    int counts[RANKS], places[RANKS];
    char text[RANKS * 8] = "", word[8];
    MPI_Comm part;
    MPI_Request requests[4];
    MPI_Status status;
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    zcm_register("i", &i, 1, MPI_LONG);
    if (rank == 0)
        value = (int)(time(NULL) % 1000) * 1000 + (int)getpid() % 1000 + 1;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, (value + rank) % 2, rank, &part);
    sent = value + rank;
    MPI_Allgather(&sent, 1, MPI_INT, wide, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Scatter(wide, 1, MPI_INT, &own, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Iallreduce(&sent, &sum, 1, MPI_INT, MPI_SUM, part, &requests[0]);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Scan(&sent, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(word, sizeof word, "%d", sent);
    for (int n = 0; n < ranks; n++) {
        counts[n] = 7 + n % 2;
        places[n] = 8 * n;
    }
    MPI_Allgatherv(word, counts[rank], MPI_CHAR, text, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&sent, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&sent, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Send(&sent, 1, MPI_INT, rank ^ 1, 3, MPI_COMM_WORLD);
    MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
    MPI_Recv(&got[2], 1, MPI_INT, status.MPI_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (zcm_resumed())
        printf("rank %d resumed with %d\n", rank, value);
    while (goes_on()) {
        int least = 0, most = 0, members_sum = 0;
        MPI_Allreduce(&value, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(value > 0 && least == most, "iteration %ld: input %d and %d", i, least, most);
        MPI_Allreduce(&sent, &members_sum, 1, MPI_INT, MPI_SUM, part);
        CHECK(sent == value + rank && members_sum == sum, "iteration %ld: sum %d", i, sum);
        for (int n = 0; n < ranks; n++) {
            snprintf(word, sizeof word, "%d", value + n);
            CHECK(wide[n] == value + n && !strcmp(text + 8 * n, word), "iteration %ld: '%s'", i,
                  text + 8 * n);
        }
        CHECK(own == sent && prefix == (rank + 1) * value + rank * (rank + 1) / 2,
              "iteration %ld: own %d, prefix %d", i, own, prefix);
        CHECK(got[0] == value + left && got[1] == value + left && got[2] == value + (rank ^ 1),
              "iteration %ld: got %d, %d, %d", i, got[0], got[1], got[2]);
        i++;
    }
    MPI_Comm_free(&part);
}

/* ---- others ---- */

static void late(void)
{
    long i = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("comm", &comm, sizeof comm, MPI_BYTE);
    while (goes_on()) {
        int mine, sum = 0;
        if (comm == MPI_COMM_NULL)
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        MPI_Comm_rank(comm, &mine);
        CHECK(mine == ranks - 1 - rank, "rank %d in it", mine);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == ranks * (ranks - 1) / 2, "sum %d", sum);
        i++;
    }
    MPI_Comm_free(&comm);
}

static MPI_Comm library_comm = MPI_COMM_NULL;

static double library_mean(double value)
{
    double sum = 0;
    int size;
    if (library_comm == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &library_comm);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, library_comm);
    return sum / size;
}

static void library(void)
{
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    CHECK(library_mean(rank) == (ranks - 1) / 2.0, "at the start");
    while (goes_on()) {
        CHECK(library_mean((double)i + rank) == (double)i + (ranks - 1) / 2.0, "iteration %ld", i);
        i++;
    }
}

static void pending(int sends)
{
    int value = 1, is_open = 1;
    long i = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("open", &is_open, 1, MPI_INT);
    CHECK(zcm_safe_point() == 0, "safe point");
    if (rank == 1 && is_open && !zcm_resumed()) {
        if (sends)
            MPI_Isend(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        else
            MPI_Irecv(&value, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
    }
    if (rank == 0 && sends)
        MPI_Recv(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (goes_on()) {
        if (is_open && exists(".go")) {
            if (rank == 0 && !sends)
                MPI_Send(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
            if (rank == 1)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            is_open = 0;
        }
        i++;
    }
    CHECK(!is_open, "ended too early");
}

static MPI_Comm backwards(void)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    return comm;
}

/* Around a ring, on a communicator that is freed before the message is waited for. */
static void pass_on(void)
{
    MPI_Comm comm = backwards();
    MPI_Request both[2];
    int value = -1;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG, comm, &both[0]);
    MPI_Isend(&rank, 1, MPI_INT, ranks - 1 - (rank + 1) % ranks, TAG, comm, &both[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    CHECK(value == (rank + ranks - 1) % ranks, "received %d", value);
}

static void freed(void)
{
    enum { AT_ONCE = 8 };
    int value = rank == 0, is_open = 1;
    long i = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    zcm_register("open", &is_open, 1, MPI_INT);
    while (goes_on()) {
        if (i == 0)
            comm = backwards();
        if (i == 0 && rank == 1) {
            MPI_Irecv(&value, 1, MPI_INT, ranks - 1, TAG, comm, &request);
            MPI_Comm_free(&comm);
        }
        for (int k = 0; k < AT_ONCE; k++)
            pass_on();
        if (is_open && exists(".go")) {
            if (rank == 0)
                MPI_Send(&value, 1, MPI_INT, ranks - 2, TAG, comm);
            if (rank != 1)
                MPI_Comm_free(&comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(rank != 1 || value == 1, "received %d", value);
            is_open = 0;
        }
        i++;
    }
    CHECK(!is_open, "ended too early");
}

static void derived(void)
{
    long i = 0;
    int token = 0;
    MPI_Comm comm;
    zcm_register("i", &i, 1, MPI_LONG);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    while (goes_on()) {
        if (rank == 1 && i > 0)
            MPI_Recv(&token, 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        if (rank == 0)
            MPI_Send(&token, 1, MPI_INT, 1, TAG, comm);
        i++;
    }
    if (rank == 1 && i > 0)
        MPI_Recv(&token, 1, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
}

static MPI_Win window = MPI_WIN_NULL;
#if defined(MPIO_INCLUDE) || defined(OPEN_MPI) /* else this MPICH was built without MPI-IO */
#define HAS_FILES
static MPI_File file = MPI_FILE_NULL;
#endif
static int shared_word;

static void open_all(MPI_Comm world, void *what)
{
    if (strcmp(what, "file"))
        MPI_Win_create(&shared_word, sizeof shared_word, sizeof shared_word, MPI_INFO_NULL, world,
                       &window);
    if (strcmp(what, "window")) {
#ifdef HAS_FILES
        char path[4096];
        snprintf(path, sizeof path, "%s.data", stop_file);
        CHECK(MPI_File_open(world, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
                  MPI_SUCCESS,
              "cannot open %s", path);
#endif
    }
}

static void close_all(MPI_Comm world, void *what)
{
    (void)world;
    (void)what;
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
#ifdef HAS_FILES
    if (file != MPI_FILE_NULL)
        MPI_File_close(&file);
#endif
}

static void opens(const char *mode)
{
    long i = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    if (!strcmp(mode, "released"))
        zcm_on_rebuild(close_all, open_all, (void *)(uintptr_t)mode);
    if (!zcm_resumed())
        open_all(MPI_COMM_WORLD, (void *)(uintptr_t)mode);
    while (goes_on()) {
        if (window != MPI_WIN_NULL) {
            const int next = (rank + 1) % ranks, value = rank;
            MPI_Win_fence(0, window);
            MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, window);
            MPI_Win_fence(0, window);
            CHECK(shared_word == (rank + ranks - 1) % ranks, "window: %d", shared_word);
        }
        i++;
    }
    close_all(MPI_COMM_WORLD, NULL);
}

static void stranger(char *program)
{
    long i = 0;
    char *arguments[] = {"child", NULL};
    MPI_Comm child = MPI_COMM_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    while (goes_on()) {
        if (i == 0)
            MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                           MPI_ERRCODES_IGNORE);
        if (child != MPI_COMM_NULL && exists(".go")) {
            if (rank == 0)
                MPI_Send(&rank, 1, MPI_INT, 0, TAG, child);
            MPI_Comm_disconnect(&child);
        }
        i++;
    }
}

static void spawns(char *program)
{
    long i = 0;
    int spawned = !zcm_resumed();
    char *commands[] = {program, program}, *arguments[] = {"child", NULL};
    char **both[] = {arguments, arguments};
    const int counts[] = {1, 1};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    zcm_register("i", &i, 1, MPI_LONG);
    while (goes_on()) {
        if (!spawned) {
            MPI_Comm_spawn_multiple(2, commands, both, counts, infos, 0, MPI_COMM_SELF, &children,
                                    MPI_ERRCODES_IGNORE);
            MPI_Send(&rank, 1, MPI_INT, 0, TAG, children);
            MPI_Comm_disconnect(&children);
            spawned = 1;
        }
        i++;
    }
}

/* Each is of a command of its own. */
static int be_child(void)
{
    MPI_Comm parent;
    int *command, flag, none;
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &command, &flag);
    if (parent == MPI_COMM_NULL || !flag || *command != rank)
        return 1;
    if (rank == 0)
        MPI_Recv(&none, 1, MPI_INT, 0, TAG, parent, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

static void differs(void)
{
    long i = 0;
    int value = 5;
    zcm_register("i", &i, 1, MPI_LONG);
    MPI_Barrier(MPI_COMM_WORLD);
    if (zcm_resumed())
        MPI_Barrier(MPI_COMM_WORLD);
    else
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while (goes_on())
        i++;
}

static void persists(void)
{
    long i = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    zcm_register("i", &i, 1, MPI_LONG);
    while (goes_on()) {
        if (request == MPI_REQUEST_NULL && rank == 1)
            MPI_Send_init(&rank, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        i++;
    }
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
}

static int cache_key = MPI_KEYVAL_INVALID, cached = 7;

static void drop_cache(MPI_Comm world, void *argument)
{
    int *there = argument;
    if (*there)
        MPI_Comm_delete_attr(world, cache_key);
    *there = 0;
}

static void fill_cache(MPI_Comm world, void *argument)
{
    MPI_Comm_set_attr(world, cache_key, &cached);
    *(int *)argument = 1;
}

/* As a library does that caches what it has on a communicator when it is first used. What is on
 * MPI_COMM_SELF is the process's own. */
static void caches(int again)
{
    long i = 0;
    int there = 0;
    zcm_register("i", &i, 1, MPI_LONG);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &cache_key, NULL);
    if (again)
        zcm_on_rebuild(drop_cache, fill_cache, &there);
    while (goes_on()) {
        int *found = NULL, flag = 0;
        if (i++ == 0 && rank == 1)
            fill_cache(MPI_COMM_WORLD, &there);
        if (i == 1 && rank == 2)
            MPI_Comm_set_attr(MPI_COMM_SELF, cache_key, &cached);
        MPI_Comm_get_attr(MPI_COMM_WORLD, cache_key, &found, &flag);
        CHECK(flag == there && (!flag || *found == 7), "attribute %d, wanted %d", flag, there);
        CHECK(rank != 1 || there, "rank 1 has lost its attribute");
    }
}

static int plain(void)
{
    int sum = 0, wanted = 0;
    for (int i = 0; i < ranks; i++)
        wanted += i;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == wanted, "sum %d", sum);
    if (rank == 0)
        printf("%d ranks, all right\n", ranks);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    const char *mode = argc > 1 ? argv[1] : "all";
    stop_file = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    if (!strcmp(mode, "child"))
        return be_child();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL, "a rank has a parent");
    if (!strcmp(mode, "plain"))
        return plain();
    CHECK(zcm_init(&argc, &argv) == 0, "zcm_init");
    CHECK(zcm_world() == MPI_COMM_WORLD, "another world");
    if (!strcmp(mode, "all"))
        all();
    else if (!strcmp(mode, "input"))
        input();
    else if (!strcmp(mode, "late"))
        late();
    else if (!strcmp(mode, "library"))
        library();
    else if (!strcmp(mode, "irecv"))
        pending(0);
    else if (!strcmp(mode, "isend"))
        pending(1);
    else if (!strcmp(mode, "freed"))
        freed();
    else if (!strcmp(mode, "derived"))
        derived();
    else if (!strcmp(mode, "stranger"))
        stranger(argv[0]);
    else if (!strcmp(mode, "spawns"))
        spawns(argv[0]);
    else if (!strcmp(mode, "differs"))
        differs();
    else if (!strcmp(mode, "persists"))
        persists();
    else if (!strcmp(mode, "caches"))
        caches(0);
    else if (!strcmp(mode, "recaches"))
        caches(1);
    else
        opens(mode);
    if (rank == 0)
        printf("all right, %d ranks\n", ranks);
    fflush(stdout);
    MPI_Finalize(); /* which ends the job, too */
    return 0;
}
