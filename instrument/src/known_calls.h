/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string_view>

namespace zc::instrument {

/**
 * What a function of MPI or of the C library does with its arguments, a letter for each:
 *
 *     .   a value, or nothing that matters        i o b   reads, writes, reads and writes memory
 *     u   writes what all ranks get alike         U       the same, and reads (MPI_Bcast)
 *     h   makes a handle                          H       changes one (MPI_Comm_free)
 *     R   opens a request     P   a persistent one    S T   starts one, several
 *     W   waits for one       A   for several         X     may leave some open
 *     F f fopen's result, fclose's argument       M m, N n  the same of MPI files, of windows
 *     c   calls this function                     *   the letter before is that of all others
 */
struct known_call {
    enum class kind {
        pure,       /* what it returns depends on its arguments alone */
        own,        /* on the process, the time, or files */
        sends,      /* a message between two ranks, or receives one, or both */
        collective, /* of all ranks of a communicator */
        ends,       /* does not return */
        allocates,  /* malloc and the like */
        refused     /* has state that does not move */
    };
    std::string_view name, arguments;
    kind what;
    std::string_view why = {}; /* refused: what does not move */
    int tag = -1,
        other_tag = -1; /* sends: the argument that is the tag of what is sent; received */

    /** The letter of argument @number. */
    char effect(unsigned number) const noexcept;
    bool is_communication() const noexcept
    {
        return what == kind::sends || what == kind::collective;
    }
};

/** nullptr: not known. */
const known_call *find_known(std::string_view name);

} // namespace zc::instrument
