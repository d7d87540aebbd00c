/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace zc::migrate {

/**
 * Write @content to @path so that after a crash at any moment @path is either as
 * before or complete: written to PATH.part, fsync, rename, fsync of the directory.
 *
 * By io_uring with registered buffers and several writes in flight where the
 * kernel allows it, past the page cache where the file system allows it; else by
 * pwrite(2). Throws error (ENOSPC and the like) and leaves no PATH.part.
 *
 * PATH.part grows as the disk takes it in, within a few MiB, so that others can tell a slow
 * disk from a writer that is no more. @block_written is called now and then in between.
 */
void write_durably(const std::string &path, std::span<const std::byte> content,
                   const std::function<void()> &block_written = {});

/** fsync of a directory: a rename in it is not durable before. */
void sync_directory(const std::string &path);

} // namespace zc::migrate
