/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <mpi.h>
#include <optional>
#include <string>

#include "array.h"
#include "layout.h"

namespace zc::migrate {

/** The element that a predefined type of C, C++ or Fortran is; nothing if it is none, or one that
 *  cannot be saved. */
std::optional<element> predefined(MPI_Datatype type);

/**
 * Give @target the type @type, by its type map if it is derived. Throws error(ENOTSUP), which names
 * @target and says what cannot be saved, or error(EINVAL).
 */
void set_type(array &target, MPI_Datatype type);

} // namespace zc::migrate
