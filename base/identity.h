/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_IDENTITY_H_INCLUDED
#define ZC_BASE_IDENTITY_H_INCLUDED

#include <cstdint>

namespace zc {

/** Draws a random number, never 0, that identifies a job or one life of an agent. */
std::uint64_t draw_identity();

} // namespace zc

#endif
