/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <link.h>
#include <span>
#include <string>
#include <string_view>

namespace zc::migrate {

/**
 * What tells a build of an object, program or library, from its other builds: the build-id, which
 * is read from memory, since the file may be another one by now. An object without one has size and
 * checksum of its file, "crc32c-CHECKSUM-SIZE", or is "replaced-INODE" if that file is not to be
 * found any more.
 */

/** In the notes of @object, as it is in memory; nothing if it has none that is mapped. */
std::span<const unsigned char> build_id_bytes(const dl_phdr_info &object) noexcept;
std::string hexadecimal(std::span<const unsigned char> bytes);
/** The two in one: "" if it has none. */
std::string build_id_of(const dl_phdr_info &object);
/** Of a file; "" if it cannot be read. */
std::string checksum_of(const std::string &path);
/** The same of an open file, from its beginning. */
std::string checksum_of(int file);

/** What is said of a file with the number @inode which is not to be found any more. */
std::string identity_of_replaced(std::uint64_t inode);
/** Are two builds known to be one? Those of files that were replaced are not: these may have the
 * same number on two hosts by chance. */
bool is_same_build(std::string_view one, std::string_view other) noexcept;

std::string identity_of_program();
/** Of the library of this process that has @address within it. */
std::string identity_of_library(const void *address);

/** The name that @object gives itself (DT_SONAME), as it is in memory; "" if it has none. */
std::string_view soname_of(const dl_phdr_info &object) noexcept;

} // namespace zc::migrate
