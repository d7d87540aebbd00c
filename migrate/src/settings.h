/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fault.h"
#include "preflight.h"

namespace zc::migrate {

/** ZC_MIGRATE and ZC_MIGRATE_*, read once. Bad values throw error(EINVAL) naming the variable. */
struct settings {
    bool on = false;
    bool observe = false;         /* nothing moves, but agents are told what there is to know */
    std::string job;              /* name of the job for zcctl */
    std::string socket_directory; /* of the sockets that zcctl finds; ours alone, mode 0700 */
    std::string checkpoint_directory;
    int keep = 2; /* checkpoints of the job's line that stay, the new one included */
    enum class saving { automatic, copy, stream } saving = saving::automatic;
    bool verify = false;            /* move ranks to their own hosts, unasked */
    std::int64_t verify_every = 10; /* safe points from one of these moves to the next */
    std::string record;             /* directory for checksums of registered data, or empty */
    std::string restart;            /* checkpoint directory to resume from, or empty */
    double timeout_s = 60;          /* silence of a peer that is taken for its death */
    double silence_s = 600;         /* of a rank in a move or a checkpoint: it is dead, too */
    double start_s = 60;            /* until a successor is there */
    double world_s = 60;     /* until ranks are linked up with successors; until the old world
                                is given up; until the new one is entered */
    double patience_s = 60;  /* from a request to the safe point where all have met */
    bool others_run = false; /* while the state of ranks that move is on its way */
    double callback_s = 60;  /* until a function of the program has returned */
    int attempts = 10;       /* safe points tried before messages in flight refuse a move */
    std::size_t record_bytes = std::size_t{64} << 20; /* of a rank's calls up to its first safe
                                                          point; 0: none are noted */
    std::string hosts;       /* where ranks may go: "" as found, "any", or a list */
    std::string launcher;    /* zcm-launch; "": beside libzcm */
    std::string probe;       /* auto, none, or a command with %h and %p */
    preflight_checks checks; /* of a target host */
    enum class libraries { refuse, allow };
    libraries other_libraries = libraries::refuse; /* where a target has other builds of them */
    std::optional<fault> injected;                 /* tests only: where to fail */

    static settings from_environment();
    /** A rank is not to go on with other builds of its libraries. */
    bool libraries_compared() const noexcept
    {
        return checks.build && other_libraries == libraries::refuse;
    }
    bool fault_injected(fault one) const noexcept { return kFaults && injected == one; }
};

/** Does ZC_MIGRATE let ranks move? It is asked before MPI_Init; a bad value is reported after it.
 */
bool ranks_may_move();

/** Why sockets are not in $XDG_RUNTIME_DIR, in a sentence; "" if they are, or that is not set. */
std::string why_not_runtime_directory();

/** ZC_* variables of this process as NAME=VALUE, for a successor that may not inherit them. */
std::vector<std::string> inherited_environment();
/** The same, and those that say which libraries are loaded, and what MPI and UCX do. */
std::vector<std::string> loading_environment();

} // namespace zc::migrate
