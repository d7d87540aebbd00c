/* SPDX-License-Identifier: BSD-3-Clause */
#include "disk_writer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <liburing.h>
#include <memory>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "durable_file.h"
#include "error.h"

namespace zc::migrate {

namespace {

/* 4 MiB in all: within the usual limit on locked memory (8 MiB). */
constexpr unsigned kDepth = 8;
constexpr std::size_t kBlock = 512 << 10;
constexpr std::size_t kAlign = 4096;

void write_simply(int fd, const std::string &path, std::span<const std::byte> content,
                  const std::function<void()> &block_written)
{
    handing_on disk(fd);
    for (std::size_t at = 0; at < content.size();) {
        const ssize_t written =
            write(fd, content.data() + at, std::min(kBlock, content.size() - at));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            throw_errno(written < 0 ? errno : ENOSPC, path);
        at += static_cast<std::size_t>(written);
        disk.reached(at);
        if (block_written)
            block_written();
    }
    if (fsync(fd) != 0)
        throw_errno(errno, path);
}

/** A queue of writes of whole blocks from registered buffers. */
class queue {
  public:
    queue() : ready_(io_uring_queue_init(kDepth, &ring_, 0) == 0)
    {
        if (!ready_)
            return;
        buffers_.reset(static_cast<std::byte *>(std::aligned_alloc(kAlign, kDepth * kBlock)));
        iovec all[kDepth];
        for (unsigned i = 0; i < kDepth; i++)
            all[i] = {buffers_.get() + i * kBlock, kBlock};
        registered_ = buffers_ && io_uring_register_buffers(&ring_, all, kDepth) == 0;
    }
    ~queue()
    {
        if (ready_)
            io_uring_queue_exit(&ring_); /* waits for what is in flight */
    }
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;

    bool usable() const noexcept { return ready_ && registered_; }

    void write(int fd, const std::string &path, std::span<const std::byte> content, bool aligned,
               const std::function<void()> &block_written)
    {
        handing_on disk(fd);
        std::vector<unsigned> free;
        for (unsigned i = 0; i < kDepth; i++)
            free.push_back(i);
        std::size_t length[kDepth] = {};
        std::size_t at = 0;
        while (at < content.size() || free.size() < kDepth) {
            while (at < content.size() && !free.empty()) {
                const unsigned slot = free.back();
                free.pop_back();
                const std::size_t some = std::min(kBlock, content.size() - at);
                std::byte *buffer = buffers_.get() + slot * kBlock;
                std::memcpy(buffer, content.data() + at, some);
                /* Whole blocks only past the page cache; the file is cut to length below. */
                length[slot] = aligned ? (some + kAlign - 1) / kAlign * kAlign : some;
                std::memset(buffer + some, 0, length[slot] - some);
                io_uring_sqe *entry = io_uring_get_sqe(&ring_);
                io_uring_prep_write_fixed(entry, fd, buffer, static_cast<unsigned>(length[slot]),
                                          at, static_cast<int>(slot));
                io_uring_sqe_set_data64(entry, slot);
                io_uring_submit(&ring_);
                at += some;
                if (block_written)
                    block_written();
            }
            const auto [slot, result] = next(path);
            if (result != static_cast<int>(length[slot]))
                throw_errno(ENOSPC, path); /* a short write; the next one would say why */
            free.push_back(slot);
            /* Blocks come back in any order: what was begun before the last few is there. */
            if (!aligned && at > kDepth * kBlock)
                disk.reached(at - kDepth * kBlock);
        }
        if (aligned && ftruncate(fd, static_cast<off_t>(content.size())) != 0)
            throw_errno(errno, path);
        io_uring_sqe *entry = io_uring_get_sqe(&ring_);
        io_uring_prep_fsync(entry, fd, 0);
        io_uring_sqe_set_data64(entry, 0);
        io_uring_submit(&ring_);
        next(path);
    }

  private:
    struct release {
        void operator()(std::byte *p) const { std::free(p); }
    };

    std::pair<unsigned, int> next(const std::string &path)
    {
        io_uring_cqe *entry = nullptr;
        int status;
        do
            status = io_uring_wait_cqe(&ring_, &entry);
        while (status == -EINTR);
        if (status < 0)
            throw_errno(-status, path);
        const std::pair<unsigned, int> got{static_cast<unsigned>(io_uring_cqe_get_data64(entry)),
                                           entry->res};
        io_uring_cqe_seen(&ring_, entry);
        if (got.second < 0)
            throw_errno(-got.second, path);
        return got;
    }

    io_uring ring_{};
    bool ready_;
    bool registered_ = false;
    std::unique_ptr<std::byte, release> buffers_;
};

void write_part(const std::string &part, std::span<const std::byte> content,
                const std::function<void()> &block_written)
{
    queue ring;
    if (ring.usable()) {
        const descriptor direct{
            open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT, 0600)};
        if (direct.fd >= 0) {
            ring.write(direct.fd, part, content, true, block_written);
            return;
        }
    }
    const descriptor file{open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    if (file.fd < 0)
        throw_errno(errno, part);
    if (ring.usable())
        ring.write(file.fd, part, content, false, block_written);
    else
        write_simply(file.fd, part, content, block_written);
}

} // namespace

void sync_directory(const std::string &path)
{
    const descriptor directory{open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (directory.fd < 0 || fsync(directory.fd) != 0)
        throw_errno(errno, path);
}

void write_durably(const std::string &path, std::span<const std::byte> content,
                   const std::function<void()> &block_written)
{
    durable_file file(path);
    write_part(file.part(), content, block_written);
    file.finish();
}

} // namespace zc::migrate
