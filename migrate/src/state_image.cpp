/* SPDX-License-Identifier: BSD-3-Clause */
#include "state_image.h"

#include <vector>

#include "clock.h"
#include "crc32c.h"

namespace zc::migrate {

state_image::state_image(const registry &data, const image_header &header)
{
    const double begin = seconds();
    std::vector<array> arrays;
    for (const auto &[name, one] : data.all())
        arrays.push_back(one);
    memory_.reserve(image_bound(arrays));
    image_writer writer(memory_, header, checksums::none); /* it has one of its own */
    for (const array &one : arrays)
        writer.write(one);
    bytes_ = writer.finish();
    checksum_ = zc_crc32c(0, bytes_.data(), bytes_.size());
    effort_.image_bytes = bytes_.size();
    effort_.zero_bytes = writer.zero_bytes();
    effort_.build_ms = ms_since(begin);
}

void state_image::damage() noexcept
{
    memory_.data()[bytes_.size() / 2] ^= std::byte{0x10};
}

} // namespace zc::migrate
