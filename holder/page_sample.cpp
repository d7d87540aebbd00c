/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_sample.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <sys/uio.h>

#include "crc32c.h"
#include "identity.h"

namespace zc::holder {
namespace {

constexpr std::size_t kAtOnce = 256; /* pages */

/** Steele, Lea and Flood: Fast splittable pseudorandom number generators (2014), the finalizer. */
std::uint64_t mixed(std::uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

std::uint32_t sum_of(std::string_view page)
{
    return zc_crc32c(0, page.data(), page.size());
}

} // namespace

page_sample::page_sample(std::uint64_t bytes)
    : key_(draw_identity()),
      below_(std::numeric_limits<std::uint64_t>::max() / std::max(kOneOf, bytes / kPage / kMost))
{
}

void page_sample::note(std::uint64_t address, std::string_view page)
{
    if (mixed(address ^ key_) < below_)
        sums_[address] = sum_of(page);
}

double page_sample::changed(pid_t pid)
{
    std::vector<iovec> from;
    for (const auto &[address, sum] : sums_)
        from.push_back({reinterpret_cast<void *>(address), kPage});
    std::string pages(kAtOnce * kPage, '\0');
    std::size_t changed = 0;
    for (std::size_t at = 0; at < from.size();) {
        const std::size_t count = std::min(kAtOnce, from.size() - at);
        const iovec to{pages.data(), count * kPage};
        const ssize_t got = process_vm_readv(pid, &to, 1, &from[at], count, 0);
        const std::size_t whole = got > 0 ? static_cast<std::size_t>(got) / kPage : 0;
        for (std::size_t i = 0; i < whole; i++) {
            const auto address = reinterpret_cast<std::uint64_t>(from[at + i].iov_base);
            changed += sums_.at(address) != sum_of({pages.data() + i * kPage, kPage});
        }
        at += whole;
        if (whole < count) /* what has been unmapped ends a call */
            sums_.erase(reinterpret_cast<std::uint64_t>(from[at++].iov_base));
    }
    return sums_.empty() ? 0 : static_cast<double>(changed) / static_cast<double>(sums_.size());
}

} // namespace zc::holder
