/* SPDX-License-Identifier: BSD-3-Clause */
#include "image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "durable_file.h"
#include "error.h"

namespace zc::migrate {

namespace {

constexpr std::uint64_t kLap = 512 << 10;

std::uint64_t length_of(int fd, const std::string &path)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        throw_errno(errno, path);
    return static_cast<std::uint64_t>(found.st_size);
}

} // namespace

image_size stream_image(const std::string &path, const image_header &header,
                        std::span<const array> arrays, const std::function<void()> &meanwhile)
{
    durable_file file(path);
    image_writer writer(file.part(), header);
    const descriptor part{open(file.part().c_str(), O_WRONLY | O_CLOEXEC)};
    if (part.fd < 0)
        throw_errno(errno, file.part());
    handing_on disk(part.fd);
    std::uint64_t lap = 0;
    for (const array &a : arrays)
        writer.write(a, [&](std::uint64_t bytes) {
            lap += bytes;
            if (lap < kLap)
                return;
            lap = 0;
            disk.reached(length_of(part.fd, file.part()));
            if (meanwhile)
                meanwhile();
        });
    writer.finish_file();
    if (fsync(part.fd) != 0)
        throw_errno(errno, file.part());
    const image_size size{length_of(part.fd, file.part()), writer.zero_bytes()};
    file.finish();
    return size;
}

} // namespace zc::migrate
