/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_REAL_H_INCLUDED
#define ZCT_REAL_H_INCLUDED

/*
 * The MPI library under the tracer. Its functions are looked up by name when
 * MPI is initialized, and the tracer is not linked with any MPI library: one
 * build serves every library of an ABI, whatever its file is called, and a
 * process that is not an MPI program (a shell between mpiexec and the program)
 * can load the tracer without harm.
 */

#include <mpi.h>

#if defined(OPEN_MPI)
#define ZCT_OPENMPI 1
#define ZCT_ABI "openmpi"
#else
#define ZCT_OPENMPI 0
#define ZCT_ABI "mpich"
#endif

/* Only the large-count functions are new enough to be missing. */
#define ZCT_LARGE_COUNT (MPI_VERSION >= 4)

#define ZCT_REAL_FUNCTIONS(X)                                                                      \
    X(Abort)                                                                                       \
    X(Accumulate)                                                                                  \
    X(Compare_and_swap)                                                                            \
    X(Fetch_and_op)                                                                                \
    X(Get)                                                                                         \
    X(Get_accumulate)                                                                              \
    X(Put)                                                                                         \
    X(Raccumulate)                                                                                 \
    X(Rget)                                                                                        \
    X(Rget_accumulate)                                                                             \
    X(Rput)                                                                                        \
    X(Win_complete)                                                                                \
    X(Win_fence)                                                                                   \
    X(Win_flush)                                                                                   \
    X(Win_flush_all)                                                                               \
    X(Win_flush_local)                                                                             \
    X(Win_flush_local_all)                                                                         \
    X(Win_lock)                                                                                    \
    X(Win_lock_all)                                                                                \
    X(Win_post)                                                                                    \
    X(Win_start)                                                                                   \
    X(Win_test)                                                                                    \
    X(Win_unlock)                                                                                  \
    X(Win_unlock_all)                                                                              \
    X(Win_wait)                                                                                    \
    X(Allgather)                                                                                   \
    X(Allgatherv)                                                                                  \
    X(Allreduce)                                                                                   \
    X(Alltoall)                                                                                    \
    X(Alltoallv)                                                                                   \
    X(Alltoallw)                                                                                   \
    X(Barrier)                                                                                     \
    X(Bcast)                                                                                       \
    X(Bsend)                                                                                       \
    X(Bsend_init)                                                                                  \
    X(Cancel)                                                                                      \
    X(Cart_create)                                                                                 \
    X(Cart_sub)                                                                                    \
    X(Comm_accept)                                                                                 \
    X(Comm_connect)                                                                                \
    X(Comm_create)                                                                                 \
    X(Comm_create_group)                                                                           \
    X(Comm_disconnect)                                                                             \
    X(Comm_dup)                                                                                    \
    X(Comm_dup_with_info)                                                                          \
    X(Comm_free)                                                                                   \
    X(Comm_get_parent)                                                                             \
    X(Comm_group)                                                                                  \
    X(Comm_idup)                                                                                   \
    X(Comm_join)                                                                                   \
    X(Comm_rank)                                                                                   \
    X(Comm_remote_group)                                                                           \
    X(Comm_size)                                                                                   \
    X(Comm_spawn)                                                                                  \
    X(Comm_spawn_multiple)                                                                         \
    X(Comm_split)                                                                                  \
    X(Comm_split_type)                                                                             \
    X(Comm_test_inter)                                                                             \
    X(Dist_graph_create)                                                                           \
    X(Dist_graph_create_adjacent)                                                                  \
    X(Dist_graph_neighbors)                                                                        \
    X(Dist_graph_neighbors_count)                                                                  \
    X(Cart_shift)                                                                                  \
    X(Cartdim_get)                                                                                 \
    X(Error_class)                                                                                 \
    X(Exscan)                                                                                      \
    X(Finalize)                                                                                    \
    X(Gather)                                                                                      \
    X(Gatherv)                                                                                     \
    X(Get_count)                                                                                   \
    X(Get_elements_x)                                                                              \
    X(Get_library_version)                                                                         \
    X(Graph_create)                                                                                \
    X(Graph_neighbors)                                                                             \
    X(Graph_neighbors_count)                                                                       \
    X(Group_free)                                                                                  \
    X(Group_size)                                                                                  \
    X(Group_translate_ranks)                                                                       \
    X(Iallgather)                                                                                  \
    X(Iallgatherv)                                                                                 \
    X(Iallreduce)                                                                                  \
    X(Ialltoall)                                                                                   \
    X(Ialltoallv)                                                                                  \
    X(Ialltoallw)                                                                                  \
    X(Ibarrier)                                                                                    \
    X(Ibcast)                                                                                      \
    X(Ibsend)                                                                                      \
    X(Iexscan)                                                                                     \
    X(Igather)                                                                                     \
    X(Igatherv)                                                                                    \
    X(Improbe)                                                                                     \
    X(Imrecv)                                                                                      \
    X(Ineighbor_allgather)                                                                         \
    X(Ineighbor_allgatherv)                                                                        \
    X(Ineighbor_alltoall)                                                                          \
    X(Ineighbor_alltoallv)                                                                         \
    X(Ineighbor_alltoallw)                                                                         \
    X(Init)                                                                                        \
    X(Init_thread)                                                                                 \
    X(Intercomm_create)                                                                            \
    X(Intercomm_merge)                                                                             \
    X(Iprobe)                                                                                      \
    X(Irecv)                                                                                       \
    X(Ireduce)                                                                                     \
    X(Ireduce_scatter)                                                                             \
    X(Ireduce_scatter_block)                                                                       \
    X(Irsend)                                                                                      \
    X(Iscan)                                                                                       \
    X(Iscatter)                                                                                    \
    X(Iscatterv)                                                                                   \
    X(Isend)                                                                                       \
    X(Issend)                                                                                      \
    X(Mprobe)                                                                                      \
    X(Mrecv)                                                                                       \
    X(Neighbor_allgather)                                                                          \
    X(Neighbor_allgatherv)                                                                         \
    X(Neighbor_alltoall)                                                                           \
    X(Neighbor_alltoallv)                                                                          \
    X(Neighbor_alltoallw)                                                                          \
    X(Query_thread)                                                                                \
    X(Probe)                                                                                       \
    X(Recv)                                                                                        \
    X(Recv_init)                                                                                   \
    X(Reduce)                                                                                      \
    X(Reduce_scatter)                                                                              \
    X(Reduce_scatter_block)                                                                        \
    X(Request_free)                                                                                \
    X(Request_get_status)                                                                          \
    X(Rsend)                                                                                       \
    X(Rsend_init)                                                                                  \
    X(Scan)                                                                                        \
    X(Scatter)                                                                                     \
    X(Scatterv)                                                                                    \
    X(Send)                                                                                        \
    X(Send_init)                                                                                   \
    X(Sendrecv)                                                                                    \
    X(Sendrecv_replace)                                                                            \
    X(Ssend)                                                                                       \
    X(Ssend_init)                                                                                  \
    X(Start)                                                                                       \
    X(Startall)                                                                                    \
    X(Test)                                                                                        \
    X(Test_cancelled)                                                                              \
    X(Testall)                                                                                     \
    X(Testany)                                                                                     \
    X(Testsome)                                                                                    \
    X(Topo_test)                                                                                   \
    X(Type_commit)                                                                                 \
    X(Type_dup)                                                                                    \
    X(Type_free)                                                                                   \
    X(Type_get_extent)                                                                             \
    X(Type_get_true_extent)                                                                        \
    X(Type_size)                                                                                   \
    X(Type_size_x)                                                                                 \
    X(Wait)                                                                                        \
    X(Waitall)                                                                                     \
    X(Waitany)                                                                                     \
    X(Waitsome)

