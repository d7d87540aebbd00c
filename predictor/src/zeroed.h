/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_ZEROED_H_INCLUDED
#define ZCP_ZEROED_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace zc::predict {

/**
 * Array of fixed length that starts as zero bytes, on a cache line. From calloc(),
 * so that pages of a generous budget cost nothing until they are used.
 */
template <typename T>
class zeroed {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    explicit zeroed(size_t size)
        : memory_(std::calloc(size * sizeof(T) + kLineBytes, 1)), size_(size)
    {
        if (!memory_)
            throw std::bad_alloc();
        const auto first = reinterpret_cast<uintptr_t>(memory_.get());
        const uintptr_t skipped = (kLineBytes - first % kLineBytes) % kLineBytes;
        data_ = reinterpret_cast<T *>(static_cast<char *>(memory_.get()) + skipped);
    }

    T &operator[](size_t i) { return data_[i]; }
    const T &operator[](size_t i) const { return data_[i]; }
    T *data() { return data_; }
    const T *data() const { return data_; }
    size_t size() const { return size_; }
    size_t bytes() const { return size_ * sizeof(T); } /* and up to a line to align it */

  private:
    struct release {
        void operator()(void *memory) const { std::free(memory); }
    };
    static constexpr size_t kLineBytes = 64;
    std::unique_ptr<void, release> memory_;
    T *data_;
    size_t size_;
};

} // namespace zc::predict

#endif
