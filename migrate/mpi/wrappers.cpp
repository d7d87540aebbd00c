/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The calls by which programs communicate, as the profiling interface of MPI lets us see
 * them: what is sent to whom and how long it takes, while the profiler counts. Else each is
 * one load and one jump more.
 *
 * Point-to-point messages are told as they are. Of collectives, which libraries route as they
 * like, we tell the messages of the textbook algorithm: a binomial tree for broadcast and
 * reduction, recursive doubling for all-reductions and scans, a ring for all-gathers; gather,
 * scatter and all-to-all directly. Enough to see who communicates with whom, and it does
 * not take longer than what is told. Of intercommunicators, messages and rooted collectives
 * are told. Fortran's calls are seen where its binding calls the functions of C, as MPICH's does;
 * that of Open MPI calls PMPI's.
 *
 * Time in MPI is told in ticks of the kernel's coarse clock (1 to 10 ms), which is read in a fifth
 * of the time of the fine one: a call of length t sees a tick with probability t / tick, so that
 * the sum is right in the mean however short calls are, and within some 3 % of a second's agent's
 * reading. Calls that return at once (MPI_Isend) are not timed. The fine clock is read, once per
 * call, for those that send something to another rank.
 */
#include <mpi.h>

#include "profiler.h"

using namespace zc::migrate;

namespace {

/** What a message carries; asked for its bytes only where that is told. */
struct amount {
    int count;
    MPI_Datatype type;
    int times = 1;

    std::uint64_t bytes() const
    {
        int size = 0;
        if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS || size <= 0)
            return 0;
        return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) *
               static_cast<std::uint64_t>(times);
    }
};

/** What one call sends, if it counts. */
class telling {
  public:
    telling() : counts_(profiler::counts()) {}
    telling(const telling &) = delete;
    telling &operator=(const telling &) = delete;

    explicit operator bool() const noexcept { return counts_; }

    void sent(MPI_Comm comm, int peer, const amount &what) const
    {
        if (counts_ && peer >= 0) /* not to MPI_PROC_NULL */
            profiler::instance().sent(comm, peer, what.bytes(), when_);
    }
    void sent_to_all(MPI_Comm comm, const amount &each) const
    {
        if (counts_)
            profiler::instance().sent_to_all(comm, each.bytes(), when_);
    }
    void started(int count, const MPI_Request requests[]) const
    {
        if (counts_ && count > 0)
            profiler::instance().started({requests, static_cast<std::size_t>(count)}, when_);
    }

  private:
    const bool counts_;
    mutable moment when_;
};

/** The same of a call that may take time, and its time. */
class span : public telling {
  public:
    span() : begin_(*this ? read_clock_ns(CLOCK_MONOTONIC_COARSE) : 0) {}
    ~span()
    {
        if (!*this)
            return;
        const std::uint64_t end = read_clock_ns(CLOCK_MONOTONIC_COARSE);
        if (end != begin_) [[unlikely]]
            profiler::instance().spent(end - begin_);
    }

  private:
    const std::uint64_t begin_;
};

/** Down a binomial tree: rank r, counted from the root, sends to r + 2^k for all 2^k > r. */
void tell_broadcast(const telling &inside, MPI_Comm comm, int root, const amount &what)
{
    if (!inside)
        return;
    if (profiler::is_inter(comm)) {
        if (root == MPI_ROOT)
            inside.sent_to_all(comm, what);
        return;
    }
    const auto [rank, size] = profiler::mine(comm);
    const int mine = (rank - root + size) % size;
    for (int bit = 1; bit < size; bit *= 2)
        if (bit > mine && mine + bit < size)
            inside.sent(comm, (mine + bit + root) % size, what);
}

/** Up the same tree: to the rank without one's highest bit. */
void tell_reduction(const telling &inside, MPI_Comm comm, int root, const amount &what)
{
    if (!inside)
        return;
    if (profiler::is_inter(comm)) {
        if (root >= 0)
            inside.sent(comm, root, what);
        return;
    }
    const auto [rank, size] = profiler::mine(comm);
    const int mine = (rank - root + size) % size;
    if (mine == 0)
        return;
    int highest = 1;
    while (highest * 2 <= mine)
        highest *= 2;
    inside.sent(comm, (mine - highest + root) % size, what);
}

