/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>

namespace zc::migrate {

/** What an array is made of, apart from its byte order. The last two are the machine's long double:
 *  they mean the same where that has the same format. */
enum class element : std::uint8_t {
    byte,
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f32,
    f64,
    c64,
    c128,
    longdouble,
    longcomplex
};
inline constexpr element kLastElement = element::longcomplex;

std::size_t size_of(element type) noexcept;
const char *name_of(element type) noexcept;

} // namespace zc::migrate
