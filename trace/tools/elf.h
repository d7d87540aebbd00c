/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_ELF_H_INCLUDED
#define ZCT_ELF_H_INCLUDED

#include <filesystem>
#include <string>
#include <vector>

namespace zc::zct {

/** Names of the libraries a 64-bit ELF file is linked with; empty for other files. */
std::vector<std::string> needed_libraries(const std::filesystem::path &file);

} // namespace zc::zct

#endif