void tell_doubling(const telling &inside, MPI_Comm comm, const amount &what)
{
    if (!inside || profiler::is_inter(comm))
        return;
    const auto [rank, size] = profiler::mine(comm);
    for (int bit = 1; bit < size; bit *= 2)
        if ((rank ^ bit) < size)
            inside.sent(comm, rank ^ bit, what);
}

/** All blocks but one's own pass by, to the next rank. */
void tell_ring(const telling &inside, MPI_Comm comm, const amount &block)
{
    if (!inside || profiler::is_inter(comm))
        return;
    const auto [rank, size] = profiler::mine(comm);
    if (size > 1)
        inside.sent(comm, (rank + 1) % size, {block.count, block.type, size - 1});
}

void tell_gather(const telling &inside, MPI_Comm comm, int root, const amount &what)
{
    /* The root's type may be anything: MPI_IN_PLACE. */
    if (inside && root >= 0 && (profiler::is_inter(comm) || profiler::mine(comm).rank != root))
        inside.sent(comm, root, what);
}

void tell_scatter(const telling &inside, MPI_Comm comm, int root, const amount &each)
{
    if (inside && (root == MPI_ROOT ||
                   (root >= 0 && !profiler::is_inter(comm) && profiler::mine(comm).rank == root)))
        inside.sent_to_all(comm, each);
}

} // namespace

extern "C" {
#pragma GCC visibility push(default)

/* ---- messages ---- */

#define ZCM_BLOCKING_SEND(name)                                                                    \
    int MPI_##name(const void *buf, int count, MPI_Datatype type, int dest, int tag,               \
                   MPI_Comm comm)                                                                  \
    {                                                                                              \
        const span inside;                                                                         \
        inside.sent(comm, dest, {count, type});                                                    \
        return PMPI_##name(buf, count, type, dest, tag, comm);                                     \
    }
ZCM_BLOCKING_SEND(Send)
ZCM_BLOCKING_SEND(Ssend)
ZCM_BLOCKING_SEND(Rsend)
ZCM_BLOCKING_SEND(Bsend)

#define ZCM_NONBLOCKING_SEND(name)                                                                 \
    int MPI_##name(const void *buf, int count, MPI_Datatype type, int dest, int tag,               \
                   MPI_Comm comm, MPI_Request *request)                                            \
    {                                                                                              \
        const telling inside;                                                                      \
        inside.sent(comm, dest, {count, type});                                                    \
        return PMPI_##name(buf, count, type, dest, tag, comm, request);                            \
    }
ZCM_NONBLOCKING_SEND(Isend)
ZCM_NONBLOCKING_SEND(Issend)
ZCM_NONBLOCKING_SEND(Irsend)
ZCM_NONBLOCKING_SEND(Ibsend)

/* Made again by the program's rebuild function, inside a safe point: so remembered always. */
#define ZCM_PERSISTENT_SEND(name)                                                                  \
    int MPI_##name(const void *buf, int count, MPI_Datatype type, int dest, int tag,               \
                   MPI_Comm comm, MPI_Request *request)                                            \
    {                                                                                              \
        const int code = PMPI_##name(buf, count, type, dest, tag, comm, request);                  \
        if (profiler::is_open() && code == MPI_SUCCESS && dest >= 0)                               \
            profiler::instance().remember(*request, comm, dest, amount{count, type}.bytes());      \
        return code;                                                                               \
    }
ZCM_PERSISTENT_SEND(Send_init)
ZCM_PERSISTENT_SEND(Ssend_init)
ZCM_PERSISTENT_SEND(Rsend_init)
ZCM_PERSISTENT_SEND(Bsend_init)

int MPI_Start(MPI_Request *request)
{
    const telling inside;
    inside.started(1, request);
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    const telling inside;
    inside.started(count, requests);
    return PMPI_Startall(count, requests);
}

