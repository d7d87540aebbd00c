/* SPDX-License-Identifier: BSD-3-Clause */
#include "array.h"

#include <cstring>
#include <iterator>

namespace zc::migrate {

namespace {

struct kind {
    const char *name;
    std::size_t size;
};

constexpr kind kKinds[] = {
    {"byte", 1},
    {"int8", 1},
    {"uint8", 1},
    {"int16", 2},
    {"uint16", 2},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"float32", 4},
    {"float64", 8},
    {"complex64", 8},
    {"complex128", 16},
    {"longdouble", sizeof(long double)},
    {"longcomplex", 2 * sizeof(long double)},
};
static_assert(std::size(kKinds) == static_cast<std::size_t>(kLastElement) + 1);

} // namespace

std::size_t size_of(element type) noexcept
{
    return kKinds[static_cast<std::size_t>(type)].size;
}

const char *name_of(element type) noexcept
{
    return kKinds[static_cast<std::size_t>(type)].name;
}

std::uintptr_t array::begin() const noexcept
{
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return shape ? at + static_cast<std::uintptr_t>(shape->begin()) : at;
}

std::uintptr_t array::end() const noexcept
{
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (count == 0)
        return begin();
    return at + (shape ? static_cast<std::uintptr_t>(shape->end(count)) : bytes());
}

void array::pack(std::uint64_t first, std::span<std::byte> out) const
{
    const std::uint64_t from = first * unit_bytes();
    if (is_dense())
        std::memcpy(out.data(), address + from, out.size());
    else
        shape->pack(address, from, out);
}

void array::unpack(std::uint64_t first, std::span<const std::byte> in) const
{
    const std::uint64_t to = first * unit_bytes();
    if (is_dense())
        std::memcpy(address + to, in.data(), in.size());
    else
        shape->unpack(address, to, in);
}

bool is_zero(std::span<const std::byte> memory) noexcept
{
    const std::byte *at = memory.data();
    std::size_t left = memory.size();
    /* Most memory that is not zero shows it at once. */
    for (; left >= 64; at += 64, left -= 64) {
        std::uint64_t words[8], any = 0;
        std::memcpy(words, at, sizeof words);
        for (std::uint64_t word : words)
            any |= word;
        if (any)
            return false;
    }
    for (; left; at++, left--)
        if (*at != std::byte{0})
            return false;
    return true;
}

} // namespace zc::migrate
