/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"

namespace zc::holder {
namespace {

constexpr std::uint64_t kPage = 4096;
/* Documentation/admin-guide/mm/pagemap.rst */
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kOfFile = std::uint64_t{1} << 61;
/* What lies in larger mappings is left to the image: looking for it takes seconds. The shadows of
 * sanitizers are such. */
constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;
constexpr std::uint64_t kNowhere = ~std::uint64_t{0}; /* above all addresses */

/** Private, and readable: "rw-p". What the kernel itself has put there is on every host. */
bool is_own(const std::array<char, 5> &mode, const std::string &line)
{
    return mode[0] == 'r' && mode[3] == 'p' && line.find("[v") == std::string::npos;
}

} // namespace

void read_pages(pid_t pid, const std::vector<page_range> &what, std::string &pages)
{
    std::size_t bytes = 0;
    std::vector<iovec> from;
    for (const page_range &each : what) {
        from.push_back({reinterpret_cast<void *>(each.begin), each.end - each.begin});
        bytes += from.back().iov_len;
    }
    pages.resize(bytes);
    const iovec to{pages.data(), bytes};
    if (from.size() <= IOV_MAX &&
        process_vm_readv(pid, &to, 1, from.data(), from.size(), 0) == static_cast<ssize_t>(bytes))
        return;
    /* What the process itself may not read is read in this way only. */
    const std::string path = "/proc/" + std::to_string(pid) + "/mem";
    const descriptor memory{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    std::size_t at = 0;
    for (const iovec &each : from) {
        const auto place = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(each.iov_base));
        const ssize_t got =
            memory.fd < 0 ? -1 : pread(memory.fd, pages.data() + at, each.iov_len, place);
        if (got != static_cast<ssize_t>(each.iov_len))
            throw_errno(got < 0 ? errno : EFAULT, path);
        at += each.iov_len;
    }
}

std::vector<page_range> wiped_on_fork(pid_t pid)
{
    const std::string path = "/proc/" + std::to_string(pid) + "/smaps";
    std::ifstream maps(path);
    if (!maps)
        throw error(ENOENT, path);
    std::vector<page_range> found;
    page_range now{};
    for (std::string line; std::getline(maps, line);) {
        page_range next{};
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &next.begin, &next.end) == 2)
            now = next;
        else if (line.starts_with("VmFlags:") && (line + " ").find(" wf ") != std::string::npos)
            found.push_back(now);
    }
    return found;
}

bool is_own_page(std::uint64_t entry)
{
    return entry & kPresent && !(entry & kOfFile);
}

std::uint64_t anonymous_bytes(pid_t pid)
{
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::uint64_t kib = 0;
    for (std::string line; std::getline(status, line);) {
        if (std::sscanf(line.c_str(), "RssAnon: %" SCNu64, &kib) == 1)
            break;
    }
    return kib << 10;
}

void rank_memory::rewind()
{
    const std::string proc = "/proc/" + std::to_string(pid_) + "/";
    pagemap_ = descriptor{open((proc + "pagemap").c_str(), O_RDONLY | O_CLOEXEC)};
    mappings_.clear();
    anonymous_.clear();
    mapping_ = 0;
    at_ = 0;
    std::ifstream maps(proc + "maps");
    for (std::string line; std::getline(maps, line);) {
        page_range one{};
        std::array<char, 5> mode{};
        unsigned long inode = 0;
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %lu", &one.begin,
                        &one.end, mode.data(), &inode) != 4 ||
            !is_own(mode, line) || one.end - one.begin > kLargest)
            continue;
        mappings_.push_back(one);
        if (inode == 0)
            anonymous_.push_back(one);
    }
}

std::vector<page_range> rank_memory::find_present(const page_range &where,
                                                  const unchanged_pages *unchanged) const
{
    std::vector<page_range> found;
    const auto changed = unchanged ? unchanged->changed(where) : std::vector{where};
    if (changed.empty())
        return found;
    std::array<std::uint64_t, kAtOnce / kPage> entries{};
    const std::size_t wanted = (where.end - where.begin) / kPage * sizeof entries[0];
    /* Of what cannot be told nothing is there. */
    if (pread(pagemap_.fd, entries.data(), wanted,
              static_cast<off_t>(where.begin / kPage * sizeof entries[0])) < 0)
        return found;
    for (const page_range &each : changed) {
        for (std::uint64_t page = each.begin; page < each.end; page += kPage) {
            const std::uint64_t entry = entries[(page - where.begin) / kPage];
            if (is_own_page(entry))
                append(found, {page, page + kPage});
        }
    }
    return found;
}

std::uint64_t rank_memory::position() const noexcept
{
    return at_ > 0 ? at_ : mapping_ < mappings_.size() ? mappings_[mapping_].begin : kNowhere;
}

bool rank_memory::read(read_memory &next, const unchanged_pages *unchanged)
{
    next.ranges.clear();
    if (mapping_ == mappings_.size() || pagemap_.fd < 0) {
        next.pages.clear();
        return false;
    }
    const page_range &mapping = mappings_[mapping_];
    page_range where{at_ ? at_ : mapping.begin, 0};
    where.end = std::min(mapping.end, where.begin + kAtOnce);
    at_ = where.end;
    if (at_ == mapping.end) {
        mapping_++;
        at_ = 0;
    }
    read_present(find_present(where, unchanged), next);
    return true;
}

/** By one call, as each has its price; after a page that has been unmapped meanwhile, which ends a
 * call, by another one. */
void rank_memory::read_present(const std::vector<page_range> &present, read_memory &next) const
{
    static_assert(kAtOnce / kPage <= IOV_MAX);
    std::vector<iovec> from;
    std::size_t bytes = 0;
    for (const page_range &each : present) {
        from.push_back({reinterpret_cast<void *>(each.begin), each.end - each.begin});
        bytes += from.back().iov_len;
    }
    next.pages.resize(bytes); /* what it had stays, as it takes time to fill it with zeros */
    std::size_t filled = 0;
    for (std::size_t first = 0; first < from.size();) {
        const iovec to{next.pages.data() + filled, bytes - filled};
        const ssize_t got =
            process_vm_readv(pid_, &to, 1, from.data() + first, from.size() - first, 0);
        std::size_t left = got > 0 ? static_cast<std::size_t>(got) / kPage * kPage : 0;
        filled += left;
        for (; first < from.size(); first++) {
            const auto begin = reinterpret_cast<std::uintptr_t>(from[first].iov_base);
            const std::size_t read = std::min(left, from[first].iov_len);
            if (read > 0)
                next.ranges.push_back({begin, begin + read});
            left -= read;
            if (read < from[first].iov_len) {
                first++; /* nothing of the rest of this one is read */
                break;
            }
        }
    }
    next.pages.resize(filled);
}

} // namespace zc::holder