int MPI_Request_free(MPI_Request *request)
{
    if (profiler::is_open())
        profiler::instance().forget(*request);
    return PMPI_Request_free(request);
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    const span inside;
    return PMPI_Recv(buf, count, type, source, tag, comm, status);
}

int MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    const span inside;
    return PMPI_Mrecv(buf, count, type, message, status);
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    const span inside;
    return PMPI_Probe(source, tag, comm, status);
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    const span inside;
    return PMPI_Mprobe(source, tag, comm, message, status);
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    const span inside;
    return PMPI_Iprobe(source, tag, comm, flag, status);
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    const span inside;
    return PMPI_Improbe(source, tag, comm, flag, message, status);
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                 MPI_Comm comm, MPI_Status *status)
{
    const span inside;
    inside.sent(comm, dest, {sendcount, sendtype});
    return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
                         source, recvtag, comm, status);
}

int MPI_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source,
                         int recvtag, MPI_Comm comm, MPI_Status *status)
{
    const span inside;
    inside.sent(comm, dest, {count, type});
    return PMPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, comm, status);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const span inside;
    return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    const span inside;
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    const span inside;
    return PMPI_Waitany(count, requests, index, status);
}

int MPI_Waitsome(int incount, MPI_Request requests[], int *outcount, int indices[],
                 MPI_Status statuses[])
{
    const span inside;
    return PMPI_Waitsome(incount, requests, outcount, indices, statuses);
}

/* Tests are where programs that poll spend their time in MPI. */

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const span inside;
    return PMPI_Test(request, flag, status);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    const span inside;
    return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    const span inside;
    return PMPI_Testany(count, requests, index, flag, status);
}

int MPI_Testsome(int incount, MPI_Request requests[], int *outcount, int indices[],
                 MPI_Status statuses[])
{
    const span inside;
    return PMPI_Testsome(incount, requests, outcount, indices, statuses);
}

/* ---- collectives, and those that go on in the background ---- */

int MPI_Barrier(MPI_Comm comm)
{
    const span inside;
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    const span inside;
    tell_broadcast(inside, comm, root, {count, type});
    return PMPI_Bcast(buf, count, type, root, comm);
}

int MPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
    const telling inside;
    tell_broadcast(inside, comm, root, {count, type});
    return PMPI_Ibcast(buf, count, type, root, comm, request);
}

int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
               int root, MPI_Comm comm)
{
    const span inside;
    tell_reduction(inside, comm, root, {count, type});
    return PMPI_Reduce(sendbuf, recvbuf, count, type, op, root, comm);
}

int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                int root, MPI_Comm comm, MPI_Request *request)
{
    const telling inside;
    tell_reduction(inside, comm, root, {count, type});
    return PMPI_Ireduce(sendbuf, recvbuf, count, type, op, root, comm, request);
}

#define ZCM_DOUBLING(name)                                                                         \
    int MPI_##name(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,    \
                   MPI_Comm comm)                                                                  \
    {                                                                                              \
        const span inside;                                                                         \
        tell_doubling(inside, comm, {count, type});                                                \
        return PMPI_##name(sendbuf, recvbuf, count, type, op, comm);                               \
    }
ZCM_DOUBLING(Allreduce)
ZCM_DOUBLING(Scan)
ZCM_DOUBLING(Exscan)
ZCM_DOUBLING(Reduce_scatter_block)

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    const telling inside;
    tell_doubling(inside, comm, {count, type});
    return PMPI_Iallreduce(sendbuf, recvbuf, count, type, op, comm, request);
}

int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int counts[], MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm)
{
    const span inside;
    if (inside && !profiler::is_inter(comm))
        tell_doubling(inside, comm, {counts[profiler::mine(comm).rank], type});
    return PMPI_Reduce_scatter(sendbuf, recvbuf, counts, type, op, comm);
}

int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    const span inside;
    tell_ring(inside, comm, {recvcount, recvtype});
    return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   const int counts[], const int places[], MPI_Datatype recvtype, MPI_Comm comm)
{
    const span inside;
    if (inside && !profiler::is_inter(comm))
        tell_ring(inside, comm, {counts[profiler::mine(comm).rank], recvtype});
    return PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, counts, places, recvtype, comm);
}

