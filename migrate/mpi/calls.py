# SPDX-License-Identifier: BSD-3-Clause
"""What types alone do not tell of MPI's functions: `generate_calls` reads it.

A name stands for its `_c`, too; that of a blocking collective for its nonblocking and persistent ones
(Bcast: Ibcast, Bcast_init). Expressions are C++, and use the names of parameters in mpi.h.
"""

# In *_calls.cpp, by hand.
HANDWRITTEN = """
    Init Init_thread Finalize Abort Session_init
    Comm_rank Comm_size Comm_remote_size Comm_test_inter Comm_compare Comm_group Comm_remote_group
    Comm_free Comm_disconnect Comm_get_parent Comm_idup Comm_idup_with_info
    Comm_create_keyval Comm_free_keyval Comm_set_attr Comm_get_attr Comm_delete_attr
    Keyval_create Keyval_free Attr_put Attr_get Attr_delete
    Comm_create_errhandler Comm_set_errhandler Comm_get_errhandler
    Errhandler_create Errhandler_set Errhandler_get
    Comm_c2f Comm_f2c Group_c2f Group_f2c Request_c2f Request_f2c
    Group_size Group_rank Group_translate_ranks Group_compare Group_union Group_intersection
    Group_difference Group_incl Group_excl Group_range_incl Group_range_excl Group_free
    Wait Waitall Waitany Waitsome Test Testall Testany Testsome Request_get_status Request_free
    Cancel Start Startall Grequest_complete Mprobe Improbe Mrecv Imrecv
    Win_free File_close
""".split()

# Ways to a communicator: those who take part are all processes of the first one that is given, or
# others that have a tag in common.
CONSTRUCTORS = {
    **{name: "all" for name in
       "Comm_dup Comm_dup_with_info Comm_split Comm_split_type Comm_create Cart_create Cart_sub "
       "Graph_create Dist_graph_create Dist_graph_create_adjacent Intercomm_merge".split()},
    "Comm_create_group": "tag",
    "Intercomm_create": "tag",
    "Comm_create_from_group": "text_of(stringtag)",
    "Intercomm_create_from_groups": "text_of(stringtag)",
    "Comm_spawn": "0",
    "Comm_spawn_multiple": "0",
    "Comm_accept": "1",
    "Comm_connect": "1",
    "Comm_join": "2",
}

# Those that take the attributes of the old one along.
COPIES = ["Comm_dup", "Comm_dup_with_info"]

# Others that take time, and tell nothing. A collective is always timed.
TIMED = list(CONSTRUCTORS) + [
    "Send", "Ssend", "Rsend", "Bsend", "Recv", "Probe", "Iprobe", "Sendrecv", "Sendrecv_replace"]

# What open windows and files are counted by.
OPENS = {
    "Win_create": "window", "Win_allocate": "window", "Win_allocate_shared": "window",
    "Win_create_dynamic": "window", "File_open": "file",
}

# Messages: to whom, and from whom.
SENDS = {name: "dest" for name in
         "Send Ssend Rsend Bsend Isend Issend Irsend Ibsend Send_init Ssend_init Rsend_init "
         "Bsend_init Sendrecv Sendrecv_replace Isendrecv Isendrecv_replace Psend_init".split()}
RECEIVES = {name: "source" for name in
            "Recv Irecv Recv_init Sendrecv Sendrecv_replace Isendrecv Isendrecv_replace".split()}
RECEIVES["Precv_init"] = "dest"     # so it is called in mpi.h
TAGS = {"Sendrecv": "recvtag", "Sendrecv_replace": "recvtag", "Isendrecv": "recvtag",
        "Isendrecv_replace": "recvtag"}

# Of a message's wrapper `where` is its communicator, looked up once (layer.h).
_MESSAGE = "inside.sent(where, dest, {count, datatype})"

# What each call tells the profiler of what it sends (tell.h).
TELLS = {
    **{name: _MESSAGE for name in
       "Send Ssend Rsend Bsend Isend Issend Irsend Ibsend Send_init Ssend_init Rsend_init "
       "Bsend_init Sendrecv_replace Isendrecv_replace".split()},
    "Sendrecv": "inside.sent(where, dest, {sendcount, sendtype})",
    "Isendrecv": "inside.sent(where, dest, {sendcount, sendtype})",
    "Psend_init": "inside.sent(where, dest, {partitions * count, datatype})",
    "Barrier": "",
    "Bcast": "tell_broadcast(inside, comm, root, {count, datatype})",
    "Reduce": "tell_reduction(inside, comm, root, {count, datatype})",
    "Allreduce": "tell_doubling(inside, comm, {count, datatype})",
    "Scan": "tell_doubling(inside, comm, {count, datatype})",
    "Exscan": "tell_doubling(inside, comm, {count, datatype})",
    "Reduce_scatter_block": "tell_doubling(inside, comm, {recvcount, datatype})",
    "Reduce_scatter": "tell_doubling(inside, comm, recvcounts, datatype)",
    "Allgather": "tell_ring(inside, comm, {recvcount, recvtype})",
    "Allgatherv": "tell_ring(inside, comm, recvcounts, recvtype)",
    "Gather": "tell_gather(inside, comm, root, {sendcount, sendtype})",
    "Gatherv": "tell_gather(inside, comm, root, {sendcount, sendtype})",
    "Scatter": "tell_scatter(inside, comm, root, {sendcount, sendtype})",
    "Scatterv": "tell_scatter(inside, comm, root, sendcounts, sendtype)",
    "Alltoall": "inside.sent_to_all(comm, {recvcount, recvtype})",
    "Alltoallv": "tell_exchange(inside, comm, sendbuf, sendcounts, sendtype)",
    "Alltoallw": "tell_exchange(inside, comm, sendbuf, sendcounts, sendtypes)",
    "Neighbor_allgather": "tell_neighbours(inside, comm, {sendcount, sendtype})",
    "Neighbor_allgatherv": "tell_neighbours(inside, comm, {sendcount, sendtype})",
    "Neighbor_alltoall": "tell_neighbours(inside, comm, {sendcount, sendtype})",
    "Neighbor_alltoallv": "tell_neighbours(inside, comm, sendcounts, sendtype)",
    "Neighbor_alltoallw": "tell_neighbours(inside, comm, sendcounts, sendtypes)",
}

