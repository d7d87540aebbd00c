/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_MEMBER_LIST_H_INCLUDED
#define ZCT_MEMBER_LIST_H_INCLUDED

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace zc::zct {

/**
 * World ranks of a group's members, -1: outside the world. Kept as a file has them, in runs of
 * consecutive ranks, so that a thousand duplicates of a large world take no more memory than their
 * records. Lists of the same ranks are equal, whatever runs they were added in.
 */
class member_list {
  public:
    /** @first, @first + 1, ...; -1 is added alone. */
    void add(std::int32_t first, std::uint32_t count)
    {
        if (ranges_.empty() || first < 0 || first != next())
            ranges_.push_back({size_, first});
        size_ += count;
    }

    std::size_t size() const { return size_; }

    std::int32_t operator[](std::size_t member) const
    {
        const auto after =
            std::upper_bound(ranges_.begin(), ranges_.end(), member,
                             [](std::size_t m, const range &r) { return m < r.begin; });
        const range &of = *std::prev(after);
        return of.first + static_cast<std::int32_t>(member - of.begin);
    }

    std::vector<std::int32_t> all() const
    {
        std::vector<std::int32_t> ranks;
        ranks.reserve(size_);
        for (std::size_t i = 0; i < size_; i++)
            ranks.push_back((*this)[i]);
        return ranks;
    }

    auto operator<=>(const member_list &) const = default;

  private:
    struct range {
        std::uint32_t begin; /* place of its first member in the list */
        std::int32_t first;
        auto operator<=>(const range &) const = default;
    };

    /** The rank that would continue the last range; -1 if there is none. */
    std::int32_t next() const
    {
        const range &last = ranges_.back();
        return last.first < 0 ? -1 : last.first + static_cast<std::int32_t>(size_ - last.begin);
    }

    std::vector<range> ranges_;
    std::uint32_t size_ = 0;
};

} // namespace zc::zct

#endif
