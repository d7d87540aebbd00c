/* SPDX-License-Identifier: BSD-3-Clause */
#include "levenshtein.h"

#include <algorithm>
#include <vector>

namespace zc::groups {

size_t levenshtein(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t limit,
                   std::pmr::memory_resource *memory)
{
    if (a.size() < b.size())
        std::swap(a, b);
    limit = std::min(limit, a.size());
    const size_t too_far = limit + 1;
    if (a.size() - b.size() > limit)
        return too_far;

    /* row[j]: distance of the first i symbols of a from the first j of b. */
    std::pmr::vector<size_t> row(b.size() + 1, too_far, memory);
    for (size_t j = 0; j <= std::min(limit, b.size()); j++)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); i++) {
        const size_t first = i > limit ? i - limit : 0;
        const size_t last = std::min(b.size(), i + limit);
        if (first > last)
            return too_far;
        size_t diagonal = first > 0 ? row[first - 1] : row[0];
        if (first == 0)
            row[0] = std::min(i, too_far);
        else
            row[first - 1] = too_far; /* left of the band */
        size_t best = first == 0 ? row[0] : too_far;
        for (size_t j = std::max<size_t>(first, 1); j <= last; j++) {
            const size_t above = row[j];
            const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({change, above + 1, row[j - 1] + 1, too_far});
            diagonal = above;
            best = std::min(best, row[j]);
        }
        if (best > limit)
            return too_far;
    }
    return row[b.size()];
}

} // namespace zc::groups
