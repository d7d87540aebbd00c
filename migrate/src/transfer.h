/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <cstdint>
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

    /** After a send or receive that threw: what is under way is brought to its end, by the sender
     *  while the receiver drains the line, then by the receiver. */
    void finish();
    void cancel();

  private:
    static constexpr std::size_t kAlive = 8;
    using request_set = std::array<connection::ticket, kAlive>;

    lifeline &line_;
    request_set requests_{}; /* kNone */
    std::array<image_memory, kAlive> memory_;
};

} // namespace zc::migrate
