/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_arena.h"

#include "zcl/lane.h"

#include <algorithm>
#include <sys/mman.h>

namespace zcl {

arena::arena(std::size_t bytes)
    : bytes_((bytes + std::size_t{2} * ZCL_PAGE - 1) / ZCL_PAGE * ZCL_PAGE)
{
}

arena::~arena()
{
    if (base_)
        munmap(base_, bytes_);
}

bool arena::map()
{
    if (base_)
        return true;
    void *at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    base_ = static_cast<char *>(at);
    return true;
}

arena::range arena::hold(std::uint64_t offset, std::size_t least, std::size_t most)
{
    if (!map())
        return {};
    const std::size_t phase = offset % ZCL_PAGE;
    std::size_t best = 0, best_len = 0, gap = 0;
    auto consider = [&](std::size_t from, std::size_t to) {
        std::size_t at = from / ZCL_PAGE * ZCL_PAGE + phase;
        if (at < from)
            at += ZCL_PAGE;
        const std::size_t len = at < to ? std::min(to - at, most) : 0;
        if (len > best_len) {
            best = at;
            best_len = len;
        }
    };
    for (const auto &[begin, end] : held_) {
        if (best_len == most)
            break;
        consider(gap, begin);
        gap = end;
    }
    if (best_len < most)
        consider(gap, bytes_);
    if (best_len < least || best_len == 0)
        return {};
    held_.emplace(best, best + best_len);
    return {base_ + best, best_len};
}

void arena::keep(const char *at, std::size_t len)
{
    const std::size_t begin = static_cast<std::size_t>(at - base_);
    kept_.emplace(begin, begin + len);
}

void arena::release_but_kept(const char *at)
{
    release(at);
    held_.merge(kept_);
}

bool arena::release(const char *at)
{
    if (!base_ || at < base_ || at >= base_ + bytes_)
        return false;
    return held_.erase(static_cast<std::size_t>(at - base_)) == 1;
}

void arena::trim()
{
    if (base_ && held_.empty())
        madvise(base_, bytes_, MADV_DONTNEED);
}

} // namespace zcl
