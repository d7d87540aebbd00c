/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_STORE_ROOM_H_INCLUDED
#define ZC_HOLDER_STORE_ROOM_H_INCLUDED

#include <cstdint>

namespace zc::holder {

/** KiB: what processes may have, and what there may be where images are kept, which counts as both.
 */
struct host_memory {
    std::uint64_t available, shared;
};

/** Of this host. */
host_memory memory_of_host();

/**
 * The most that may be sent to a host ahead of a rank's image (pre_copy.h), KiB, where the rank has
 * @kib of memory: as much twice, since what the rank writes meanwhile is sent again, or what there
 * is room for; 0: there is not even room for a quarter more than once.
 *
 * Beside it there must be room for the image, and the rank takes the place of what was sent ahead.
 */
std::uint64_t room_ahead(std::uint64_t kib, const host_memory &has);

/** The same for a rank that runs before it has its memory, when that takes most: what was sent
 * ahead, what came for the image, both of which stay until the rank has all, and the rank. After
 * the record nobody else has the rank, so there is no way back then. 0: no rank may do so. */
std::uint64_t room_to_fill(std::uint64_t kib, const host_memory &has);

} // namespace zc::holder

#endif
