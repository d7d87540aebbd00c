/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "error.h"

namespace zc::migrate {

/** Can this build fail on purpose? A package cannot: it is built with ZC_FAULTS=OFF. */
inline constexpr bool kFaults = ZC_FAULTS;

/** What a test lets fail, by its name in ZC_MIGRATE_FAULT. */
enum class fault {
    no_program,             /* rank 0, asked for a move: the target hosts lack the program */
    no_library,             /* the same: its libraries are those in ZC_MIGRATE_DIR there */
    other_build,            /* the same: its program there is another one */
    other_build_late,       /* the leaver: the successor's program is another one than its own */
    other_processor,        /* rank 0, asked for a move: ranks have had what the target lacks */
    no_memory,              /* the successor, greeted: its host has no memory */
    no_memory_told,         /* rank 0, asked for a move: the target hosts have no memory */
    successor_killed_early, /* the successor, before it has answered the greeting: killed */
    successor_killed_data,  /* the successor, when it is to receive an array: killed */
    successor_exits,        /* the successor, before it acknowledges its data: exits */
    successor_killed,       /* the successor, before it acknowledges its data: killed */
    successor_killed_ready, /* the successor, when it has acknowledged its data, and a second
                               before that is judged: killed */
    successor_killed_late,  /* the first successor, after go, when all link up with it: killed */
    successor_stops,        /* the successor, before it receives a large array: stopped */
    corrupt,                /* the leaver, sending any array: one bit of each segment is wrong */
    corrupt_early,          /* the same, and all leavers but the first begin to send late */
    corrupt_large,          /* the same as corrupt, of arrays of several segments only */
    leaver_dies,            /* the leaver, when the move is decided on: killed */
    waits_in_stand_by,    /* rank 0's thread, when the successors of the first move stand by: makes
                             the file "waits" in ZC_MIGRATE_DIR, and goes on when that is removed */
    waits_in_negotiation, /* the same: the last rank of a job that has not moved, when it has come
                             to where all meet, and the others do not know it yet */
    waits_in_spawn, /* the same: the first leaver of such a job, when it comes to this phase */
    waits_in_data,  /* the same in the next phases */
    waits_in_verdict,
    waits_in_link_up,
    waits_in_rebuild,
    settles_late, /* all but rank 0, when a request is over: settle it a second later */
    slow_disk,    /* all but rank 0, writing a checkpoint: wait after each block */
    no_room,      /* every rank, saving: its host has no room for copies */
};

struct named_fault {
    fault what;
    std::string_view name;
};

inline constexpr auto kFaultNames = std::to_array<named_fault>({
    {fault::no_program, "no-program"},
    {fault::no_library, "no-library"},
    {fault::other_build, "other-build"},
    {fault::other_build_late, "other-build-late"},
    {fault::other_processor, "other-processor"},
    {fault::no_memory, "no-memory"},
    {fault::no_memory_told, "no-memory-told"},
    {fault::successor_killed_early, "successor-killed-early"},
    {fault::successor_killed_data, "successor-killed-data"},
    {fault::successor_exits, "successor-exits"},
    {fault::successor_killed, "successor-killed"},
    {fault::successor_killed_ready, "successor-killed-ready"},
    {fault::successor_killed_late, "successor-killed-late"},
    {fault::successor_stops, "successor-stops"},
    {fault::corrupt, "corrupt"},
    {fault::corrupt_early, "corrupt-early"},
    {fault::corrupt_large, "corrupt-large"},
    {fault::leaver_dies, "leaver-dies"},
    {fault::waits_in_stand_by, "waits-in-stand-by"},
    {fault::waits_in_negotiation, "waits-in-negotiation"},
    {fault::waits_in_spawn, "waits-in-spawn"},
    {fault::waits_in_data, "waits-in-data"},
    {fault::waits_in_verdict, "waits-in-verdict"},
    {fault::waits_in_link_up, "waits-in-link-up"},
    {fault::waits_in_rebuild, "waits-in-rebuild"},
    {fault::settles_late, "settles-late"},
    {fault::slow_disk, "slow-disk"},
    {fault::no_room, "no-room"},
});

static_assert(
    [] {
        for (std::size_t i = 0; i < kFaultNames.size(); i++)
            if (kFaultNames[i].what != static_cast<fault>(i))
                return false;
        return kFaultNames.back().what == fault::no_room;
    }(),
    "the table names each fault once, in the order of the enumeration");

/**
 * The fault that @name means, nothing if it is empty. Throws error(EINVAL): a name that is
 * misspelt would make a test pass that tests nothing.
 */
inline std::optional<fault> fault_of(std::string_view name)
{
    if (name.empty())
        return std::nullopt;
    const std::string complaint = "bad value of ZC_MIGRATE_FAULT: " + std::string(name);
    if (!kFaults)
        throw error(EINVAL, complaint + " (this build cannot fail on purpose: ZC_FAULTS is off)");
    std::string known;
    for (const named_fault &one : kFaultNames) {
        if (one.name == name)
            return one.what;
        known.append(known.empty() ? "" : ", ").append(one.name);
    }
    throw error(EINVAL, complaint + " (known: " + known + ")");
}

} // namespace zc::migrate