#if ZCT_LARGE_COUNT
#define ZCT_REAL_LARGE_FUNCTIONS(X)                                                                \
    X(Allgather_c)                                                                                 \
    X(Accumulate_c)                                                                                \
    X(Get_accumulate_c)                                                                            \
    X(Get_c)                                                                                       \
    X(Put_c)                                                                                       \
    X(Raccumulate_c)                                                                               \
    X(Rget_accumulate_c)                                                                           \
    X(Rget_c)                                                                                      \
    X(Rput_c)                                                                                      \
    X(Allgatherv_c)                                                                                \
    X(Allreduce_c)                                                                                 \
    X(Alltoall_c)                                                                                  \
    X(Alltoallv_c)                                                                                 \
    X(Alltoallw_c)                                                                                 \
    X(Bcast_c)                                                                                     \
    X(Bsend_c)                                                                                     \
    X(Bsend_init_c)                                                                                \
    X(Comm_create_from_group)                                                                      \
    X(Comm_idup_with_info)                                                                         \
    X(Exscan_c)                                                                                    \
    X(Gather_c)                                                                                    \
    X(Gatherv_c)                                                                                   \
    X(Iallgather_c)                                                                                \
    X(Iallgatherv_c)                                                                               \
    X(Iallreduce_c)                                                                                \
    X(Ialltoall_c)                                                                                 \
    X(Ialltoallv_c)                                                                                \
    X(Ialltoallw_c)                                                                                \
    X(Ibcast_c)                                                                                    \
    X(Ibsend_c)                                                                                    \
    X(Iexscan_c)                                                                                   \
    X(Igather_c)                                                                                   \
    X(Igatherv_c)                                                                                  \
    X(Imrecv_c)                                                                                    \
    X(Ineighbor_allgather_c)                                                                       \
    X(Ineighbor_allgatherv_c)                                                                      \
    X(Ineighbor_alltoall_c)                                                                        \
    X(Ineighbor_alltoallv_c)                                                                       \
    X(Ineighbor_alltoallw_c)                                                                       \
    X(Isendrecv)                                                                                   \
    X(Isendrecv_c)                                                                                 \
    X(Isendrecv_replace)                                                                           \
    X(Isendrecv_replace_c)                                                                         \
    X(Intercomm_create_from_groups)                                                                \
    X(Irecv_c)                                                                                     \
    X(Ireduce_c)                                                                                   \
    X(Ireduce_scatter_block_c)                                                                     \
    X(Ireduce_scatter_c)                                                                           \
    X(Irsend_c)                                                                                    \
    X(Iscan_c)                                                                                     \
    X(Iscatter_c)                                                                                  \
    X(Iscatterv_c)                                                                                 \
    X(Isend_c)                                                                                     \
    X(Issend_c)                                                                                    \
    X(Mrecv_c)                                                                                     \
    X(Neighbor_allgather_c)                                                                        \
    X(Neighbor_allgatherv_c)                                                                       \
    X(Neighbor_alltoall_c)                                                                         \
    X(Neighbor_alltoallv_c)                                                                        \
    X(Neighbor_alltoallw_c)                                                                        \
    X(Recv_c)                                                                                      \
    X(Recv_init_c)                                                                                 \
    X(Reduce_c)                                                                                    \
    X(Reduce_scatter_block_c)                                                                      \
    X(Reduce_scatter_c)                                                                            \
    X(Rsend_c)                                                                                     \
    X(Rsend_init_c)                                                                                \
    X(Scan_c)                                                                                      \
    X(Scatter_c)                                                                                   \
    X(Scatterv_c)                                                                                  \
    X(Send_c)                                                                                      \
    X(Session_init)                                                                                \
    X(Send_init_c)                                                                                 \
    X(Sendrecv_c)                                                                                  \
    X(Sendrecv_replace_c)                                                                          \
    X(Ssend_c)                                                                                     \
    X(Ssend_init_c)
