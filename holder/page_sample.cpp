/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_sample.h"

#include <algorithm>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <sys/uio.h>

#include "crc32c.h"
#include "descriptor.h"
#include "identity.h"
#include "rank_memory.h"

namespace zc::holder {
namespace {

constexpr std::size_t kAtOnce = 256;                          /* pages */
constexpr std::uint64_t kMostTried = 16 * page_sample::kMost; /* that may be there */

std::uint32_t sum_of(std::string_view page)
{
    return zc_crc32c(0, page.data(), page.size());
}

/** Calls @each(address, page) for the pages at @addresses that the process @pid has, and
 * @none(address) for the others. */
template <class F, class G>
void read_each(pid_t pid, const std::vector<std::uint64_t> &addresses, F each, G none)
{
    constexpr std::size_t kPage = page_sample::kPage;
    std::vector<iovec> from;
    from.reserve(addresses.size());
    for (const std::uint64_t address : addresses)
        from.push_back({reinterpret_cast<void *>(address), kPage});
    std::string pages(kAtOnce * kPage, '\0');
    for (std::size_t at = 0; at < from.size();) {
        const std::size_t count = std::min(kAtOnce, from.size() - at);
        const iovec to{pages.data(), count * kPage};
        const ssize_t got = process_vm_readv(pid, &to, 1, &from[at], count, 0);
        const std::size_t whole = got > 0 ? static_cast<std::size_t>(got) / kPage : 0;
        for (std::size_t i = 0; i < whole; i++)
            each(addresses[at + i], std::string_view(pages.data() + i * kPage, kPage));
        at += whole;
        if (whole < count) /* what has been unmapped ends a call */
            none(addresses[at++]);
    }
}

} // namespace

page_sample::page_sample(std::uint64_t bytes)
    : one_of_(std::max(kOneOf, bytes / kPage / kMost | 1)), first_(draw_identity() % one_of_)
{
}

void page_sample::note(std::uint64_t address, std::string_view page)
{
    if (address / kPage % one_of_ != first_)
        return;
    sums_[address] = sum_of(page);
    if (sums_.size() <= 3 * kMost)
        return;
    one_of_ *= 3;
    std::erase_if(sums_, [&](const auto &each) { return each.first / kPage % one_of_ != first_; });
}

/** The pages of the sample that are. */
std::vector<std::uint64_t> page_sample::there(pid_t pid,
                                              const std::vector<page_range> &mappings) const
{
    const std::string path = "/proc/" + std::to_string(pid) + "/pagemap";
    const descriptor pagemap{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    std::uint64_t tried = 0;
    std::vector<std::uint64_t> found;
    for (const page_range &each : mappings) {
        const std::uint64_t begin = each.begin / kPage;
        std::uint64_t page = begin + (first_ + one_of_ - begin % one_of_) % one_of_;
        for (; page < each.end / kPage; page += one_of_) {
            std::uint64_t entry = 0;
            if (++tried > kMostTried)
                return {};
            if (pread(pagemap.fd, &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) ==
                    sizeof entry &&
                is_own_page(entry))
                found.push_back(page * kPage);
        }
    }
    return found;
}

void page_sample::note_all(pid_t pid, const std::vector<page_range> &mappings)
{
    read_each(
        pid, there(pid, mappings),
        [&](std::uint64_t address, std::string_view page) { sums_[address] = sum_of(page); },
        [](std::uint64_t) {});
}

page_sample::shares page_sample::changed(pid_t pid, std::uint64_t address)
{
    struct part {
        std::size_t changed = 0, all = 0;
        double share() const
        {
            return all ? static_cast<double>(changed) / static_cast<double>(all) : 0;
        }
    } below, above;
    std::vector<std::uint64_t> addresses;
    addresses.reserve(sums_.size());
    for (const auto &[where, sum] : sums_)
        addresses.push_back(where);
    read_each(
        pid, addresses,
        [&](std::uint64_t where, std::string_view page) {
            part &of = where < address ? below : above;
            of.all++;
            of.changed += sums_.at(where) != sum_of(page);
        },
        [&](std::uint64_t where) { sums_.erase(where); });
    return {below.share(), above.share()};
}

} // namespace zc::holder
