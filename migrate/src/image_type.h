/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>

#include "array.h"
#include "hdf5_handle.h"

namespace zc::migrate::hdf5 {

/** Whose types: this machine's, or those of files, which are the same everywhere (but long double,
 *  which every machine has its own of). */
enum class side { memory, file };

/** Of a unit of @a. */
handle type_of(const array &a, side whose);

/** The name of the type of a stored data set, as array::type_name() has it. */
std::string described(hid_t stored, std::uint64_t units);

} // namespace zc::migrate::hdf5
