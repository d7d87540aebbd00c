/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_ZEROED_H_INCLUDED
#define ZCP_ZEROED_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <type_traits>

namespace zc::predict {

/**
 * Array of fixed length that starts as zero bytes, on a cache line. Mapped, so that pages of
 * a generous budget cost nothing until they are used: calloc() writes what it takes from
 * memory that was freed before.
 */
template <typename T>
class zeroed {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    explicit zeroed(size_t size) : memory_(map(size * sizeof(T)), {size * sizeof(T)}), size_(size)
    {
    }

    T &operator[](size_t i) { return memory_.get()[i]; }
    const T &operator[](size_t i) const { return memory_.get()[i]; }
    T *data() { return memory_.get(); }
    const T *data() const { return memory_.get(); }
    size_t size() const { return size_; }
    size_t bytes() const { return size_ * sizeof(T); } /* and up to a page */

  private:
    struct unmap {
        size_t bytes;
        void operator()(T *memory) const { ::munmap(memory, bytes); }
    };

    static T *map(size_t bytes)
    {
        void *memory =
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        return static_cast<T *>(memory);
    }

    std::unique_ptr<T, unmap> memory_;
    size_t size_;
};

} // namespace zc::predict

#endif
