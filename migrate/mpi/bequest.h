/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "communicator.h"
#include "remaking.h"

namespace zc::migrate {

/** What a successor takes over of the layer between program and MPI, beside the record. */
struct bequest {
    std::vector<communicator_record> communicators;
    std::map<std::int64_t, members> groups;   /* by handle */
    std::vector<std::int64_t> persistent;     /* handles of persistent requests */
    std::vector<std::int64_t> sent, received; /* messages, by rank */

    /** Of this process. */
    static bequest of_this_process();
    std::string to_text() const;
    static bequest from_text(const std::string &text);

    /** In the successor, where the new world is linked: its communicators. Collective. */
    std::vector<MPI_Comm> make(MPI_Comm world) const
    {
        return remaking::make(communicators, world);
    }
    /** It has all of it, with what make() has returned. */
    void take_over(const std::vector<MPI_Comm> &made) const;
};

} // namespace zc::migrate
