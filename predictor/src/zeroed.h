/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_ZEROED_H_INCLUDED
#define ZCP_ZEROED_H_INCLUDED

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace zc::predict {

/**
 * Array of fixed length that starts as zero bytes. From calloc(), so that pages
 * of a generous budget cost nothing until they are used.
 */
template <typename T>
class zeroed {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    explicit zeroed(size_t size)
        : data_(static_cast<T *>(std::calloc(size, sizeof(T)))), size_(size)
    {
        if (!data_)
            throw std::bad_alloc();
    }

    T &operator[](size_t i) { return data_.get()[i]; }
    const T &operator[](size_t i) const { return data_.get()[i]; }
    T *data() { return data_.get(); }
    const T *data() const { return data_.get(); }
    size_t size() const { return size_; }
    size_t bytes() const { return size_ * sizeof(T); }

  private:
    struct release {
        void operator()(T *data) const { std::free(data); }
    };
    std::unique_ptr<T, release> data_;
    size_t size_;
};

} // namespace zc::predict

#endif
