/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_PLACES_H_INCLUDED
#define ZCT_PLACES_H_INCLUDED

#include <cstdint>

#include "sorter.h"

namespace zc::zct {

/** The places that values have in their order; equal ones keep theirs. */
class places {
  public:
    explicit places(std::size_t budget) : values_(budget), found_(budget) {}

    void add(std::int64_t value) { values_.add({value, added_++}); }

    /** All were added. */
    void find()
    {
        std::uint64_t place = 0;
        values_.each([&](const numbered &v) { found_.add({v.number, place++}); });
        found_.rewind();
    }

    /** The place of the first value, of the second, ... */
    std::uint64_t take()
    {
        const std::uint64_t place = found_.front()->place;
        found_.next();
        return place;
    }

  private:
    struct numbered {
        std::int64_t value;
        std::uint64_t number; /* that it was added with */
        bool operator<(const numbered &other) const
        {
            return value != other.value ? value < other.value : number < other.number;
        }
    };
    struct placed {
        std::uint64_t number;
        std::uint64_t place;
        bool operator<(const placed &other) const { return number < other.number; }
    };
    sorter<numbered> values_;
    sorter<placed> found_;
    std::uint64_t added_ = 0;
};

} // namespace zc::zct

#endif
