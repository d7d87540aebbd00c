/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_MEMORY_H_INCLUDED
#define ZCP_GROUPING_MEMORY_H_INCLUDED

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <vector>

namespace zc::groups {

/**
 * Part of a heap, or of another such part, with a limit. What does not fit throws
 * std::bad_alloc and changes nothing.
 */
class bounded_memory final : public std::pmr::memory_resource {
  public:
    explicit bounded_memory(size_t limit,
                            std::pmr::memory_resource *upstream = std::pmr::new_delete_resource())
        : limit_(limit), upstream_(upstream)
    {
    }

    size_t limit() const { return limit_; }
    size_t used() const { return used_; }
    size_t peak() const { return peak_; }

  private:
    void *do_allocate(size_t bytes, size_t alignment) override
    {
        if (bytes > limit_ - used_)
            throw std::bad_alloc();
        void *memory = upstream_->allocate(bytes, alignment);
        used_ += bytes;
        peak_ = std::max(peak_, used_);
        return memory;
    }

    void do_deallocate(void *memory, size_t bytes, size_t alignment) override
    {
        upstream_->deallocate(memory, bytes, alignment);
        used_ -= bytes;
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    size_t limit_;
    std::pmr::memory_resource *upstream_;
    size_t used_ = 0;
    size_t peak_ = 0;
};

/** Takes exactly what it is told to: growth by doubling would need thrice as much. */
template <typename T>
std::pmr::vector<T> reserved(size_t capacity, std::pmr::memory_resource *memory)
{
    std::pmr::vector<T> out(memory);
    out.reserve(capacity);
    return out;
}

} // namespace zc::groups

#endif
