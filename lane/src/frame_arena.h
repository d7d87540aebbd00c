/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCL_FRAME_ARENA_H_INCLUDED
#define ZCL_FRAME_ARENA_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <map>

namespace zcl {

/**
 * Landing memory of one lane: address space, in which ranges are held.
 *
 *   base |aaaaaaaa....bbbbbbb|tail ......................|
 *
 * The first gap that will do is taken, so the same pages are used again and again. There is no
 * memory behind what was never used; that of what was is kept until trim().
 */
class arena {
  public:
    explicit arena(std::size_t bytes);
    ~arena();
    arena(const arena &) = delete;
    arena &operator=(const arena &) = delete;

    struct range {
        char *at = nullptr;
        std::size_t len = 0;
    };

    /**
     * Holds a range that begins at @offset within a page: of @most bytes, or if there is no such
     * gap of the widest there is, but not less than @least. Empty: no room, or no memory.
     */
    range hold(std::uint64_t offset, std::size_t least, std::size_t most);
    /** This part of a range that is held stays held when release_but_kept() gives it back. */
    void keep(const char *at, std::size_t len);
    /** Gives back the range that begins at @at, but for what keep() has named. Needs no memory. */
    void release_but_kept(const char *at);
    /** Gives back the range that begins at @at; false: there is none. */
    bool release(const char *at);
    /** Nothing is held. */
    bool idle() const { return held_.empty(); }
    /** Gives memory back to the system, if nothing is held. */
    void trim();

  private:
    bool map();

    std::size_t bytes_;
    char *base_ = nullptr;
    std::map<std::size_t, std::size_t> held_, kept_; // begin, end
};

} // namespace zcl

#endif /* ZCL_FRAME_ARENA_H_INCLUDED */
