/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_ARENA_H_INCLUDED
#define ZC_ARENA_H_INCLUDED

#include "page.h"

#include <map>

namespace zc {

/**
 * arena - address space for landing slots, reserved once
 *
 * Inaccessible until a slot opens its part. One reservation keeps the slots
 * together, so that they share mappings and page tables, and away from the
 * addresses that the application's mmap() would pick.
 *
 * Not thread-safe: the pool locks.
 */
class arena {
  public:
    /** Reserves @bytes, or less if the process may not have so many; see size(). Of what a
     *  limit leaves it, it takes an eighth at most. */
    explicit arena(std::size_t bytes);
    ~arena();
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;

    std::size_t size() const { return whole_.size(); }
    range whole() const { return whole_; }

    /** A readable and writable, empty range; {} if there is none left. Throws std::bad_alloc. */
    range open(std::size_t bytes, std::size_t alignment);
    /** Takes back a range that open() has given, with whatever is mapped in it. Needs no memory. */
    void close(range r) noexcept;
    /** Makes an open range like new: empty and with default properties. */
    bool renew(range r);

  private:
    using ranges = std::map<addr_t, addr_t>; /* begin -> end */

    void give_back(ranges::node_type node) noexcept;

    range whole_;
    ranges free_; /* never adjacent */
    ranges open_; /* their nodes go to free_ */
};

} // namespace zc

#endif /* ZC_ARENA_H_INCLUDED */
