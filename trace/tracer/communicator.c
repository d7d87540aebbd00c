/* SPDX-License-Identifier: BSD-3-Clause */
#include "communicator.h"

#include <errno.h>
#include <stdlib.h>

/* World ranks of a group's members, -1 outside; NULL if empty or no memory. */
static int *world_ranks(MPI_Group group, int size)
{
    MPI_Group world;
    int *from = malloc(2 * (size_t)size * sizeof(int));
    int *to = from ? from + size : NULL;
    if (!from)
        return NULL;
    for (int i = 0; i < size; i++)
        from[i] = i;
    REAL(Comm_group)(zct_real.world, &world);
    REAL(Group_translate_ranks)(group, size, from, world, to);
    REAL(Group_free)(&world);
    for (int i = 0; i < size; i++)
        from[i] = to[i] == MPI_UNDEFINED ? -1 : to[i];
    return from;
}

struct members {
    int *ranks;
    int size;
};

static struct members members_of(MPI_Comm comm, int (*group_of)(MPI_Comm, MPI_Group *))
{
    MPI_Group group;
    struct members m = {NULL, 0};
    group_of(comm, &group);
    REAL(Group_size)(group, &m.size);
    if (m.size > 0)
        m.ranks = world_ranks(group, m.size);
    REAL(Group_free)(&group);
    return m;
}

struct zct_comm zct_comm_announce_locked(MPI_Comm comm)
{
    struct zct_comm known = {0};
    int inter = 0;
    REAL(Comm_test_inter)(comm, &inter);
    known.inter = inter;
    REAL(Comm_rank)(comm, &known.rank);
    struct members local = members_of(comm, REAL(Comm_group));
    struct members remote = {NULL, 0};
    if (inter)
        remote = members_of(comm, REAL(Comm_remote_group));
    known.size = local.size;
    known.peers = inter ? remote.size : local.size;
    if (!local.ranks || (inter && !remote.ranks))
        zct.writer.error = ENOMEM;
    known.id = zct_write_communicator(&zct.writer, local.ranks, (size_t)local.size, remote.ranks,
                                      (size_t)remote.size);
    free(local.ranks);
    free(remote.ranks);
    return known;
}

void zct_comm_bind_locked(MPI_Comm comm, struct zct_comm known)
{
    struct zct_comm *value = zct_table_insert(&zct.comms, ZCT_KEY(comm));
    if (value)
        *value = known;
    else
        zct.writer.error = ENOMEM;
}

const struct zct_comm *zct_comm_get_locked(MPI_Comm comm)
{
    static const struct zct_comm none;
    const struct zct_comm *known = zct_table_find(&zct.comms, ZCT_KEY(comm));
    if (ZCT_UNLIKELY(!known)) {
        /* MPI_COMM_SELF, or made by a call that is not wrapped. */
        zct_comm_bind_locked(comm, zct_comm_announce_locked(comm));
        known = zct_table_find(&zct.comms, ZCT_KEY(comm));
    }
    return known ? known : &none;
}

void zct_comm_created(MPI_Comm comm)
{
    if (!zct.active || comm == zct_real.comm_null)
        return;
    zct_lock();
    zct_comm_bind_locked(comm, zct_comm_announce_locked(comm));
    zct_unlock();
}

/* Before the library frees it: another thread may get the same handle at once. */
static void forget(MPI_Comm comm)
{
    if (!zct.active)
        return;
    zct_lock();
    zct_table_remove(&zct.comms, ZCT_KEY(comm));
    zct_unlock();
}

/* Wrapper of a function that makes *@made. */
#define CREATES(name, made, parameters, arguments)                                                 \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        const int code = REAL(name) arguments;                                                     \
        if (code == MPI_SUCCESS)                                                                   \
            zct_comm_created(*(made));                                                             \
        return code;                                                                               \
    }                                                                                              \
    ZCT_WRAPS(name)

