/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_SPAWNED_H_INCLUDED
#define ZC_HOLDER_SPAWNED_H_INCLUDED

#include <string>
#include <vector>

#include "holder.h"

namespace zc::holder {

/** Is set for the rank: what its MPI library puts before each command that it spawns, a word in
 * each line (zc_spawned.h of the netmod). */
constexpr const char *kSpawned = "ZC_HOLD_SPAWNED";

/**
 * The words of a zc-hold for what the rank spawns: @self, as this process was called, and those of
 * the options that are not for one world alone. Files are named so that they are the same in
 * whatever folder it is started. @first: the job that the launcher has started.
 */
std::vector<std::string> words_for_spawned(const std::string &self, const settings &how,
                                           const std::string &first);

/** As the rank has them. Throws error if one has a newline, which process managers cannot carry. */
std::string in_lines(const std::vector<std::string> &words);

/** The program @name in the first of @folders, with ":" between them, that has it; in the first of
 * all, if none has. */
std::string program_in(const std::string &folders, const std::string &name);

/** Has a zc-hold started this very process, perhaps as another program before? Its rank then has a
 * parent that carries it, and needs no other. */
bool is_held();

} // namespace zc::holder

#endif
