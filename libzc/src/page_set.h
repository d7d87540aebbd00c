/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_PAGE_SET_H_INCLUDED
#define ZC_PAGE_SET_H_INCLUDED

#include "page.h"

#include <vector>

namespace zc {

/**
 * A set of pages as sorted, disjoint, non-adjacent ranges. Landing slots hold
 * one to three of them, so a vector beats any tree.
 */
class page_set {
  public:
    void insert(range r);
    void erase(range r);
    void clear() { ranges_.clear(); }

    std::size_t bytes() const;
    /** Bytes of @r that are in the set. */
    std::size_t bytes_in(range r) const;
    /** The parts of @r that are not in the set, ascending. */
    std::vector<range> missing_from(range r) const;
    /** The parts of @r that are in the set, ascending. */
    std::vector<range> common_with(range r) const;
    const std::vector<range> &ranges() const { return ranges_; }

  private:
    std::vector<range> ranges_;
};

} // namespace zc

#endif /* ZC_PAGE_SET_H_INCLUDED */
