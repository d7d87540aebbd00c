/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace zc::migrate {

/**
 * An array of a size that is known when it is made: up to @Few objects are within it, more are
 * allocated. Objects are not initialised.
 */
template <typename Object, std::size_t Few>
class few {
  public:
    explicit few(std::size_t size) : size_(size)
    {
        if (size > Few)
            more_ = std::make_unique_for_overwrite<Object[]>(size);
        data_ = more_ ? more_.get() : few_.data();
    }
    few(const few &) = delete;
    few &operator=(const few &) = delete;

    std::size_t size() const noexcept { return size_; }
    Object *data() noexcept { return data_; }
    Object &operator[](std::size_t i) noexcept { return data_[i]; }
    const Object &operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    std::size_t size_;
    Object *data_;
    std::unique_ptr<Object[]> more_;
    std::array<Object, Few> few_; /* only what is used is written */
};

} // namespace zc::migrate
