/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "array.h"
#include "image.h"
#include "lifeline.h"

namespace zc::migrate {

/** What it took, in ms, and how much it was. */
struct effort {
    double build_ms = 0;    /* making images */
    double transfer_ms = 0; /* waiting for the network, or for the disk */
    double restore_ms = 0;  /* reading images */
    std::uint64_t image_bytes = 0;
    std::uint64_t zero_bytes = 0;
};

/**
 * An array on its way: a stream of segments, each an HDF5 image of at most 1 MiB of
 * it followed by the CRC-32C of the image and its number. Eight of them are alive on each side,
 * most in the network and one being made or read: some 10 MiB is all the extra memory a move takes,
 * whatever the size of the state. They are short so that the network, which waits for us to call
 * MPI, does not wait long.
 */
class transfer {
  public:
    explicit transfer(lifeline &line) : line_(line) {}
    ~transfer();
    transfer(const transfer &) = delete;
    transfer &operator=(const transfer &) = delete;

    static std::uint64_t segments(const array &a);
    /** @corrupt: damage its segments, for tests. Throws error(EPIPE), or what the successor says.
     */
    void send(const array &source, const image_header &header, effort &effort, bool corrupt);
    /** Throws error(EBADMSG) if a checksum differs. */
    void receive(const array &target, effort &effort);
    /** All of @image, part by part. Throws as send() does. */
    void send_whole(std::span<const std::byte> image, effort &effort);
    /** An image of so many @bytes, which is there as long as this object. Throws error(EPIPE). */
    std::span<const std::byte> receive_whole(std::uint64_t bytes, effort &effort);
    /** Is any of it under way? */
    bool is_under_way() const noexcept;

    /** After a send or receive that threw: what is under way is brought to its end, by the sender
     *  while the receiver drains the line, then by the receiver. */
    void finish();
    void cancel();

  private:
    /** While a transfer is waited for: throws error if the other side has said that it ends. */
    void heed_successor();
    void heed_predecessor();

    static constexpr std::size_t kAlive = 8;
    /* A part is waited for as long as a word is, so it must not be too long for a slow network. */
    static constexpr std::uint64_t kPart = std::uint64_t{16} << 20;
    using request_set = std::array<connection::ticket, kAlive>;

    lifeline &line_;
    request_set requests_{}; /* kNone */
    std::array<image_memory, kAlive> memory_;
};

} // namespace zc::migrate
