/* SPDX-License-Identifier: BSD-3-Clause */
#include "write_tracker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <utility>

#include "error.h"

namespace zc::holder {
namespace {

/* Of Linux 6.7's linux/fs.h and linux/userfaultfd.h, which Debian 12 does not have. */
struct scan_region {
    std::uint64_t start, end, categories;
};
struct scan_argument {
    std::uint64_t size, flags, start, end, walk_end, regions, regions_length, max_pages;
    std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, scan_argument);
constexpr std::uint64_t kProtectMatching = 1 << 0; /* of flags */
enum category : std::uint64_t { kTracked = 1 << 0, kWritten = 1 << 1, kPresent = 1 << 3 };
constexpr std::uint64_t kUnpopulated = 1 << 13, kAsync = 1 << 15; /* of features */

constexpr std::size_t kAtOnce = 512;
constexpr std::uint64_t kStep = 1 << 30; /* takes some milliseconds */
constexpr std::size_t kProbe = 4096;

/** Calls @each with what is in all of @wanted, and in none of @unwanted, of the categories. */
void scan(int pagemap, const page_range &where, std::uint64_t flags, std::uint64_t wanted,
          std::uint64_t unwanted, const std::function<void(const page_range &)> &each)
{
    std::array<scan_region, kAtOnce> found;
    scan_argument how{};
    how.size = sizeof how;
    how.flags = flags;
    how.end = where.end;
    how.regions = reinterpret_cast<std::uint64_t>(found.data());
    how.regions_length = found.size();
    how.category_mask = wanted | unwanted;
    how.category_inverted = unwanted;
    how.return_mask = wanted;
    for (how.start = where.begin; how.start < where.end; how.start = how.walk_end) {
        const int count = ioctl(pagemap, kScan, &how);
        if (count < 0)
            throw_errno(errno, "PAGEMAP_SCAN");
        for (int i = 0; i < count; i++)
            each({found[i].start, found[i].end});
        if (how.walk_end <= how.start)
            throw error(EIO, "PAGEMAP_SCAN goes on nowhere");
    }
}

descriptor own_userfault()
{
    return descriptor{
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))};
}

struct probed_page {
    probed_page()
        : at(mmap(nullptr, kProbe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        if (at == MAP_FAILED)
            throw_errno(errno, "mmap");
        std::memset(at, 1, kProbe);
    }
    ~probed_page() { munmap(at, kProbe); }
    probed_page(const probed_page &) = delete;
    probed_page &operator=(const probed_page &) = delete;
    page_range range() const
    {
        const auto begin = reinterpret_cast<std::uint64_t>(at);
        return {begin, begin + kProbe};
    }
    void *at;
};

/** Kernels before 6.13 left a page that mremap(2) has moved protected, so that its new place seemed
 * unwritten when it was tracked the next time. */
void probe_moves(write_tracker &own)
{
    probed_page from, to;
    const auto nothing = [](const page_range & /*unused*/) {};
    const auto until = write_tracker::time_point::max();
    own.follow({from.range(), to.range()});
    own.protect(nothing, until);
    if (own.unwritten(to.range()).empty())
        throw error(ENOTSUP, "the kernel tracks no writes to memory");
    if (mremap(from.at, kProbe, kProbe, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to.at) !=
        to.at)
        throw_errno(errno, "mremap");
    bool is_written = false;
    own.follow({to.range()});
    own.protect([&](const page_range & /*unused*/) { is_written = true; }, until);
    if (!is_written)
        throw error(ENOTSUP, "the kernel does not notice what mremap(2) moves");
}

} // namespace

write_tracker::write_tracker(pid_t pid, descriptor userfault)
    : userfault_(std::move(userfault)),
      pagemap_(open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC))
{
    if (pagemap_.fd < 0)
        throw_errno(errno, "pagemap");
    if (userfault_.fd < 0)
        throw error(EBADF, "no userfaultfd has come");
    uffdio_api what{};
    what.api = UFFD_API;
    what.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kUnpopulated | kAsync;
    if (ioctl(userfault_.fd, UFFDIO_API, &what) != 0)
        throw_errno(errno, "userfaultfd without UFFD_FEATURE_WP_ASYNC");
}

void write_tracker::check_kernel()
{
    static const bool looked = [] {
        write_tracker own(getpid(), own_userfault());
        probe_moves(own);
        return true;
    }(); /* again, if it has thrown */
    static_cast<void>(looked);
}

void write_tracker::follow(const std::vector<page_range> &mappings)
{
    followed_.clear();
    for (const page_range &mapping : mappings) {
        uffdio_register what{};
        what.range = {mapping.begin, mapping.end - mapping.begin};
        what.mode = UFFDIO_REGISTER_MODE_WP;
        if (ioctl(userfault_.fd, UFFDIO_REGISTER, &what) == 0)
            followed_.push_back(mapping);
    }
}

bool write_tracker::protect(const std::function<void(const page_range &)> &each, time_point until)
{
    for (const page_range &mapping : followed_) {
        for (std::uint64_t at = mapping.begin; at < mapping.end; at += kStep) {
            if (std::chrono::steady_clock::now() > until)
                return false;
            scan(pagemap_.fd, {at, std::min(mapping.end, at + kStep)}, kProtectMatching,
                 kTracked | kWritten | kPresent, 0, each);
        }
    }
    return true;
}

std::vector<page_range> write_tracker::unwritten(const page_range &where) const
{
    std::vector<page_range> found;
    try {
        scan(pagemap_.fd, where, 0, kTracked | kPresent, kWritten,
             [&](const page_range &each) { found.push_back(each); });
    } catch (const error &) {
        /* As where the process has ended: of the rest it is not known. */
    }
    return found;
}

} // namespace zc::holder
