/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_WIRE_H_INCLUDED
#define ZCL_WIRE_H_INCLUDED

/**
 * What goes over a lane.
 *
 *   0        8       12      16      24                       56       64
 *   | magic  |version| zero  | name  | secret                 | zero   |   hello, once
 *
 *   0      4       8       16      24     28     32
 *   | magic| class | id    | len   | pad  | tag  | pad bytes | len bytes     a frame
 *
 * In the byte order of the sender: the magic of another order is another magic. Stream offsets
 * count from the end of the hello.
 */

#include "zcl/lane.h"

#include <cstddef>
#include <cstdint>

namespace zcl {

inline constexpr std::uint64_t kHelloMagic = 0x0031656e616c637aULL; // "zclane1"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kHeaderMagic = 0x7a636c66;
inline constexpr std::uint64_t kLongest = std::uint64_t{1} << 40; // of a payload

struct hello {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t name;
    unsigned char secret[ZCL_SECRET_BYTES];
    std::uint64_t reserved;
};
static_assert(sizeof(hello) == 64);

struct header {
    std::uint32_t magic;
    std::uint32_t page_class;
    std::uint64_t id;
    std::uint64_t len;
    std::uint32_t pad;
    std::uint32_t tag;
};
static_assert(sizeof(header) == 32);

/** Bytes between a header that begins at stream offset @at and a payload of @page_class. */
inline std::uint32_t padding(std::uint64_t at, std::uint32_t page_class)
{
    if (page_class == ZCL_CLASS_NONE)
        return 0;
    return static_cast<std::uint32_t>((page_class - (at + sizeof(header))) % ZCL_PAGE);
}

/** Is this the secret? Takes as long, whatever the answer. */
inline bool same_secret(const unsigned char *a, const unsigned char *b)
{
    unsigned char differs = 0;
    for (std::size_t i = 0; i < ZCL_SECRET_BYTES; i++)
        differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
    return *static_cast<volatile unsigned char *>(&differs) == 0;
}

} // namespace zcl

#endif /* ZCL_WIRE_H_INCLUDED */
