/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_RANGE_H_INCLUDED
#define ZC_HOLDER_PAGE_RANGE_H_INCLUDED

#include <cstdint>

namespace zc::holder {

/** Whole pages of an address space. */
struct page_range {
    std::uint64_t begin, end;
};

} // namespace zc::holder

#endif
