/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_IDENTITY_H_INCLUDED
#define ZC_BASE_IDENTITY_H_INCLUDED

#include <cstdint>

namespace zc {

/** A random number that nobody else has drawn, never 0: of a job, of an agent. */
std::uint64_t draw_identity();

} // namespace zc

#endif
