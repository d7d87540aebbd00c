/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_TIMELINE_H_INCLUDED
#define ZCF_TIMELINE_H_INCLUDED

#include <string>

#include "message.h"

namespace zc::forecast {

/** A step of a rank, in the order in which the program made it. */
struct step {
    enum class kind { send, receive, collective, call };
    kind what;
    std::int64_t begin_ns;
    std::int64_t end_ns;                  /* of a call; else begin_ns */
    std::size_t idx;                      /* message, collective (place at the rank), or call */
    std::vector<std::size_t> sends;       /* messages that a call saw complete */
    std::vector<std::size_t> receives;    /* likewise */
    std::vector<std::size_t> collectives; /* likewise */
    std::vector<std::size_t> probed;      /* the message that a probe found */
};

/** What all ranks did: the run as the replay needs it. */
struct timeline {
    std::vector<std::vector<step>> ranks;
    std::string unusable; /* why it cannot be replayed; else empty */
};

timeline timeline_of(const zct::run &run, const std::vector<message> &messages);

} // namespace zc::forecast

#endif
