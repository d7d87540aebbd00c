/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zc::migrate {

/** What an array is made of, apart from its byte order. */
enum class element : std::uint8_t { byte, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };

std::size_t size_of(element type) noexcept;
const char *name_of(element type) noexcept;

/** Registered memory: the program's, under a name. */
struct array {
    std::string name;
    std::byte *address = nullptr;
    std::uint64_t count = 0;
    element type = element::byte;

    std::uint64_t bytes() const noexcept { return count * size_of(type); }
    std::span<std::byte> memory() const noexcept { return {address, bytes()}; }
};

/** Whether every byte of @memory is zero. */
bool is_zero(std::span<const std::byte> memory) noexcept;

} // namespace zc::migrate
