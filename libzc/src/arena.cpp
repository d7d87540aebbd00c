/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena.h"

#include "kernel.h"

#include <cstdint>
#include <iterator>
#include <sys/mman.h>
#include <sys/resource.h>

namespace zc {

namespace {

constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/* After mlockall(MCL_FUTURE) a new mapping is locked: a slot would be populated as a whole,
 * budget or not, and all addresses count against RLIMIT_MEMLOCK. */
bool map_over(range r, int protection)
{
    if (mmap(as_pointer(r.begin), r.size(), protection, kAnonymous | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        return false;
    unlock(r);
    return true;
}

/** Addresses that RLIMIT_AS leaves the process, which reservations count against, too. */
std::size_t addresses_left()
{
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    std::size_t used = mapped_bytes();
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

} // namespace

arena::arena(std::size_t bytes)
{
    constexpr std::size_t kShare = 8;
    bytes = std::min(bytes, round_up(addresses_left() / kShare, kHuge));
    /* Other limits are met by trying: take less rather than nothing. */
    for (bytes = round_up(bytes, kHuge); bytes >= kHuge; bytes = round_up(bytes / 2, kHuge)) {
        void *p = mmap(nullptr, bytes, PROT_NONE, kAnonymous, -1, 0);
        if (p != MAP_FAILED) {
            whole_ = range_at(as_address(p), bytes);
            unlock(whole_);
            free_.emplace(whole_.begin, whole_.end);
            return;
        }
        if (bytes == kHuge)
            return;
    }
}

arena::~arena()
{
    if (!whole_.empty())
        munmap(as_pointer(whole_.begin), whole_.size());
}

range arena::open(std::size_t bytes, std::size_t alignment)
{
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        range hole{it->first, it->second};
        range r = range_at(round_up(hole.begin, alignment), bytes);
        if (!hole.contains(r))
            continue;
        /* What may throw comes first. */
        ranges opened, behind;
        opened.emplace(r.begin, r.end);
        if (r.end < hole.end)
            behind.emplace(r.end, hole.end);
        if (mprotect(as_pointer(r.begin), bytes, PROT_READ | PROT_WRITE) == -1)
            return {};
        if (hole.begin < r.begin)
            it->second = r.begin;
        else
            free_.erase(it);
        open_.merge(opened);
        free_.merge(behind);
        return r;
    }
    return {};
}

void arena::close(range r) noexcept
{
    auto node = open_.extract(r.begin);
    /* Without mappings to spare the range is lost to us, but never reused in
     * an unknown state. Its pages at least go. */
    if (map_over(r, PROT_NONE))
        give_back(std::move(node));
    else
        (void)madvise(as_pointer(r.begin), r.size(), MADV_DONTNEED);
}

bool arena::renew(range r)
{
    return map_over(r, PROT_READ | PROT_WRITE);
}

void arena::give_back(ranges::node_type node) noexcept
{
    auto next = free_.lower_bound(node.key());
    if (next != free_.end() && next->first == node.mapped()) {
        node.mapped() = next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        auto previous = std::prev(next);
        if (previous->second == node.key()) {
            previous->second = node.mapped();
            return;
        }
    }
    free_.insert(next, std::move(node));
}

} // namespace zc