int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
               int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    const span inside;
    tell_gather(inside, comm, root, {sendcount, sendtype});
    return PMPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

int MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                const int counts[], const int places[], MPI_Datatype recvtype, int root,
                MPI_Comm comm)
{
    const span inside;
    tell_gather(inside, comm, root, {sendcount, sendtype});
    return PMPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, places, recvtype, root,
                        comm);
}

int MPI_Scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    const span inside;
    tell_scatter(inside, comm, root, {sendcount, sendtype});
    return PMPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);
}

int MPI_Scatterv(const void *sendbuf, const int counts[], const int places[], MPI_Datatype sendtype,
                 void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    const span inside;
    if (inside && (root == MPI_ROOT ||
                   (root >= 0 && !profiler::is_inter(comm) && profiler::mine(comm).rank == root)))
        for (int peer = 0; peer < profiler::others(comm); peer++)
            inside.sent(comm, peer, {counts[peer], sendtype});
    return PMPI_Scatterv(sendbuf, counts, places, sendtype, recvbuf, recvcount, recvtype, root,
                         comm);
}

int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    const span inside;
    if (inside)
        inside.sent_to_all(comm, {recvcount, recvtype});
    return PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int MPI_Alltoallv(const void *sendbuf, const int counts[], const int places[],
                  MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                  const int recvplaces[], MPI_Datatype recvtype, MPI_Comm comm)
{
    const span inside;
    if (inside && sendbuf != MPI_IN_PLACE)
        for (int peer = 0; peer < profiler::others(comm); peer++)
            inside.sent(comm, peer, {counts[peer], sendtype});
    return PMPI_Alltoallv(sendbuf, counts, places, sendtype, recvbuf, recvcounts, recvplaces,
                          recvtype, comm);
}

/* ---- communicators: time that members wait for each other ---- */

#define ZCM_NEW_COMM(name, parameters, arguments)                                                  \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        const span inside;                                                                         \
        return PMPI_##name arguments;                                                              \
    }
ZCM_NEW_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm *fresh), (comm, fresh))
ZCM_NEW_COMM(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *fresh),
             (comm, info, fresh))
ZCM_NEW_COMM(Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *fresh),
             (comm, colour, key, fresh))
ZCM_NEW_COMM(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *fresh),
             (comm, type, key, info, fresh))
ZCM_NEW_COMM(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *fresh), (comm, group, fresh))
ZCM_NEW_COMM(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *fresh),
             (comm, group, tag, fresh))
ZCM_NEW_COMM(Cart_create,
             (MPI_Comm comm, int dims, const int sizes[], const int periods[], int reorder,
              MPI_Comm *fresh),
             (comm, dims, sizes, periods, reorder, fresh))
ZCM_NEW_COMM(Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *fresh), (comm, kept, fresh))
ZCM_NEW_COMM(Graph_create,
             (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
              MPI_Comm *fresh),
             (comm, nodes, index, edges, reorder, fresh))
ZCM_NEW_COMM(Dist_graph_create_adjacent,
             (MPI_Comm comm, int indegree, const int sources[], const int source_weights[],
              int outdegree, const int destinations[], const int weights[], MPI_Info info,
              int reorder, MPI_Comm *fresh),
             (comm, indegree, sources, source_weights, outdegree, destinations, weights, info,
              reorder, fresh))
ZCM_NEW_COMM(Dist_graph_create,
             (MPI_Comm comm, int nodes, const int sources[], const int degrees[],
              const int destinations[], const int weights[], MPI_Info info, int reorder,
              MPI_Comm *fresh),
             (comm, nodes, sources, degrees, destinations, weights, info, reorder, fresh))
ZCM_NEW_COMM(Intercomm_create,
             (MPI_Comm comm, int leader, MPI_Comm bridge, int remote_leader, int tag,
              MPI_Comm *fresh),
             (comm, leader, bridge, remote_leader, tag, fresh))
ZCM_NEW_COMM(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *fresh), (comm, high, fresh))

#pragma GCC visibility pop
} // extern "C"
