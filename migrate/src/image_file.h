/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "array.h"
#include "image.h"

namespace zc::migrate {

/** What a file took. */
struct image_size {
    std::uint64_t image_bytes = 0;
    std::uint64_t zero_bytes = 0; /* left out */
};

/**
 * Write @arrays to @path as an image, durably as write_durably() does, and without a second copy of
 * them in memory: HDF5 writes from where they are, and what the disk has not taken in waits in the
 * page cache, some 8 MiB at most. The caller waits for the disk. @meanwhile: called each 512 KiB,
 * at least. Throws error.
 */
image_size stream_image(const std::string &path, const image_header &header,
                        std::span<const array> arrays, const std::function<void()> &meanwhile = {});

} // namespace zc::migrate
