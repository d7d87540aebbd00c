/* SPDX-License-Identifier: BSD-3-Clause */
#include "movable.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>

#include "environment.h"

namespace zc::holder {
namespace {

constexpr const char *kDetach = "CH4_ZC_DETACH";
constexpr const char *kTransports = "UCX_TLS";

/** One of MPICH's settings, which has three names: the last that is set counts. */
struct mpich_setting {
    const char *name;  /* without the prefix */
    const char *value; /* with which a rank can move */
    const char *else_refused;
};

constexpr std::array kSettings = {
    mpich_setting{kDetach, "1", "no rank moves: \"the rank does not leave: it does not answer\""},
    mpich_setting{"NOLOCAL", "1",
                  "ranks that start on one host do not move: \"it has POSIX shared memory\""},
};

/** The name that the user has set, and its value. */
std::pair<std::string, std::string> found(const mpich_setting &one,
                                          std::string (*variable)(const char *name))
{
    for (const char *prefix : {"MPIR_CVAR_", "MPIR_PARAM_", "MPICH_"}) {
        const std::string name = std::string(prefix) + one.name;
        if (std::string value = variable(name.c_str()); !value.empty())
            return {name, std::move(value)};
    }
    return {};
}

/** As MPICH reads it: a number, or a word. */
bool is_true(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (text == "yes" || text == "true" || text == "on" || text == "y" || text == "t")
        return true;
    return std::atoi(text.c_str()) != 0;
}

/** Whether UCX may use shared memory with this list of transports. */
bool has_shared_memory(const std::string &transports)
{
    static const std::set<std::string> memory = {"sm",    "shm",  "mm",  "posix", "sysv",
                                                 "xpmem", "knem", "cma", "all",   "\\all"};
    const bool without = transports.starts_with('^');
    std::stringstream list(without ? transports.substr(1) : transports);
    bool named = false, all = false;
    for (std::string word; std::getline(list, word, ',');) {
        named = named || memory.contains(word);
        all = all || word == "sm" || word == "shm";
    }
    return without ? !all : named;
}

} // namespace

movable_settings settings_of_movable(std::string (*variable)(const char *name))
{
    movable_settings made;
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
        if (!variable(name).empty())
            return made;
    }
    /* MPICH's own ch4:ucx may hang in MPI_Finalize over TCP. */
    const std::string netmod = found({"CH4_NETMOD", "", ""}, variable).second;
    if (!netmod.empty() && netmod != "zc")
        return made;
    for (const mpich_setting &one : kSettings) {
        const auto [name, value] = found(one, variable);
        if (name.empty())
            made.added.emplace_back(std::string("MPIR_CVAR_") + one.name, one.value);
        else if (is_true(value) != is_true(one.value))
            made.kept.push_back(name + "=" + value + " is kept: " + one.else_refused);
        if (one.name == kDetach && !made.kept.empty())
            return made;
    }
    made.moves = true;
    const std::string transports = variable(kTransports);
    if (transports.empty())
        made.added.emplace_back(kTransports, "^sm");
    else if (has_shared_memory(transports))
        made.kept.push_back(std::string(kTransports) + "=" + transports +
                            " is kept: ranks do not move where UCX uses shared memory: \"UCX uses "
                            "shared memory\"");
    return made;
}

movable_settings make_movable()
{
    movable_settings made = settings_of_movable(variable_of_this_process);
    for (const auto &[name, value] : made.added)
        setenv(name.c_str(), value.c_str(), 0);
    return made;
}

} // namespace zc::holder
