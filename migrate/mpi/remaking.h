/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <map>
#include <mpi.h>
#include <string>
#include <utility>
#include <vector>

#include "communicator.h"

namespace zc::migrate {

/** A communicator, told so that every process of it can make it again in another world. */
struct communicator_record {
    enum class shape { plain, cartesian, graph, distributed };
    enum class on_error { fatal, returns, own };

    std::int64_t handle = 0;
    std::uint64_t id = 0;
    bool inter = false;
    int rank = 0;
    members local, remote;
    std::uint64_t children = 0;
    std::map<std::uint64_t, std::uint64_t> children_of_some;

    shape topology = shape::plain;
    /* cartesian: sizes and whether they are periodic; graph: index and edges; distributed:
     * sources and destinations */
    std::vector<int> first, second;
    bool weighted = false;
    std::vector<int> first_weights, second_weights;

    std::string name;
    std::vector<std::pair<std::string, std::string>> info;
    on_error handler = on_error::fatal;
    MPI_Errhandler real_handler = MPI_ERRHANDLER_NULL; /* in this process, held */

    std::string to_text() const;
    static communicator_record from_text(const std::string &text);
};

/**
 * All communicators that the program has, MPI_COMM_WORLD first, from one world of the job to the
 * next:
 *
 *     capture() ─▶ release() ─▶ the world changes ─▶ make() ─▶ install()
 *
 * They are made again by all ranks in the order of their ids, which is the same everywhere: each is
 * a collective operation of its members, and no rank waits in one for another that waits in one
 * that comes later.
 */
class remaking {
  public:
    static std::vector<communicator_record> capture();
    /** What of it does not need MPI. */
    static communicator_record describe(const communicator &one);
    /** They are not made again. */
    static void forget(std::vector<communicator_record> &all);
    /** MPI loses what it has of them. Collective over each, not synchronising. */
    static void release();
    /** What MPI has for each of @all, of this process, in their order; MPI_COMM_NULL for
     * MPI_COMM_WORLD. @world: of the job. */
    static std::vector<MPI_Comm> make(const std::vector<communicator_record> &all, MPI_Comm world);
    /** From here on they are the program's; those that it does not have yet are new. Local. */
    static void install(const std::vector<communicator_record> &all,
                        const std::vector<MPI_Comm> &made);
};

} // namespace zc::migrate
