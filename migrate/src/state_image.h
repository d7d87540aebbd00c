/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <span>

#include "image.h"
#include "registry.h"
#include "transfer.h"

namespace zc::migrate {

/**
 * The state of a leaver as one image in memory: the way of moving that ours is compared with. As in
 * the memory variant of Cores et al. it is made whole before the successor is started, without a
 * thread, and sent when the successor is there.
 */
class state_image {
  public:
    /** Makes it of @data. Throws error. */
    state_image(const registry &data, const image_header &header);

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    /** CRC-32C of these. */
    std::uint32_t checksum() const noexcept { return checksum_; }
    /** To make it took. */
    const effort &spent() const noexcept { return effort_; }
    /** For tests: one bit is another one. */
    void damage() noexcept;
    /** Somebody may read it as long as this process lives. */
    void give_away() noexcept { memory_.give_away(); }

  private:
    image_memory memory_;
    std::span<const std::byte> bytes_;
    std::uint32_t checksum_ = 0;
    effort effort_;
};

} // namespace zc::migrate
