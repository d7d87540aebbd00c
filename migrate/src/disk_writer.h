/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstddef>
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
 */
void write_durably(const std::string &path, std::span<const std::byte> content);

/** fsync of a directory: a rename in it is not durable before. */
void sync_directory(const std::string &path);

} // namespace zc::migrate
