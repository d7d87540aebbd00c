/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_STORE_ROOM_H_INCLUDED
#define ZC_HOLDER_STORE_ROOM_H_INCLUDED

#include <cstdint>
#include <string>

namespace zc::holder {

/** KiB: what processes may have, and what there may be where images are kept, which counts as both.
 */
struct host_memory {
    std::uint64_t available, shared;
};

/** KiB that ranks on their way to a host were promised, and have not taken yet (promised_room.h).
 */
struct promised_memory {
    std::uint64_t all = 0;      /* of memory */
    std::uint64_t in_group = 0; /* of that, below the limits of this process's control groups */
    std::uint64_t shared = 0;   /* of what there may be where images are kept */
};

/** KiB of a host, as of now. */
struct free_memory {
    std::uint64_t of_kernel; /* what it takes for available */
    std::uint64_t allowed;   /* that, or less if the limits of control groups leave less */
    std::uint64_t shared;

    /** What can still be promised. What was promised to others below limits of their own counts
     * against what the kernel has, and not against the limits of this process. */
    host_memory without(const promised_memory &others) const;
};

/** Of this host. */
free_memory memory_of_host();

/** What a rank needs that comes. */
struct rank_room {
    std::uint64_t kib; /* of its memory */
    bool ahead = true; /* its memory is sent while it runs, if there is room */
    bool lazy = true;  /* it is to run before it has its memory, if there is room */
};

/** What a host has for it. */
struct room_offer {
    std::uint64_t store;  /* KiB that may be sent ahead; 0: none */
    bool lazy;            /* it may run before it has its memory */
    host_memory together; /* the most that all of it takes at one time */
};

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

/** What @has is enough for, where it is enough for the image and the rank. */
room_offer offer_of(const rank_room &rank, const host_memory &has);

/** Why a rank of @kib cannot come to @host, which has @has, and @left when others have taken what
 * they were promised: the image and the rank have no room. Empty: they have. */
std::string why_no_room(const std::string &host, std::uint64_t kib, const host_memory &has,
                        const host_memory &left);

/** Why a rank of @kib does not leave @host yet, which has @left beside what was promised for the
 * images of others: its own has no room. Empty: it has, or there are no @others, whose images go;
 * then it is tried, since an image may be smaller than its rank. */
std::string why_not_yet(const std::string &host, std::uint64_t kib, const host_memory &left,
                        bool others);

} // namespace zc::holder

#endif
