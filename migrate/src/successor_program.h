/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <csignal>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

#include "wire.h"

namespace zc::migrate {

/** What successors are to be started with; the leaver who has asked for the launcher says it. */
struct start_order {
    std::string program;
    std::vector<std::string> arguments;
    std::string directory;
    std::vector<std::string> environment; /* NAME=VALUE, beside what the launcher has */
    std::vector<calling_card> leavers;    /* one for each successor */

    nlohmann::json to_json() const;
    static start_order from_json(const nlohmann::json &object);
};

/** The variable that tells a successor the descriptor of its wire to the launcher: "fd:N". */
inline constexpr const char *kSuccessorVariable = "ZC_MIGRATE_SUCCESSOR";

/** What mpiexec sends to the process group of this one for the program: ranks are in it, too.
 * Without its clean-up it says by the first that a process has died. */
inline constexpr int kForwarded[] = {SIGUSR1, SIGUSR2, SIGALRM};

/** Sets each of @said, NAME=VALUE, in @all. */
void set_variables(std::vector<std::string> &all, const std::vector<std::string> &said);

/** In a child of @parent, whose signals are blocked: becomes the program of @order, which has
 * @variables and the descriptors @kept. It ends with its parent: the process manager does not know
 * it. */
[[noreturn]] void become_successor(const start_order &order, pid_t parent,
                                   std::vector<std::string> variables,
                                   std::initializer_list<int> kept);

/** What the rank that has the key of @card wants started. Throws error. */
start_order ask_for_order(const calling_card &card);

} // namespace zc::migrate
