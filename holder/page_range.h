/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_RANGE_H_INCLUDED
#define ZC_HOLDER_PAGE_RANGE_H_INCLUDED

#include <cstdint>
#include <vector>

namespace zc::holder {

/** Whole pages of an address space. */
struct page_range {
    std::uint64_t begin, end;
};

/** Adds @next behind @ranges; what it touches there becomes longer. */
inline void append(std::vector<page_range> &ranges, const page_range &next)
{
    if (!ranges.empty() && ranges.back().end == next.begin)
        ranges.back().end = next.end;
    else
        ranges.push_back(next);
}

} // namespace zc::holder

#endif