#else
#define ZCT_REAL_LARGE_FUNCTIONS(X)
#endif

struct zct_real {
#define X(name) __typeof__(MPI_##name) *name;
    ZCT_REAL_FUNCTIONS(X)
    ZCT_REAL_LARGE_FUNCTIONS(X)
#undef X
    /* Handles that are addresses in Open MPI: naming them would need its library. */
    MPI_Comm world;
    MPI_Comm comm_null;
    MPI_Datatype byte;
    MPI_Request request_null;
    MPI_Message message_null;
    MPI_Message message_no_proc;
};

/** Filled by zct_real_find, before MPI can be called. */
extern struct zct_real zct_real __attribute__((visibility("hidden")));

/** Calls the MPI library's own function. */
#define REAL(name) zct_real.name

/**
 * zct_real_find - find the MPI library's functions; more than once does nothing
 *
 * Ends the process with a message if the program's MPI has another ABI: its
 * handles would not even have the size the tracer passes on.
 */
void zct_real_find(void);

/*
 * After a wrapper: it has the PMPI name too. Open MPI's Fortran functions, and
 * the mpi_f08 ones of MPICH, call PMPI_X where others call MPI_X. That is safe
 * since the tracer itself finds the library's functions behind its own, and what
 * the library of the C functions calls by itself goes past it (inner_calls.h).
 */
#define ZCT_WRAPS(name) ZCT_WRAPS_EXPANDED(name)
#define ZCT_WRAPS_EXPANDED(name)                                                                   \
    extern __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)));

#endif
