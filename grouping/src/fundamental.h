/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_FUNDAMENTAL_H_INCLUDED
#define ZCP_GROUPING_FUNDAMENTAL_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace zc::groups {

/** Smallest period of @text; 0 if it is empty. See zcp_fundamental_period(). */
size_t fundamental_period(std::span<const uint32_t> text, std::pmr::memory_resource *memory);

} // namespace zc::groups

#endif
