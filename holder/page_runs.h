/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PAGE_RUNS_H_INCLUDED
#define ZC_HOLDER_PAGE_RUNS_H_INCLUDED

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "page_places.h"

namespace zc::holder {

/** Runs of pages, in the form in which a line of an image tells of them (image.h): three numbers of
 * 64 bits for each, the lowest byte first. Of some hundred thousand runs that takes a hundredth of
 * the time that it takes in words. */
class page_runs {
  public:
    /** Instead of a place in the store: the content follows. */
    static constexpr std::uint64_t kFollows = ~std::uint64_t{0};
    static constexpr std::size_t kMost = 4096; /* of one line */
    static constexpr std::size_t kBytes = 24;  /* of a run */

    /** Behind the others: what continues the last one makes that longer. */
    void add(std::uint64_t address, std::uint64_t bytes, std::uint64_t from);
    bool is_empty() const noexcept { return runs_.empty(); }
    /** {@kind: number of runs} and them. */
    std::string line(const char *kind) const;
    /** The runs of @bytes, a multiple of kBytes. */
    static std::vector<stored_pages> of(std::string_view bytes);

  private:
    std::vector<stored_pages> runs_;
};

} // namespace zc::holder

#endif
