/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "element.h"
#include "layout.h"

namespace zc::migrate {

/**
 * Registered memory: the program's, under a name. What is saved of it are units without gaps: its
 * elements, or those of its layout if they are of a derived type.
 */
struct array {
    std::string name;
    std::byte *address = nullptr;
    std::uint64_t count = 0; /* elements */
    element type = element::byte;
    std::shared_ptr<const layout> shape = nullptr; /* of a derived type; type means nothing then */

    std::uint64_t unit_bytes() const noexcept
    {
        return shape ? shape->unit_bytes() : size_of(type);
    }
    std::uint64_t units() const noexcept { return count * (shape ? shape->units() : 1); }
    std::uint64_t bytes() const noexcept { return units() * unit_bytes(); }
    bool is_dense() const noexcept { return !shape || shape->is_dense(); }
    /** As people read it, and as both sides of a move compare it. */
    std::string type_name() const { return shape ? shape->name() : name_of(type); }

    /** Where its memory begins and ends, gaps included. */
    std::uintptr_t begin() const noexcept;
    std::uintptr_t end() const noexcept;

    /** Units from the @first on, as many as there are in @out or @in. */
    void pack(std::uint64_t first, std::span<std::byte> out) const;
    void unpack(std::uint64_t first, std::span<const std::byte> in) const;
};

/** Whether every byte of @memory is zero. */
bool is_zero(std::span<const std::byte> memory) noexcept;

} // namespace zc::migrate
