/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mpi.h>
#include <vector>

#include "keyval.h"

namespace zc::migrate {

struct attribute {
    int key; /* the program's number of it */
    std::shared_ptr<const keyval> kind;
    void *value;
    bool late; /* set while the program computed (layer::activity): a successor has it not */
};

/**
 * Processes, by rank in the job; those of other jobs are below 0 (processes::stranger()).
 */
using members = std::vector<int>;
using shared_members = std::shared_ptr<const members>;

/**
 * A communicator as the program has it. What MPI has for it, @real, changes when ranks move. All
 * its processes know it by the same @id.
 */
struct communicator {
    std::atomic<MPI_Comm> real{MPI_COMM_NULL};
    MPI_Comm handle = MPI_COMM_NULL; /* the program's */
    std::uint64_t id = 0;
    bool inter = false;
    int rank = 0; /* this process's */
    shared_members local;
    shared_members remote; /* of an intercommunicator */
    /** Requests keep the list of its peers (requests::keep()). */
    mutable std::atomic<bool> peers_kept{false};

    /** So many were made of it by calls that all its processes make, in the same order. */
    std::uint64_t children = 0;
    /** The same of calls of some of them, by which. */
    std::map<std::uint64_t, std::uint64_t> children_of_some;

    std::vector<attribute> attributes;                /* in the order in which they were set */
    MPI_Comm_errhandler_function *on_error = nullptr; /* the program's own handler */
    /* That, or a predefined one, while MPI has nothing of this communicator. */
    MPI_Errhandler awaited_handler = MPI_ERRHANDLER_NULL;
    std::unique_ptr<members> destinations; /* neighbours; made when it is asked for */

    /** Processes that one can send to, by rank. */
    const members &peers() const noexcept { return inter ? *remote : *local; }
    const shared_members &shared_peers() const noexcept { return inter ? remote : local; }
    int size() const noexcept { return static_cast<int>(local->size()); }
    bool has_strangers() const noexcept;

    void reset();
};

} // namespace zc::migrate
