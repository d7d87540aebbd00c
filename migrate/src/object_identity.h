/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <link.h>
#include <string>

namespace zc::migrate {

/**
 * What tells a build of an object, program or library, from its other builds: the build-id, which
 * is read from memory, since the file may be another one by now. An object without one has size and
 * checksum of its file, "crc32c-CHECKSUM-SIZE".
 */

/** In the notes of @object; "" if it has none. */
std::string build_id_of(const dl_phdr_info &object);
/** Of a file; "" if it cannot be read. */
std::string checksum_of(const std::string &path);

} // namespace zc::migrate
