/* SPDX-License-Identifier: BSD-3-Clause */
#include "spill_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "zct/trace.h"

namespace zc::zct {

namespace {

std::string folder()
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}

[[noreturn]] void fail(int why)
{
    throw error(folder() + ": a temporary file (TMPDIR says where): " + std::strerror(why));
}

int make_file()
{
    std::string name = folder() + "/zc-trace-XXXXXX";
    const int fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0)
        fail(errno);
    unlink(name.c_str());
    return fd;
}

} // namespace

spill_file::~spill_file()
{
    if (fd_ >= 0)
        close(fd_);
}

void spill_file::append(std::span<const std::byte> bytes)
{
    if (fd_ < 0)
        fd_ = make_file();
    while (!bytes.empty()) {
        const ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail(n < 0 ? errno : ENOSPC);
        size_ += static_cast<std::uint64_t>(n);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
}

void spill_file::read(std::uint64_t at, std::span<std::byte> bytes) const
{
    while (!bytes.empty()) {
        const ssize_t n = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            fail(n < 0 ? errno : EIO);
        at += static_cast<std::uint64_t>(n);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
}

} // namespace zc::zct
