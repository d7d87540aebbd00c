/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_CATALOGUE_H_INCLUDED
#define ZCP_GROUPING_CATALOGUE_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "teiresias.h"

namespace zc::groups {

/**
 * The patterns of one sample with their lists of offsets, longest first; of equally
 * long ones the one that begins first, then the smaller symbols.
 */
class catalogue {
  public:
    struct pattern {
        std::span<const uint32_t> symbols; /* begins with a literal */
        std::span<const uint32_t> offsets; /* all places where it occurs, ascending */
    };
    /** One occurrence of a pattern. */
    struct occurrence {
        size_t pattern;
        size_t offset;
    };

    /**
     * @patterns: of @sample; sorted in place
     * @words:    most symbols and offsets kept; the shortest patterns are left out
     */
    catalogue(std::span<const uint32_t> sample, std::pmr::vector<teiresias::pattern> &patterns,
              size_t words, std::pmr::memory_resource *memory);
    /** A sample in which nothing was found. */
    catalogue(size_t length, std::pmr::memory_resource *memory);
    catalogue(const catalogue &from, std::pmr::memory_resource *memory);

    size_t size() const { return entries_.size(); }
    pattern operator[](size_t i) const;
    size_t length() const { return length_; }
    /** Were patterns left out? */
    bool partial() const { return partial_; }
    /** Memory of a copy. */
    size_t bytes() const;
    size_t end(const occurrence &o) const { return o.offset + entries_[o.pattern].length; }

    /**
     * The longest pattern that has occurred at least twice before @request; of
     * equally long ones the one closest to it. Its last occurrence before @request.
     */
    std::optional<occurrence> longest_before(size_t request) const;
    /** What ends last; of several the longest. */
    std::optional<occurrence> last() const;
    /** What begins first at @place or after it; of several the longest. */
    std::optional<occurrence> next(size_t place) const;
    /** Did the sample end with this pattern, or in another round of it? */
    bool ended_with(size_t i) const { return entries_[i].at_end != 0; }

  private:
    struct entry {
        uint32_t symbols; /* where they begin */
        uint32_t length;
        uint32_t offsets;
        uint32_t occurrences;
        uint32_t at_end;
    };

    size_t length_;
    bool partial_ = false;
    std::pmr::vector<uint32_t> words_; /* symbols and offsets of each */
    std::pmr::vector<entry> entries_;
};

/**
 * KMP: each pattern that consists of repetitions of a shorter one gives way to that,
 * its fundamental pattern, with all places of @sample where that occurs. The last
 * repetition may be cut short, but two whole ones follow each other, within the
 * pattern or in the sample where it occurs. A pattern that is no more than a
 * beginning of a fundamental one, where that occurs or would occur next, goes.
 * What remains of @patterns is moved to @out.
 */
void replace_by_fundamental(std::span<const uint32_t> sample,
                            std::pmr::vector<teiresias::pattern> &patterns,
                            std::pmr::vector<teiresias::pattern> &out,
                            std::pmr::memory_resource *memory);

/**
 * KMP as section 4.5 of the paper has it: each pattern that consists solely of whole
 * repetitions of a shorter one that is in @patterns, too, gives way to the shortest
 * such. These are moved to @out, with the offsets that they were found with, and take
 * the place of all others. Where no pattern is a repetition, all are moved.
 */
void replace_by_fundamental_found(std::pmr::vector<teiresias::pattern> &patterns,
                                  std::pmr::vector<teiresias::pattern> &out,
                                  std::pmr::memory_resource *memory);

} // namespace zc::groups

#endif
