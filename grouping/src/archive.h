/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_ARCHIVE_H_INCLUDED
#define ZCP_GROUPING_ARCHIVE_H_INCLUDED

#include <optional>

#include "catalogue.h"
#include "memory.h"

namespace zc::groups {

/** The patterns of the samples that are over, the oldest first; the oldest are forgotten. */
class archive {
  public:
    /** A pattern that came after another, and how many places after that had ended. */
    struct successor {
        catalogue::pattern pattern;
        size_t gap;
    };

    archive(size_t bytes, std::pmr::memory_resource *memory);

    void add(const catalogue &sample);
    size_t size() const { return samples_.size(); }
    const catalogue &operator[](size_t i) const { return samples_[i]; }

    /**
     * What came next after the last occurrence of a pattern in sample @i: in the same
     * sample, or, if the sample ended with it, first in the next one.
     */
    std::optional<successor> after(size_t i, size_t pattern) const;

    static constexpr size_t kSamples = 32;
    static size_t bytes_needed(size_t bytes) { return bytes + kSamples * sizeof(catalogue); }

  private:
    bounded_memory shelf_;
    std::pmr::vector<catalogue> samples_;
};

} // namespace zc::groups

#endif
