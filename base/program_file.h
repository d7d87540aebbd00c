/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_PROGRAM_FILE_H_INCLUDED
#define ZC_BASE_PROGRAM_FILE_H_INCLUDED

#include <filesystem>
#include <string>

namespace zc {

/** Returns the file that execvp(3) would run for @name, without following links; empty: there is
 * none. */
std::filesystem::path program_file(const std::string &name);

} // namespace zc

#endif
