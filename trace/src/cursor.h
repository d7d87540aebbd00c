/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_CURSOR_H_INCLUDED
#define ZCT_CURSOR_H_INCLUDED

/* Fields of a file's bytes (zct/format.h). */

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace zc::zct {

/** Thrown inside a block or header; becomes an error with the file's name. */
struct malformed {
    const char *reason;
};

/** Takes fields off the front of some bytes. */
class cursor {
  public:
    explicit cursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    bool at_end() const { return at_ == bytes_.size(); }

    /** What was not taken yet. */
    std::span<const std::uint8_t> rest() const { return bytes_.subspan(at_); }

    std::uint8_t byte()
    {
        if (at_end())
            throw malformed{"a record ends too early"};
        return bytes_[at_++];
    }

    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint64_t part = byte();
            if (shift == 63 && part > 1)
                break;
            value |= (part & 0x7f) << shift;
            if (part < 0x80)
                return value;
        }
        throw malformed{"a number has more than 64 bits"};
    }

    std::int64_t zigzag()
    {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
    }

    std::uint64_t fixed64()
    {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; i++)
            value |= static_cast<std::uint64_t>(byte()) << (8 * i);
        return value;
    }

    std::string string()
    {
        const std::uint64_t len = varint();
        if (len > bytes_.size() - at_)
            throw malformed{"a record ends too early"};
        const auto from = bytes_.subspan(at_, len);
        at_ += len;
        return {from.begin(), from.end()};
    }

  private:
    std::span<const std::uint8_t> bytes_;
    std::size_t at_ = 0;
};

template <typename T>
T narrow(std::int64_t value, const char *reason)
{
    if (value < std::int64_t{std::numeric_limits<T>::min()} ||
        value > std::int64_t{std::numeric_limits<T>::max()})
        throw malformed{reason};
    return static_cast<T>(value);
}

/* Deltas are taken modulo 2^64, so that no file can overflow a sum. */
inline std::uint64_t plus(std::uint64_t value, std::int64_t delta)
{
    return value + static_cast<std::uint64_t>(delta);
}

inline std::int64_t plus(std::int64_t value, std::int64_t delta)
{
    return static_cast<std::int64_t>(plus(static_cast<std::uint64_t>(value), delta));
}

} // namespace zc::zct

#endif
