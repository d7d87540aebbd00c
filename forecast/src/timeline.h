/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_TIMELINE_H_INCLUDED
#define ZCF_TIMELINE_H_INCLUDED

#include <string>

#include "message.h"

namespace zc::forecast {

/** What a call waits for. */
struct need {
    enum class kind { send, receive, probed, collective };
    kind what;
    std::size_t idx; /* of the message; of the collective its place at the rank */
};

/** A step of a rank, in the order in which the program made it. */
struct step {
    enum class kind { send, receive, collective, call };
    kind what;
    std::int64_t begin_ns;
    std::int64_t end_ns;     /* of a call; else begin_ns */
    std::size_t idx;         /* message, collective (place at the rank), or call */
    std::vector<need> needs; /* of a call: all that it saw complete, and what a probe found */
};

/** What all ranks did: the run as the replay needs it. */
struct timeline {
    std::vector<std::vector<step>> ranks;
    std::string unusable; /* why it cannot be replayed; else empty */
};

timeline timeline_of(const zct::run &run, const std::vector<message> &messages);

} // namespace zc::forecast

#endif
