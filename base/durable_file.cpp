/* SPDX-License-Identifier: BSD-3-Clause */
#include "durable_file.h"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "error.h"

namespace zc {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::string place_of(const std::string &path)
{
    const auto slash = path.find_last_of('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

/* The directory is opened before the renaming: as soon as the file is there another process may
 * take the directory for complete, and give it another name or remove it. */
durable_file::durable_file(std::string path)
    : path_(std::move(path)), part_(path_ + ".part"), place_(place_of(path_)),
      directory_(open(place_.c_str(), kDirectory))
{
    if (directory_.fd < 0)
        throw_errno(errno, place_);
}

durable_file::~durable_file()
{
    if (!finished_)
        unlink(part_.c_str());
}

void durable_file::finish()
{
    if (rename(part_.c_str(), path_.c_str()) != 0)
        throw_errno(errno, path_);
    finished_ = true;
    if (fsync(directory_.fd) != 0)
        throw_errno(errno, place_);
}

void handing_on::reached(std::size_t written)
{
    for (; written - begun_ >= kBit; begun_ += kBit) {
        const auto now = static_cast<off64_t>(begun_), bit = static_cast<off64_t>(kBit);
        sync_file_range(fd_, now, bit, SYNC_FILE_RANGE_WRITE);
        if (now < bit)
            continue;
        sync_file_range(fd_, now - bit, bit,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(fd_, now - bit, bit, POSIX_FADV_DONTNEED);
    }
}

} // namespace zc
