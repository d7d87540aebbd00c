/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loaded_libraries.h"

namespace zc::migrate {

/**
 * What a process finds out about program and host before it could be a rank there. Before a move
 * rank 0 has the launcher run `ZC_PREFLIGHT=1 PROGRAM` on the target host: the program loads all
 * its libraries, libzcm's constructor (mpi/preflight_run.cpp) initialises and finalizes MPI, prints
 * these facts as one line, and ends the process before main().
 */
struct preflight {
    std::string program;        /* build-id, or a checksum of the file if it has none */
    std::string library;        /* the same of libzcm */
    std::uint64_t features = 0; /* of the processor, by feature_names() */
    std::uint64_t memory = 0;   /* bytes that could be had: the machine's and the cgroup's */
    std::string mpi;            /* why MPI cannot be initialised; "" if it can */
    loaded_libraries libraries; /* that the process has loaded when it tells this */

    /** Of this process, without MPI and without what it has loaded, which changes. */
    static preflight of_this_process();
    /** One line, by which it is found among what else is printed. */
    std::string to_line() const;
    /** The facts in the output of a process. Throws error(EBADMSG) if they are not there. */
    static preflight find_in(std::string_view output);
};

/** Names of instruction sets, as /proc/cpuinfo has them; the place of each is its bit. */
const std::vector<std::string_view> &feature_names();
/** What of them is in the first line of flags of @cpuinfo. */
std::uint64_t features_in(std::string_view cpuinfo);

/** Which checks are made (ZC_MIGRATE_PREFLIGHT: "all", "none", or names with commas between them).
 */
struct preflight_checks {
    bool run = true; /* the program is run there at all */
    bool build = true, features = true, memory = true, network = true;

    /** Throws error(EINVAL) for a name that there is not. */
    static preflight_checks from(const std::string &text);
};

/**
 * Why a successor cannot run on @host, in a sentence which names host, check, what was found and
 * what is needed; "" if it can. @needed.features: what all ranks have had so far.
 */
std::string why_not(const preflight &needed, const preflight &found, const std::string &host,
                    const preflight_checks &checks);
/** The same of @bytes of state that are to come there. */
std::string why_no_room(std::uint64_t bytes, std::uint64_t found, const std::string &host);

} // namespace zc::migrate
