/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_MATCH_H_INCLUDED
#define ZCT_MATCH_H_INCLUDED

#include <optional>
#include <unordered_map>
#include <vector>

#include "communicators.h"

namespace zc::zct {

/**
 * Finds the sends of point-to-point receives. Messages with equal sender,
 * receiver, communicator and tag do not overtake each other, so the n-th such
 * message is that of the n-th receive in order of matching: posting, or probing.
 */
class sends_in_flight {
  public:
    sends_in_flight(const std::vector<file_records> &files, const communicator_names &names);

    /** Takes the next message with this envelope, if there is one. */
    const send_record *take(std::uint32_t comm, std::int32_t source, std::int32_t dest,
                            std::int32_t tag);

    /** Those not taken, to ranks that are there. */
    std::uint64_t left(const std::vector<bool> &present) const;

  private:
    struct envelope {
        std::uint32_t comm;
        std::int32_t source;
        std::int32_t dest;
        std::int32_t tag;
        bool operator==(const envelope &) const = default;
    };
    struct hash {
        std::size_t operator()(const envelope &e) const;
    };
    struct queue {
        std::vector<const send_record *> sends;
        std::size_t next = 0;
    };
    std::unordered_map<envelope, queue, hash> queues_;
};

/** Finds the calls of other ranks that belong to a collective. */
class collective_calls {
  public:
    collective_calls(const std::vector<file_records> &files, const communicator_names &names);

    /** The same collective at @rank; NULL if its file is not there or ends before. */
    const collective_record *at(std::int32_t rank, std::uint32_t comm, std::size_t nth) const;

  private:
    std::unordered_map<std::uint64_t, std::vector<const collective_record *>> calls_;
};

/**
 * When the sender of a collective's message sent it: at its call, but the
 * result of a reduction to all leaves the first rank when that has it.
 */
std::optional<std::int64_t> collective_sent_ns(const collective_record &call, bool from_first);

/** Reductions whose result all ranks get from the first. */
bool result_from_first(zct_kind kind);

} // namespace zc::zct

#endif
