/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "element.h"

namespace zc::migrate {

/**
 * How one element of a derived type lies in memory, and what it is packed into:
 *
 *     memory   [d d d . i . d d d . i . ]     parts: 3 d at 0, i at 32, 3 d at 48, i at 80
 *     packed   d d d i d d d i                units: 2 of {d d d i}
 *
 * A unit is the shortest sequence of basic elements that the element is a multiple of: images are
 * arrays of units. Never changes.
 */
class layout {
  public:
    /** Basic elements side by side. */
    struct part {
        std::int64_t offset = 0; /* bytes */
        element type = element::byte;
        std::uint64_t count = 0;
    };
    /** The same in a unit, which has no gaps. */
    struct member {
        element type = element::byte;
        std::uint64_t count = 0;
        bool operator==(const member &) const = default;
    };

    static constexpr std::size_t kMostParts = 1 << 20;
    static constexpr std::size_t kMostMembers = 256;
    static constexpr std::uint64_t kMostUnitBytes = 1 << 20;

    /** @parts: in the order of the type map. @extent: from one element to the next, bytes. Throws
     *  error(ENOTSUP), or error(EINVAL) for what is nothing at all. */
    layout(std::vector<part> parts, std::int64_t extent);

    const std::vector<member> &unit() const noexcept { return unit_; }
    std::uint64_t unit_bytes() const noexcept { return unit_bytes_; }
    std::uint64_t units() const noexcept { return packed_bytes_ / unit_bytes_; }
    /** Memory is what it is packed into: no gaps, nothing out of order. */
    bool is_dense() const noexcept { return dense_; }
    /** As people read it: "float64[3]", "{float64[3],int32}[2]". */
    std::string name() const;

    /** Where @count elements at address 0 begin, and end. */
    std::int64_t begin() const noexcept { return begin_; }
    std::int64_t end(std::uint64_t count) const noexcept;

    /** Packed bytes of elements at @base, from the @first-th on. */
    void pack(const std::byte *base, std::uint64_t first, std::span<std::byte> out) const;
    void unpack(std::byte *base, std::uint64_t first, std::span<const std::byte> in) const;

  private:
    struct piece {
        std::int64_t offset;
        std::uint64_t packed, bytes; /* where in the packed element, how many */
    };

    void find_unit(const std::vector<part> &parts);
    template <typename Piece>
    void walk(std::uint64_t first, std::uint64_t bytes, Piece do_piece) const;

    std::vector<member> unit_;
    std::vector<piece> pieces_;
    std::uint64_t unit_bytes_ = 0, packed_bytes_ = 0;
    std::int64_t extent_, begin_ = 0, end_ = 0;
    bool dense_ = false;
};

} // namespace zc::migrate