# Of this process alone, whatever the communicator.
LOCAL = ["Pack", "Pack_size", "Unpack"]

# A successor cannot be told what these returned: they have made something that is not the layer's.
UNREPEATABLE = ["Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect", "Comm_join"]

# Where they do not count, these may be anything: they are not compared with the predecessor's.
NOT_COMPARED = ["sendcount", "recvcount", "sendtype", "recvtype", "peer_comm", "remote_leader"]

# What is received, in the order in which it is noted; `with` is a recorder::visitor.
_PARTS = "with.parts(recvbuf, recvcounts, {}, {}, {})"
RETURNS = {
    **{name: "with.data(buf, count, datatype)" for name in
       "Recv Irecv Recv_init Sendrecv_replace Isendrecv_replace".split()},
    "Sendrecv": "with.data(recvbuf, recvcount, recvtype)",
    "Isendrecv": "with.data(recvbuf, recvcount, recvtype)",
    "Precv_init": "with.data(buf, partitions * count, datatype)",
    "Bcast": "with.data(buffer, count, datatype)",
    "Reduce": "if (is_root(comm, root)) with.data(recvbuf, count, datatype)",
    "Allreduce": "with.data(recvbuf, count, datatype)",
    "Scan": "with.data(recvbuf, count, datatype)",
    "Exscan": "with.data(recvbuf, count, datatype)",
    "Reduce_scatter_block": "with.data(recvbuf, recvcount, datatype)",
    "Reduce_scatter": "with.data(recvbuf, recvcounts[profiler::mine(comm).rank], datatype)",
    "Allgather": "with.data(recvbuf, MPI_Count{recvcount} * profiler::others(comm), recvtype)",
    "Allgatherv": _PARTS.format("displs", "recvtype", "profiler::others(comm)"),
    "Gather": "if (is_root(comm, root)) "
              "with.data(recvbuf, MPI_Count{recvcount} * profiler::others(comm), recvtype)",
    "Gatherv": "if (is_root(comm, root)) " +
               _PARTS.format("displs", "recvtype", "profiler::others(comm)"),
    "Scatter": "with.data(recvbuf, recvcount, recvtype)",
    "Scatterv": "with.data(recvbuf, recvcount, recvtype)",
    "Alltoall": "with.data(recvbuf, MPI_Count{recvcount} * profiler::others(comm), recvtype)",
    "Alltoallv": _PARTS.format("rdispls", "recvtype", "profiler::others(comm)"),
    "Alltoallw": _PARTS.format("rdispls", "recvtypes", "profiler::others(comm)"),
    "Neighbor_allgather": "with.data(recvbuf, MPI_Count{recvcount} * sources_of(with, comm), recvtype)",
    "Neighbor_allgatherv": _PARTS.format("displs", "recvtype", "sources_of(with, comm)"),
    "Neighbor_alltoall": "with.data(recvbuf, MPI_Count{recvcount} * sources_of(with, comm), recvtype)",
    "Neighbor_alltoallv": _PARTS.format("rdispls", "recvtype", "sources_of(with, comm)"),
    "Neighbor_alltoallw": _PARTS.format("rdispls", "recvtypes", "sources_of(with, comm)"),
}

# Of arrays that a call fills.
LENGTHS = {
    "Cart_coords.coords": "maxdims",
    "Cart_get.dims": "maxdims", "Cart_get.periods": "maxdims", "Cart_get.coords": "maxdims",
    "Graph_get.indx": "maxindex", "Graph_get.index": "maxindex", "Graph_get.edges": "maxedges",
    "Graph_neighbors.neighbors": "maxneighbors",
    "Dist_graph_neighbors.sources": "maxindegree",
    "Dist_graph_neighbors.sourceweights":
        "sourceweights == MPI_UNWEIGHTED ? 0 : maxindegree",
    "Dist_graph_neighbors.destinations": "maxoutdegree",
    "Dist_graph_neighbors.destweights":
        "destweights == MPI_UNWEIGHTED ? 0 : maxoutdegree",
}
