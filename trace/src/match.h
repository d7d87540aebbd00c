/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_MATCH_H_INCLUDED
#define ZCT_MATCH_H_INCLUDED

#include <compare>
#include <optional>
#include <unordered_map>
#include <vector>

#include "communicators.h"
#include "sorter.h"

namespace zc::zct {

/** The envelope of a point-to-point message. */
struct message_envelope {
    std::int32_t dest; /* world ranks */
    std::uint32_t comm;
    std::int32_t source;
    std::int32_t tag;
    auto operator<=>(const message_envelope &) const = default;
};

/** What is known of a message from its sender. */
struct sent_message {
    message_envelope envelope;
    std::int64_t time_ns;
    std::uint64_t number; /* place in the sender's file */
    std::uint64_t bytes;

    /* A file has them in the order in which their calls succeeded. Those of one thread began in
     * that order, too; a message of several threads overtakes by when it was begun. */
    auto operator<=>(const sent_message &) const = default;
};

/**
 * Finds the sends of point-to-point receives. Messages with equal sender,
 * receiver, communicator and tag do not overtake each other, so the n-th such
 * message is that of the n-th receive in order of matching: posting, or probing.
 */
class sends_in_flight {
  public:
    void add(const file_records &part, const communicator_names &names);

    /** All were added. */
    void begin() { sends_.rewind(); }

    /** Takes the next message with this envelope, if there is one. Those before it in order of
     * envelopes are passed over: nothing may ask for them any more. */
    std::optional<sent_message> take(const message_envelope &envelope);

    /** Passes over all that are left for the ranks up to @dest; how many to itself. */
    std::uint64_t pass(std::int32_t dest);

  private:
    static constexpr std::size_t kBudget = std::size_t{16} << 20;

    sorter<sent_message> sends_{kBudget};
    std::uint64_t passed_ = 0; /* by take, of the rank that asks */
};

/** When a rank made a collective call. */
struct call_times {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    zct_kind kind;
    bool ended;
};

/** Finds the calls of other ranks that belong to a collective. In memory, since any rank asks for
 * any: a call stands for up to as many messages as there are ranks. */
class collective_calls {
  public:
    void add(const file_records &part, const communicator_names &names);

    /** The same collective at @rank; NULL if its file is not there or ends before. */
    const call_times *at(std::int32_t rank, std::uint32_t comm, std::size_t nth) const;

  private:
    std::unordered_map<std::uint64_t, std::vector<call_times>> calls_;
};

/**
 * When the sender of a collective's message sent it: at its call, but the
 * result of a reduction to all leaves the first rank when that has it.
 */
template <typename Call>
std::optional<std::int64_t> collective_sent_ns(const Call &call, bool from_first)
{
    if (!from_first)
        return call.begin_ns;
    return call.ended ? std::optional(call.end_ns) : std::nullopt;
}

/** Reductions whose result all ranks get from the first. */
bool result_from_first(zct_kind kind);

} // namespace zc::zct

#endif
