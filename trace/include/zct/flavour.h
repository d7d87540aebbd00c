/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_FLAVOUR_H_INCLUDED
#define ZCT_FLAVOUR_H_INCLUDED

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace zc::zct {

/** The ABI: MPICH's is also that of its derivatives. */
enum class flavour { mpich, openmpi };

const char *flavour_name(flavour f);
std::optional<flavour> flavour_parse(const std::string &name);

/** What kind of mpiexec a program is, if it is one. */
std::optional<flavour> flavour_of_launcher(const std::filesystem::path &program);

/**
 * The MPI of a command: that of the first word that is a program linked with
 * one; else the launcher's; else that of the mpiexec in PATH (a script may
 * start it).
 */
std::optional<flavour> flavour_of_command(const std::vector<std::string> &command);

} // namespace zc::zct

#endif
