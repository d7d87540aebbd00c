/* SPDX-License-Identifier: BSD-3-Clause */
#include "mapped_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

#include "object_identity.h"

namespace zc::migrate {

namespace {

/**
 * Is @file the one that is @mapped? The number of the file must be the same. The device is compared
 * only where both are a disk (they have a major number): btrfs, NFS and overlayfs make up one that
 * stat() tells, and /proc/self/maps may tell another one of the same file, of a subvolume or a
 * layer.
 */
bool is_same(const struct stat &file, const mapped_file &mapped)
{
    const bool on_disk = major(file.st_dev) != 0 && major(mapped.device) != 0;
    return file.st_ino == mapped.inode && (!on_disk || file.st_dev == mapped.device);
}

} // namespace

std::vector<mapped_file> mapped_files()
{
    std::vector<mapped_file> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        mapped_file one;
        unsigned major = 0, minor = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %x:%x %" SCNu64,
                        &one.begin, &one.end, &major, &minor, &one.inode) != 5 ||
            one.inode == 0)
            continue;
        one.device = makedev(major, minor);
        if (const std::size_t slash = line.find('/'); slash != std::string::npos)
            one.path = line.substr(slash);
        found.push_back(std::move(one));
    }
    return found;
}

mapped_file first_within(const std::vector<mapped_file> &files, std::uintptr_t begin,
                         std::uintptr_t end)
{
    const auto at = std::ranges::upper_bound(files, begin, {}, &mapped_file::end);
    return at != files.end() && at->begin < end ? *at : mapped_file();
}

open_file_of::open_file_of(const std::string &path, const mapped_file &mapped)
{
    if (!open_if_same(path, mapped))
        open_if_same(mapped.path, mapped);
}

open_file_of::~open_file_of()
{
    if (*this)
        close(file_);
}

bool open_file_of::has_changed_since(const struct stat &then) const noexcept
{
    return facts_.st_size != then.st_size || facts_.st_ctim.tv_sec != then.st_ctim.tv_sec ||
           facts_.st_ctim.tv_nsec != then.st_ctim.tv_nsec;
}

std::string open_file_of::checksum() const
{
    return checksum_of(file_);
}

bool open_file_of::open_if_same(const std::string &path, const mapped_file &mapped)
{
    /* What is there now may be a pipe: do not wait for its writer. */
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file_ < 0)
        return false;
    if (fstat(file_, &facts_) == 0 && is_same(facts_, mapped))
        return true;
    close(file_);
    file_ = -1;
    return false;
}

} // namespace zc::migrate
