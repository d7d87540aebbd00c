/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_MESSAGE_H_INCLUDED
#define ZCF_MESSAGE_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <vector>

#include "predictability.h"
#include "zct/trace.h"

namespace zc::forecast {

/** No such call was recorded. */
constexpr std::size_t kNoCall = SIZE_MAX;

/** One end of a message. Times are nanoseconds since the run began. */
struct message_end {
    std::size_t rank;        /* index into zct::run::ranks */
    std::uint32_t site;      /* index into the sites of that rank: where it was posted */
    std::size_t call;        /* index into its calls: the one that saw it complete, or kNoCall */
    std::int64_t posted_ns;  /* the send or receive began */
    std::int64_t waiting_ns; /* the call that saw it complete began; done_ns if none is known */
    std::int64_t done_ns;    /* the program saw it complete */
    std::size_t host = 0;    /* a number for the host of that rank */
};

/** A point-to-point message both of whose ends were recorded. */
struct message {
    std::uint64_t bytes;
    bool one_host;
    message_end send;
    message_end receive;
    bool synchronous = false;            /* its send is not complete before its receive is posted */
    answer foreseen = answer::not_asked; /* where it goes */

    /** It was sent before its receive was posted. */
    bool unexpected() const { return send.posted_ns < receive.posted_ns; }

    /** Its send was over before its receive was posted: the MPI library had taken it. */
    bool surely_eager() const { return send.call != kNoCall && send.done_ns < receive.posted_ns; }

    /** How long the sender waited because the receive was not posted. */
    std::int64_t held_ns() const;

    /** How long the receiver of an unexpected message waited for its transfer. */
    std::int64_t transfer_wait_ns() const;

    /** How long the receiver waited for the message to be sent. */
    std::int64_t sender_wait_ns() const;

    /** Time in which the transfer could have gone on before the program waited for it, as far as
     * the program then waited: at the receiver, and at the sender of a nonblocking send. */
    std::int64_t lost_overlap_ns() const;
};

/** Those of the run, by receiver, in order of posting. @prediction: of all its ranks, or of none.
 */
std::vector<message> messages_of(const zct::run &run, const prediction &prediction = {});

} // namespace zc::forecast

#endif
