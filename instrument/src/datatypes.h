/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "program.h"

#include <cstdint>

namespace zc::instrument {

/** The bytes of a datatype that the MPI library has itself; 0: not known. */
std::uint64_t size_of_datatype(const function &in, const clang::Expr *type);

} // namespace zc::instrument