CREATES(Comm_dup, newcomm, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm))
CREATES(Comm_dup_with_info, newcomm, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm),
        (comm, info, newcomm))
CREATES(Comm_create, newcomm, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm),
        (comm, group, newcomm))
CREATES(Comm_create_group, newcomm, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm),
        (comm, group, tag, newcomm))
CREATES(Comm_split, newcomm, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm),
        (comm, color, key, newcomm))
CREATES(Comm_split_type, newcomm,
        (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *newcomm),
        (comm, type, key, info, newcomm))
CREATES(Cart_create, newcomm,
        (MPI_Comm comm, int nr_dims, const int dims[], const int periods[], int reorder,
         MPI_Comm *newcomm),
        (comm, nr_dims, dims, periods, reorder, newcomm))
CREATES(Cart_sub, newcomm, (MPI_Comm comm, const int remain[], MPI_Comm *newcomm),
        (comm, remain, newcomm))
CREATES(Graph_create, newcomm,
        (MPI_Comm comm, int nr_nodes, const int index[], const int edges[], int reorder,
         MPI_Comm *newcomm),
        (comm, nr_nodes, index, edges, reorder, newcomm))
CREATES(Dist_graph_create, newcomm,
        (MPI_Comm comm, int n, const int sources[], const int degrees[], const int dests[],
         const int weights[], MPI_Info info, int reorder, MPI_Comm *newcomm),
        (comm, n, sources, degrees, dests, weights, info, reorder, newcomm))
CREATES(Dist_graph_create_adjacent, newcomm,
        (MPI_Comm comm, int indegree, const int sources[], const int sourceweights[], int outdegree,
         const int dests[], const int destweights[], MPI_Info info, int reorder, MPI_Comm *newcomm),
        (comm, indegree, sources, sourceweights, outdegree, dests, destweights, info, reorder,
         newcomm))
CREATES(Intercomm_create, newcomm,
        (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
         MPI_Comm *newcomm),
        (local, local_leader, peer, remote_leader, tag, newcomm))
CREATES(Intercomm_merge, newcomm, (MPI_Comm comm, int high, MPI_Comm *newcomm),
        (comm, high, newcomm))
CREATES(Comm_accept, newcomm,
        (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port, info, root, comm, newcomm))
CREATES(Comm_connect, newcomm,
        (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port, info, root, comm, newcomm))
CREATES(Comm_join, newcomm, (int fd, MPI_Comm *newcomm), (fd, newcomm))
#if ZCT_LARGE_COUNT
CREATES(Comm_create_from_group, newcomm,
        (MPI_Group group, const char *name, MPI_Info info, MPI_Errhandler handler,
         MPI_Comm *newcomm),
        (group, name, info, handler, newcomm))
CREATES(Intercomm_create_from_groups, newcomm,
        (MPI_Group local, int local_leader, MPI_Group remote, int remote_leader, const char *name,
         MPI_Info info, MPI_Errhandler handler, MPI_Comm *newcomm),
        (local, local_leader, remote, remote_leader, name, info, handler, newcomm))
#endif
CREATES(Comm_spawn, newcomm,
        (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
         MPI_Comm *newcomm, int errcodes[]),
        (command, argv, maxprocs, info, root, comm, newcomm, errcodes))
CREATES(Comm_spawn_multiple, newcomm,
        (int count, char *commands[], char **argvs[], const int maxprocs[], const MPI_Info infos[],
         int root, MPI_Comm comm, MPI_Comm *newcomm, int errcodes[]),
        (count, commands, argvs, maxprocs, infos, root, comm, newcomm, errcodes))

int MPI_Comm_free(MPI_Comm *comm)
{
    forget(*comm);
    return REAL(Comm_free)(comm);
}
ZCT_WRAPS(Comm_free)

int MPI_Comm_disconnect(MPI_Comm *comm)
{
    forget(*comm);
    return REAL(Comm_disconnect)(comm);
}
ZCT_WRAPS(Comm_disconnect)
