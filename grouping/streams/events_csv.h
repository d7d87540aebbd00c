/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_EVENTS_CSV_H_INCLUDED
#define ZCP_GROUPING_EVENTS_CSV_H_INCLUDED

#include <string>

#include "stream.h"

namespace zc::groups {

/** Numbers of the kinds that traces name: 0 p2p, then collectives; 31 for any other. */
uint32_t kind_number(const std::string &name);

/**
 * Reads "t,src,dst,bytes,kind" (t in microseconds), with a heading, plain or
 * gzip. The world is as large as the highest rank says. Throws std::runtime_error
 * with file and line if it cannot be read or a line is malformed.
 */
event_stream read_events_csv(const std::string &path);

} // namespace zc::groups

#endif
