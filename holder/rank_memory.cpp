/* SPDX-License-Identifier: BSD-3-Clause */
#include "rank_memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
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

/** Private, and readable: "rw-p". What the kernel itself has put there is on every host. */
bool is_own(const std::array<char, 5> &mode, const std::string &line)
{
    return mode[0] == 'r' && mode[3] == 'p' && line.find("[v") == std::string::npos;
}

} // namespace

void read_pages(pid_t pid, const page_range &what, std::string &pages)
{
    const std::size_t bytes = what.end - what.begin;
    pages.resize(bytes);
    const iovec to{pages.data(), bytes};
    const iovec from{reinterpret_cast<void *>(what.begin), bytes};
    ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (got == static_cast<ssize_t>(bytes))
        return;
    /* What the process itself may not read is read in this way only. */
    const std::string path = "/proc/" + std::to_string(pid) + "/mem";
    const descriptor memory{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    got =
        memory.fd < 0 ? -1 : pread(memory.fd, pages.data(), bytes, static_cast<off_t>(what.begin));
    if (got != static_cast<ssize_t>(bytes))
        throw_errno(got < 0 ? errno : EFAULT, path);
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

void rank_memory::rewind()
{
    const std::string proc = "/proc/" + std::to_string(pid_) + "/";
    pagemap_ = descriptor{open((proc + "pagemap").c_str(), O_RDONLY | O_CLOEXEC)};
    mappings_.clear();
    at_ = 0;
    std::ifstream maps(proc + "maps");
    for (std::string line; std::getline(maps, line);) {
        page_range one{};
        std::array<char, 5> mode{};
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &one.begin, &one.end,
                        mode.data()) == 3 &&
            is_own(mode, line) && one.end - one.begin <= kLargest)
            mappings_.push_back(one);
    }
}

std::vector<page_range> rank_memory::find_present(std::uint64_t begin, std::uint64_t end) const
{
    std::array<std::uint64_t, kAtOnce / kPage> entries;
    const std::size_t wanted = (end - begin) / kPage * sizeof entries[0];
    const ssize_t got = pread(pagemap_.fd, entries.data(), wanted,
                              static_cast<off_t>(begin / kPage * sizeof entries[0]));
    std::vector<page_range> found;
    for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof entries[0]; i++) {
        if (!(entries[i] & kPresent) || entries[i] & kOfFile)
            continue;
        const std::uint64_t page = begin + i * kPage;
        if (!found.empty() && found.back().end == page)
            found.back().end += kPage;
        else
            found.push_back({page, page + kPage});
    }
    return found;
}

bool rank_memory::read(std::string &pages)
{
    pages.clear();
    if (at_ == mappings_.size() || pagemap_.fd < 0)
        return false;
    page_range &now = mappings_[at_];
    const std::uint64_t end = std::min(now.end, now.begin + kAtOnce);
    const std::vector<page_range> present = find_present(now.begin, end);
    now.begin = end;
    if (now.begin == now.end)
        at_++;
    std::size_t bytes = 0;
    for (const page_range &each : present)
        bytes += each.end - each.begin;
    pages.resize(bytes);
    std::size_t filled = 0;
    for (const page_range &each : present) {
        /* Each by itself: what has been unmapped meanwhile ends a call. */
        const iovec to{pages.data() + filled, each.end - each.begin};
        const iovec from{reinterpret_cast<void *>(each.begin), each.end - each.begin};
        const ssize_t got = process_vm_readv(pid_, &to, 1, &from, 1, 0);
        if (got > 0)
            filled += static_cast<std::size_t>(got) / kPage * kPage;
    }
    pages.resize(filled);
    return true;
}

} // namespace zc::holder
