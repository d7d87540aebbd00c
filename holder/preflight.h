/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PREFLIGHT_H_INCLUDED
#define ZC_HOLDER_PREFLIGHT_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "ends.h"

namespace zc::holder {

/**
 * What the rank @pid has that no other host can give it, each by its name; empty if it can move.
 * The rank runs meanwhile. @detached: it has nothing of UCX, so whatever it has is the program's
 * own, and sockets, devices and shared memory that is not of System V are looked for, too.
 */
std::vector<std::string> cannot_move(pid_t pid, const std::vector<end> &ends, bool detached);

/** What it needs on another host: files, processor features, memory, process numbers, its clock,
 * its limits. @without: a file that it has mapped, and gives up before it moves; -1: none. */
nlohmann::json needs_of(pid_t pid, int without = -1);
/** KiB of its memory, as needs_of() has them. */
std::uint64_t memory_of(pid_t pid);

/** Who this process is outside of user namespaces, and whether what it starts is to be in one. */
nlohmann::json credentials();

/** Why a rank of a process that is @theirs cannot come to one that is @here: in a user namespace
 * groups have no numbers that CRIU could restore. Empty: it can. */
std::string credentials_reason(const nlohmann::json &theirs, const nlohmann::json &here);

/** What of @needs this host has not, each by its name; but for memory (store_room.h). */
std::vector<std::string> lacks(const nlohmann::json &needs);

/** Are the process numbers of @needs taken here, in the caller's PID namespace? */
bool has_taken(const nlohmann::json &needs);

/** A process number after which many are free that are not of @needs. */
pid_t number_before_free(const nlohmann::json &needs);

/** "a, b, c" */
std::string joined(const std::vector<std::string> &reasons);

} // namespace zc::holder

#endif
