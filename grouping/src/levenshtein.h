/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_LEVENSHTEIN_H_INCLUDED
#define ZCP_GROUPING_LEVENSHTEIN_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace zc::groups {

/**
 * Fewest insertions, deletions and replacements that turn @a into @b, or
 * @limit + 1 if it takes more than @limit. O(limit · |shorter|) time, O(|b|)
 * memory: only a band along the diagonal can stay within the limit (Ukkonen 1985).
 */
size_t levenshtein(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t limit,
                   std::pmr::memory_resource *memory);

} // namespace zc::groups

#endif
