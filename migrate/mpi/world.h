/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <mpi.h>
#include <string>
#include <vector>

#include "clock.h"

namespace zc::migrate {

/**
 * The communicators of the job. Each rank has an MPI_COMM_WORLD of its own (so that
 * it can leave: MPI_Finalize is collective over it), and they are linked here.
 */
struct world {
    MPI_Comm user = MPI_COMM_NULL; /* the program's: its wildcards must not meet our messages */
    MPI_Comm ours = MPI_COMM_NULL;
    int rank = 0;
    int size = 1;

    /** Collective, successors included: gives up the communicators. */
    void disconnect();
};

/**
 * The new world, with the ranks of @old, out of the ranks that stay and one successor of each of
 * its ranks @leavers. Collective over all these and the leavers, which are the bridge: the pairs of
 * leaver and successor join two by two, so that k of them take log2(k) rounds, then those who stay
 * join them.
 *
 *     old  {0 1 2 3 4}   leavers {1 2 4}
 *
 *     {1 1'} {2 2'} {4 4'}  ─▶  {1 1' 2 2'} {4 4'}  ─▶  {1 1' 2 2' 4 4'}
 *     {0 3}                 ─▶  {0 3 1 1' 2 2' 4 4'} ─▶  new {0 1' 2' 3 4'}
 *
 * Members pass old and, if they leave, the line to their successor (leaver 0, successor 1). The
 * successor of leavers[i] passes an empty old. All pass the index i of theirs, -1 if they stay.
 */
struct growth {
    const world *old = nullptr;
    std::vector<int> leavers;
    int index = -1;
    int rank = 0;                  /* of this process in both worlds */
    int size = 1;                  /* of both */
    MPI_Comm line = MPI_COMM_NULL; /* given up */
};
world grow(const growth &how);

/** Ends the job at the error @code of what makes the new world: there is no way back from go. */
[[noreturn]] void end_unlinked(int code);

/** Collective over @ranks of @comm, which are in that order in the new communicator. */
MPI_Comm part_of(MPI_Comm comm, const std::vector<int> &ranks);

/**
 * Give up a communicator that spans worlds. Collective. MPI_Comm_disconnect, but for Open
 * MPI 4, whose MPI_Comm_disconnect hangs (a PMIx_Fence over several jobs never ends):
 * there it is freed, and its processes can leave all the same.
 */
void part(MPI_Comm &comm);

/**
 * Let MPI answer others. By a test of a request that never completes: MPI_Iprobe does
 * nothing for those of other worlds on a communicator of one process (MPICH 4.0.2).
 */
void make_progress();
/** Before MPI_Finalize. */
void end_progress();

/**
 * Wait without occupying the processor: others on this host start programs meanwhile. If a rank is
 * lost the job ends, with its name, and not by the error handler of MPI_COMM_WORLD or @over, the
 * communicator of @request.
 */
void wait_gently(MPI_Request &request, MPI_Comm over = MPI_COMM_WORLD);

/** Starts a nonblocking operation of all of @over by @start, and waits for it. Collective. */
void carry_out(MPI_Comm over, const std::function<int(MPI_Request *)> &start);

/** Everyone hears the first complaint, "" if there is none. Collective. */
std::string agree(MPI_Comm comm, const std::string &complaint);

/** Everyone has the root's text. Collective. */
void share(MPI_Comm comm, int root, std::string &text);

/** Everyone has everyone's text, by rank. Collective. */
std::vector<std::string> gather(MPI_Comm comm, const std::string &text);

/** Rank 0 has everyone's text, by rank; the others have none. Texts that are too long together for
 * MPI are taken for empty. Collective. */
std::vector<std::string> gather_at_first(MPI_Comm comm, const std::string &text);

/** Least of each value over the ranks. Collective. */
std::vector<int> least(MPI_Comm comm, const std::vector<int> &values);
/** Greatest and sum of each value over the ranks. Collective. */
std::vector<double> greatest(MPI_Comm comm, std::vector<double> values);
std::vector<double> total(MPI_Comm comm, std::vector<double> values);

} // namespace zc::migrate
