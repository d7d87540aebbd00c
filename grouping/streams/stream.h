/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_STREAM_H_INCLUDED
#define ZCP_GROUPING_STREAM_H_INCLUDED

#include <cstdint>
#include <string>
#include <vector>

#include "zcp/grouping.h"

namespace zc::groups {

/** Events of one run, in order of time. */
struct event_stream {
    std::string name;
    uint32_t ranks = 0;
    std::vector<zcp_event_t> events;
};

} // namespace zc::groups

#endif
